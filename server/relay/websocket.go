package relay

import (
	"bufio"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"

	"golang.org/x/net/websocket"
)

// WebSocket reports whether a client wants a WebSocket.
func WebSocket(h http.Header) bool {
	return strings.EqualFold(h.Get("Upgrade"), "websocket") && Upgrades(h)
}

// Drain discards what a client sends over a WebSocket, and calls left once the client has left. end closes the connection
// and waits for the goroutine that reads it.
func Drain(ws *websocket.Conn, left func()) (end func()) {
	var reading sync.WaitGroup
	reading.Go(func() {
		defer left()
		_, _ = io.Copy(io.Discard, ws)
	})
	return func() {
		_ = ws.Close()
		reading.Wait()
	}
}

// Hijacker finds the connection below the writers that filters put around it.
type Hijacker struct{ http.ResponseWriter }

// Hijack implements http.Hijacker.
func (h Hijacker) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	return http.NewResponseController(h.ResponseWriter).Hijack()
}
