#!/bin/sh
# github.com/coder/websocket v1.8.15 (formerly nhooyr.io/websocket) as a client, k8s.io/streaming v0.37.2 (the API server's side of exec,
# attach and logs by WebSocket), beside github.com/gorilla/websocket v1.5.3.
#
# Seen: the library reads messages of up to 32768 bytes by default. The server copies a stream with buffers of 32768 bytes and puts the
# channel's number before each, so that the message of a full buffer has 32769: the connection is closed by the client.
# Expected: a default that is not one byte below the most common size of a buffer; the protocol has no limit.
# Who is hurt: terminals and runners in Go: `ls` works, and the first command that prints more than 32 KiB at once ends with "read limited",
# its exit code unknown. On a slow network or with small writes it never happens.
set -eu
dir=$(mktemp -d); trap 'rm -rf "$dir"' EXIT; cd "$dir"
cat >main.go <<'EOF'
package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"time"

	coder "github.com/coder/websocket"
	gorilla "github.com/gorilla/websocket"
	"k8s.io/streaming/pkg/httpstream/wsstream"
)

const protocol = "v5.channel.k8s.io"

func main() {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		size, err := strconv.Atoi(r.URL.Query().Get("size"))
		if err != nil {
			panic(err)
		}
		conn := wsstream.NewConn(map[string]wsstream.ChannelProtocolConfig{protocol: {Binary: true,
			Channels: []wsstream.ChannelType{wsstream.ReadChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.WriteChannel, wsstream.ReadChannel}}})
		_, channels, err := conn.Open(w, r)
		if err != nil {
			panic(err)
		}
		output := struct{ io.Reader }{strings.NewReader(strings.Repeat("x", size))}
		io.Copy(struct{ io.Writer }{channels[1]}, output) // fails if the client closes
		channels[3].Write([]byte(`{"kind":"Status","apiVersion":"v1","status":"Success"}`))
		conn.Close()
	}))
	for _, size := range []int{32767, 32768} {
		url := fmt.Sprintf("ws%s?size=%d", strings.TrimPrefix(server.URL, "http"), size)
		show := func(name string, read func() ([]byte, error)) {
			output, status := 0, "no status"
			var failed error
			for {
				message, err := read()
				if err != nil {
					if status == "no status" {
						failed = err
					}
					break
				}
				switch message[0] {
				case 1:
					output += len(message) - 1
				case 3:
					status = "status"
				}
			}
			fmt.Printf("%d bytes of output, %s: %d bytes, %s, %v\n", size, name, output, status, failed)
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		a, _, err := coder.Dial(ctx, url, &coder.DialOptions{Subprotocols: []string{protocol}})
		if err != nil {
			panic(err)
		}
		show("coder", func() ([]byte, error) { _, message, err := a.Read(ctx); return message, err })
		cancel()
		b, _, err := (&gorilla.Dialer{Subprotocols: []string{protocol}}).Dial(url, nil)
		if err != nil {
			panic(err)
		}
		show("gorilla", func() ([]byte, error) { _, message, err := b.ReadMessage(); return message, err })
	}
}
EOF
go mod init finding 2>/dev/null
go get github.com/coder/websocket@v1.8.15 github.com/gorilla/websocket@v1.5.3 k8s.io/streaming@v0.37.2 2>/dev/null
go run -mod=mod . 2>/dev/null | tee out
cat >want <<'EOF'
32767 bytes of output, coder: 32767 bytes, status, <nil>
32767 bytes of output, gorilla: 32767 bytes, status, <nil>
32768 bytes of output, coder: 0 bytes, no status, failed to read: websocket: message too big: read limited at 32769 bytes
32768 bytes of output, gorilla: 32768 bytes, status, <nil>
EOF
diff want out
