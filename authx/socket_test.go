package authx_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
)

// only knows one token.
type only string

func (o only) AuthenticateToken(_ context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	return &authx.Authenticated{Identity: &authx.Identity{Name: "u"}}, token == string(o), nil
}

func TestSocket(t *testing.T) {
	const good = authx.SocketProtocol + "Z29vZA" // "good"
	for _, tc := range []struct {
		name      string
		protocols []string
		plain     bool // no handshake
		who       string
		err, left string
	}{
		{name: "none"},
		{name: "no token", protocols: []string{"v4.channel.k8s.io"}, left: "v4.channel.k8s.io"},
		{name: "good", protocols: []string{good + ", a, b"}, who: "u", left: "a,b"},
		{name: "good, headers", protocols: []string{"a", good, "b"}, who: "u", left: "a,b"},
		{name: "no handshake", protocols: []string{good + ", a"}, plain: true, left: good + ", a"},
		{name: "alone", protocols: []string{good}, err: "missing additional subprotocol", left: good},
		{name: "two", protocols: []string{good + "," + good + ",a"}, err: "multiple base64.bearer.authorization tokens specified", left: good + "," + good + ",a"},
		{name: "unknown", protocols: []string{authx.SocketProtocol + "YmFk,a"}, err: "invalid bearer token", left: authx.SocketProtocol + "YmFk,a"},
		{name: "no base64", protocols: []string{authx.SocketProtocol + "=,a"}, err: "invalid base64.bearer.authorization token encoding", left: authx.SocketProtocol + "=,a"},
		{name: "no text", protocols: []string{authx.SocketProtocol + "_w,a"}, err: "invalid base64.bearer.authorization token encoding", left: authx.SocketProtocol + "_w,a"},
		{name: "empty", protocols: []string{authx.SocketProtocol + ",a"}, left: authx.SocketProtocol + ",a"},
	} {
		r := httptest.NewRequest(http.MethodGet, "/", nil)
		r.Header["Sec-Websocket-Protocol"] = tc.protocols
		if !tc.plain {
			r.Header.Set("Upgrade", "WebSocket")
			r.Header.Set("Connection", "keep-alive, Upgrade")
		}
		who, mine, err := authx.Socket{Tokens: only("good")}.Authenticate(r)
		if (err != nil) != (tc.err != "") || err != nil && !strings.Contains(err.Error(), tc.err) || mine != (tc.who != "" || tc.err != "") || (who != nil) != (tc.who != "") {
			t.Errorf("%s: %v %v %v", tc.name, who, mine, err)
		}
		if left := strings.Join(r.Header["Sec-Websocket-Protocol"], ";"); left != tc.left {
			t.Errorf("%s: %q is left", tc.name, left)
		}
	}
}

func TestSplitServiceAccount(t *testing.T) {
	for user, want := range map[string]string{
		"system:serviceaccount:a:b": "a/b", "system:serviceaccount:a:b.c": "a/b.c", "system:serviceaccount:a:b:c": "", "system:serviceaccount:A:b": "",
		"system:serviceaccount::b": "", "system:serviceaccount:a:": "", "system:serviceaccount:a": "", "system:serviceaccount:a:b c": "", "a:b": "",
	} {
		namespace, name, ok := authx.SplitServiceAccount(user)
		if got := strings.Trim(namespace+"/"+name, "/"); got != want || ok != (want != "") {
			t.Errorf("%s: %q %v", user, got, ok)
		}
	}
}
