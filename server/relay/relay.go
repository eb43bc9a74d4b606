// Package relay knows what of a request may be passed on to another server: to a node's
// agent, a pod, or an aggregated API server.
//
// It promises: what a client proved itself with to this server, and what only a trusted
// proxy may say, goes no further.
package relay

import (
	"net/http"
	"strings"
)

// Strip takes credentials, and headers that only a trusted proxy may set, out of the
// headers of a request that is passed on.
func Strip(h http.Header) {
	for name := range h {
		lower := strings.ToLower(name)
		if lower == "authorization" || lower == "proxy-authorization" || strings.HasPrefix(lower, "impersonate-") || strings.HasPrefix(lower, "x-remote-") {
			delete(h, name)
		}
	}
	dropBearer(h)
}

// dropBearer removes the token that browsers put among WebSocket protocols.
func dropBearer(h http.Header) {
	const name, prefix = "Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io."
	lines := h.Values(name)
	if len(lines) == 0 {
		return
	}
	var kept []string
	for _, line := range lines {
		for p := range strings.SplitSeq(line, ",") {
			if p = strings.TrimSpace(p); p != "" && !strings.HasPrefix(p, prefix) {
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

// Upgrades says whether headers ask for another protocol on the same connection.
func Upgrades(h http.Header) bool {
	for _, v := range h.Values("Connection") {
		for token := range strings.SplitSeq(v, ",") {
			if strings.EqualFold(strings.TrimSpace(token), "upgrade") {
				return true
			}
		}
	}
	return false
}
