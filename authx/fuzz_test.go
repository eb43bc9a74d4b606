package authx_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx"
)

// taker takes every token, and keeps it.
type taker struct{ token string }

func (k *taker) AuthenticateToken(_ context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	k.token = token
	return &authx.Authenticated{}, true, nil
}

// FuzzSocketToken: a token that is found was sent, by itself, and what is left of the
// subprotocols never holds one.
func FuzzSocketToken(f *testing.F) {
	f.Add(authx.SocketProtocol+"dG9rZW4, v4.channel.k8s.io", "token")
	f.Add("a,"+authx.SocketProtocol+"dG9rZW4,"+authx.SocketProtocol+"dG9rZW4", "")
	f.Add(authx.SocketProtocol+"=", "\xff")
	const name = "Sec-Websocket-Protocol"
	take := func(headers ...string) (token string, others []string, err error) {
		tokens := &taker{}
		r := (&http.Request{Header: http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, name: headers}}).WithContext(context.Background())
		if _, _, err = (authx.Socket{Tokens: tokens}).Authenticate(r); err != nil {
			return "", nil, err
		}
		if tokens.token != "" {
			others = strings.Split(strings.Join(r.Header[name], ","), ",")
		}
		return tokens.token, others, nil
	}
	f.Fuzz(func(t *testing.T, header, token string) {
		got, others, err := take(header, "v5.channel.k8s.io")
		if err == nil && got != "" && !strings.Contains(header, authx.SocketProtocol+base64.RawURLEncoding.EncodeToString([]byte(got))) {
			// Other bytes may stand for the same token only where bits are left over.
			if data, err := base64.RawURLEncoding.Strict().DecodeString(base64.RawURLEncoding.EncodeToString([]byte(got))); err != nil || string(data) != got {
				t.Fatalf("%q: token %q", header, got)
			}
		}
		for _, o := range others {
			if strings.HasPrefix(o, authx.SocketProtocol) {
				t.Fatalf("%q: %q is left", header, o)
			}
		}
		sent := authx.SocketProtocol + base64.RawURLEncoding.EncodeToString([]byte(token))
		got, others, err = take("x, " + sent + " ,y")
		if valid := strings.ToValidUTF8(token, "") == token; (err == nil) != valid || valid && (got != token || token != "" && strings.Join(others, ",") != "x,y") {
			t.Fatalf("%q: %q %v %v", token, got, others, err)
		}
	})
}
