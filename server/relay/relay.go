// Package relay decides which parts of a request are passed on to another server: a kubelet, a pod, or an
// aggregated API server. It passes on neither a client's credentials for this server, nor headers that only a
// trusted proxy may set, nor a change to a protocol in which further requests would follow, which no authorizer sees. The other server can neither replace headers that this server has set nor answer
// more than once.
package relay

import (
	"net/http"
	"slices"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/rowlock/rowlock/authx"
)

// StripRequest takes credentials, and headers that only a trusted proxy may set, out of the headers of a
// request that is passed on. trusted, which may be nil, reports which others only a trusted proxy
// may set; their names are those that Plain makes.
func StripRequest(h http.Header, trusted func(name string) bool) {
	for name := range h {
		plain := Plain(name)
		if plain == "authorization" || plain == "proxy-authorization" || strings.HasPrefix(plain, "impersonate-") || strings.HasPrefix(plain, "x-remote-") ||
			trusted != nil && trusted(plain) {
			delete(h, name)
		}
	}
	if toHTTP(h) {
		delete(h, "Upgrade")
		delete(h, "Connection")
	}
	delete(h, "Http2-Settings")
	dropBearer(h)
}

// reservedHeaders are headers of an answer that this server has set already, and those by which another server would
// act for this server's whole origin: alternative addresses, and stored data and security policies of
// clients.
var reservedHeaders = []string{
	"Audit-Id", "X-Kubernetes-Pf-Flowschema-Uid", "X-Kubernetes-Pf-Prioritylevel-Uid", "Alt-Svc", "Clear-Site-Data", "Strict-Transport-Security",
}

// StripResponse takes headers that only this server may set out of the answer of another server.
func StripResponse(h http.Header) {
	for _, name := range reservedHeaders {
		delete(h, name)
	}
}

// Plain returns the name of a header as the least strict readers see it: in lower case,
// with a dash for each underscore, as CGI and its heirs make both one.
func Plain(name string) string {
	return strings.ReplaceAll(strings.ToLower(name), "_", "-")
}

// dropBearer removes the token that browsers put among WebSocket protocols.
func dropBearer(h http.Header) {
	const name = "Sec-Websocket-Protocol"
	lines := h.Values(name)
	if len(lines) == 0 {
		return
	}
	var kept []string
	for _, line := range lines {
		for p := range strings.SplitSeq(line, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, authx.SocketProtocol) {
				kept = append(kept, p)
			}
		}
	}
	if len(kept) == 0 {
		h.Del(name)
		return
	}
	h.Set(name, strings.Join(kept, ", "))
}

// Upgrades reports whether headers ask for another protocol on the same connection, one that may be passed on.
func Upgrades(h http.Header) bool {
	return httpguts.HeaderValuesContainsToken(h["Connection"], "upgrade") && !toHTTP(h)
}

// toHTTP reports whether headers ask for another version of HTTP, or for HTTP in TLS. A server that agrees would take what follows on the
// connection for requests of this server, whose certificate the connection has shown: with any method, path and X-Remote-User.
func toHTTP(h http.Header) bool {
	return slices.ContainsFunc(h["Upgrade"], func(line string) bool {
		for protocol := range strings.SplitSeq(strings.ToLower(line), ",") {
			if name, _, _ := strings.Cut(strings.TrimSpace(protocol), "/"); name == "h2c" || name == "h2" || name == "http" || name == "tls" {
				return true
			}
		}
		return false
	})
}
