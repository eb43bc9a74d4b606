package podverbs

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"slices"
	"time"

	"golang.org/x/net/websocket"

	"github.com/rowlock/rowlock/server/relay"
	"github.com/rowlock/rowlock/server/verbs"
)

// The subprotocols of a WebSocket that carries a log: bytes as they are, also without a subprotocol, or text.
const (
	binaryProtocol = "binary.k8s.io"
	base64Protocol = "base64.binary.k8s.io"
)

// messageTimeout is for how long a client may leave a message unread before its WebSocket ends.
const messageTimeout = 30 * time.Second

// messages sends what it reads to the client as the messages of a WebSocket, the first of which is empty. It calls
// cancel once the client has left.
func messages(c *verbs.Call, from io.Reader, cancel context.CancelFunc) {
	websocket.Server{
		Handshake: func(config *websocket.Config, _ *http.Request) error {
			if len(config.Protocol) == 0 {
				return nil
			}
			for _, protocol := range config.Protocol {
				if slices.Contains([]string{"", binaryProtocol, base64Protocol}, protocol) {
					config.Protocol = []string{protocol}
					return nil
				}
			}
			return errors.New("no subprotocol is supported")
		},
		Handler: func(ws *websocket.Conn) {
			defer relay.Drain(ws, cancel)()
			copyMessages(ws, from, slices.Contains(ws.Config().Protocol, base64Protocol))
		},
	}.ServeHTTP(relay.Hijacker{ResponseWriter: c.W}, c.R)
}

// copyMessages sends what it reads as it comes, until there is no more or the client does not read.
func copyMessages(ws *websocket.Conn, from io.Reader, text bool) {
	buffer := make([]byte, 2048)
	for n, err := 0, error(nil); ; n, err = from.Read(buffer) {
		if n == 0 && err != nil {
			return
		}
		var message any = buffer[:n]
		if text {
			message = base64.StdEncoding.EncodeToString(buffer[:n])
		}
		_ = ws.SetWriteDeadline(time.Now().Add(messageTimeout))
		if websocket.Message.Send(ws, message) != nil || err != nil {
			return
		}
	}
}
