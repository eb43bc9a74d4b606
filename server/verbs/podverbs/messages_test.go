package podverbs_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"golang.org/x/net/websocket"

	"github.com/rowlock/rowlock/server/verbs/podverbs"
)

// TestLogMessages: a log is sent over a WebSocket too, in each of its subprotocols, after an empty message; the
// request to the kubelet ends when the client leaves; an answer that is not a log stays an ordinary HTTP response.
func TestLogMessages(t *testing.T) {
	s := newSite(t, podverbs.Kubelet{})
	left := make(chan struct{}, 1)
	agent(t, s, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/bad") {
			http.Error(w, "no such log", http.StatusInternalServerError)
			return
		}
		fmt.Fprint(w, "alive\n")
		if r.URL.Query().Get("follow") == "true" {
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			left <- struct{}{}
		}
	})
	s.pod("one", `, "nodeName": "n", "initContainers": [{"name": "bad", "image": "i"}]`)
	dial := func(query string, protocols ...string) (*websocket.Conn, error) {
		config, err := websocket.NewConfig(strings.Replace(s.url, "http", "ws", 1)+pods+"/one/log"+query, "http://localhost")
		if err != nil {
			t.Fatal(err)
		}
		config.Protocol = protocols
		return config.DialContext(t.Context())
	}
	for _, c := range []struct {
		protocols    []string
		chosen, want string
	}{
		{nil, "", "alive\n"},
		{[]string{"binary.k8s.io"}, "binary.k8s.io", "alive\n"},
		{[]string{"base64url.bearer.authorization.k8s.io.c2VjcmV0", "base64.binary.k8s.io"}, "base64.binary.k8s.io", "YWxpdmUK"},
	} {
		ws, err := dial("", c.protocols...)
		if err != nil {
			t.Errorf("%q: %v", c.protocols, err)
			continue
		}
		first, second := "x", ""
		if err := websocket.Message.Receive(ws, &first); err != nil || first != "" {
			t.Errorf("%q: the first message is %q, %v", c.protocols, first, err)
		}
		if err := websocket.Message.Receive(ws, &second); err != nil || second != c.want {
			t.Errorf("%q: got %q, want %q, %v", c.protocols, second, c.want, err)
		}
		if err := websocket.Message.Receive(ws, &second); !errors.Is(err, io.EOF) {
			t.Errorf("%q: after the log %q, %v", c.protocols, second, err)
		}
		if got := strings.Join(ws.Config().Protocol, ","); got != c.chosen {
			t.Errorf("%q: chose %q, want %q", c.protocols, got, c.chosen)
		}
		ws.Close()
	}
	if ws, err := dial("", "v4.channel.k8s.io"); err == nil {
		ws.Close()
		t.Error("a subprotocol of exec was taken for a log")
	}
	if ws, err := dial("?container=bad"); err == nil {
		ws.Close()
		t.Error("the kubelet's error was taken for a log")
	}
	ws, err := dial("?follow=true")
	if err != nil {
		t.Fatal(err)
	}
	for got := ""; got != "alive\n"; {
		if err := websocket.Message.Receive(ws, &got); err != nil {
			t.Fatal(err)
		}
	}
	ws.Close()
	<-left
}
