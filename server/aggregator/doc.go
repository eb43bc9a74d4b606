// Package aggregator knows the API servers that stand behind this one: which group
// versions APIService objects leave to them, and how they are reached.
//
//	a.Services()                       what is served where, as of now
//	a.Services().Remote(gv)            the APIService that leaves gv to another server, or nil
//	a.RoundTrip(ctx, service, who, r)  the answer of that server to r, asked for who
//
// RoundTrip takes method, path, query, headers and body of r; where that goes is for the
// APIService to say. It goes where the Service is at that moment (its address or name, or
// with --enable-aggregator-routing one of its endpoints), keeps connections, speaks TLS always
// (for NAME.NAMESPACE.svc, trusting caBundle, or the system's authorities without one, or
// anybody with insecureSkipTLSVerify), and shows the client certificate of the front proxy.
// It follows no redirect. An error that is a *ResolveError or *ConfigError came up before
// anything was sent; a text for clients is for the caller to make. The body of the answer
// is the caller's to bound and to close.
//
// It promises: whom the server is asked for is said in X-Remote-* headers alone, by us;
// what a client proved itself with (Authorization, tokens among WebSocket protocols,
// impersonation) and X-Remote-* headers of others never leave; who reads Services after a
// write of an APIService was acknowledged finds that write in it; addresses that belong to
// this machine's link alone, and its loopback unless a Service of type ExternalName names
// it, are not dialled, whatever endpoints say.
//
// Locks: the follower's (see package follow), then mu. Nothing calls out while mu is held.
// There is no goroutine of its own; those of kept connections are package http's, and end
// with the connections: 90 seconds after their last use, or once no APIService needs them.
package aggregator
