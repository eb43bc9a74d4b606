package relay

import (
	"bufio"
	"net"
	"net/http"
	"strings"
)

// WebSocket reports whether a client wants a WebSocket.
func WebSocket(h http.Header) bool {
	return strings.EqualFold(h.Get("Upgrade"), "websocket") && Upgrades(h)
}

// Hijacker finds the connection below the writers that filters put around it.
type Hijacker struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h Hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}
