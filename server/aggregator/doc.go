// Package aggregator knows the API servers behind this one: the group
// versions that APIService objects delegate to them, and how to reach them.
//
//	a.Services()                       the APIServices, as of now
//	a.Services().Remote(gv)            the APIService that delegates gv to another server, or nil
//	a.RoundTrip(ctx, service, who, r)  the answer of that server to r, on behalf of who
//
// RoundTrip takes method, path, query, headers and body of r; the APIService decides the
// destination. It dials the current location of the Service (its address or name, or
// with --enable-aggregator-routing one of its endpoints), reuses connections, always uses TLS
// (for NAME.NAMESPACE.svc, trusting caBundle, or the system's authorities without one, or
// any certificate with insecureSkipTLSVerify), and presents the client certificate of the front proxy.
// It follows no redirect. An error that is a *ResolveError or *ConfigError occurred before
// anything was sent; the caller makes the text for clients. The caller bounds and closes the body of the
// answer.
//
// It promises: only this package writes X-Remote-* headers, which name the user; the credentials of
// a client (Authorization, tokens among WebSocket protocols, impersonation) and X-Remote-* headers of
// others never leave the server; a reader of Services after a write of an APIService was acknowledged
// sees that write; it does not dial link-local addresses of this machine, nor its loopback unless a Service of
// type ExternalName names it, whatever endpoints contain.
//
// Locks: the follower's (see package follow), then mu. Nothing calls out while mu is held.
// The package has no goroutine; those of idle connections belong to package http and end
// with the connections: 90 seconds after their last use, or once no APIService needs them.
package aggregator
