package authx_test

import (
	"context"
	"encoding/base64"
	"net/http"
	"slices"
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

// FuzzSocketToken: a token that is found was sent, by itself, and the rest of the subprotocols never contains
// one.
func FuzzSocketToken(f *testing.F) {
	f.Add(authx.SocketProtocol+"dG9rZW4, v4.channel.k8s.io", "token")
	f.Add("a,"+authx.SocketProtocol+"dG9rZW4,"+authx.SocketProtocol+"dG9rZW4", "")
	f.Add(authx.SocketProtocol+"=", "\xff")
	const name = "Sec-Websocket-Protocol"
	// take also checks that a client that sends no token, an empty one or a wrong one loses no subprotocol.
	take := func(t *testing.T, headers ...string) (token string, others []string, err error) {
		tokens := &taker{}
		r := (&http.Request{Header: http.Header{"Upgrade": {"websocket"}, "Connection": {"Upgrade"}, name: slices.Clone(headers)}}).WithContext(context.Background())
		_, mine, err := (authx.Socket{Tokens: tokens}).Authenticate(r)
		if taken := err == nil && tokens.token != ""; mine != (err != nil || taken) || !taken && !slices.Equal(r.Header[name], headers) {
			t.Fatalf("%q: token %q, mine %v, %v, %q are left", headers, tokens.token, mine, err, r.Header[name])
		} else if !taken {
			return "", nil, err
		}
		return tokens.token, strings.Split(strings.Join(r.Header[name], ","), ","), nil
	}
	f.Fuzz(func(t *testing.T, header, token string) {
		got, others, err := take(t, header, "v5.channel.k8s.io")
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
		got, others, err = take(t, "x, "+sent+" ,y")
		left := "x,y"
		if token == "" { // nothing is taken, and take has seen that all is left
			left = ""
		}
		if valid := strings.ToValidUTF8(token, "") == token; (err == nil) != valid || valid && (got != token || strings.Join(others, ",") != left) {
			t.Fatalf("%q: %q %v %v", token, got, others, err)
		}
	})
}
