package watches

import (
	"context"
	"time"

	"golang.org/x/net/websocket"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/relay"
)

// serveWebSocket sends each event as one message: text for JSON, else binary.
func (w *stream) serveWebSocket() error {
	seat := w.request.Scope.Seat
	if seat != nil {
		seat.Sending() // the handshake
	}
	websocket.Handler(func(ws *websocket.Conn) {
		if seat != nil && seat.Sent() != nil {
			return
		}
		ctx, cancel := context.WithCancel(w.request.R.Context())
		defer relay.Drain(ws, cancel)()
		mediaType := w.view.Negotiated().Type
		w.run(ctx, &websocketOutput{ws: ws, text: mediaType == codecs.JSON, framed: mediaType == codecs.Protobuf})
	}).ServeHTTP(relay.Hijacker{ResponseWriter: w.request.W}, w.request.R)
	return nil
}

// websocketOutput sends WebSocket messages.
type websocketOutput struct {
	ws     *websocket.Conn
	text   bool
	framed bool // frames begin with their length, which a message does not need
}

func (m *websocketOutput) send(frame []byte) error {
	_ = m.ws.SetWriteDeadline(time.Now().Add(writeTimeout))
	data := message{payload: frame, kind: websocket.BinaryFrame}
	switch {
	case m.text:
		data.kind = websocket.TextFrame
	case m.framed:
		data.payload = frame[4:]
	}
	err := asIsCodec.Send(m.ws, data)
	if err != nil {
		return errGone
	}
	return nil
}

func (m *websocketOutput) flush() error       { return nil }
func (m *websocketOutput) blocked() bool      { return false }
func (m *websocketOutput) postpones(int) bool { return false }
func (m *websocketOutput) splits() bool       { return false }

// message is a frame without a copy: all watches share the frames of events.
type message struct {
	payload []byte
	kind    byte
}

var asIsCodec = websocket.Codec{Marshal: func(v any) ([]byte, byte, error) {
	m := v.(message)
	return m.payload, m.kind, nil
}}
