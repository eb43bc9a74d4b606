package authx

import (
	"encoding/base64"
	"strings"
	"testing"
)

// FuzzSocketToken: a token that is found was sent, by itself, and what is left of the
// subprotocols never holds one.
func FuzzSocketToken(f *testing.F) {
	f.Add(SocketProtocol+"dG9rZW4, v4.channel.k8s.io", "token")
	f.Add("a,"+SocketProtocol+"dG9rZW4,"+SocketProtocol+"dG9rZW4", "")
	f.Add(SocketProtocol+"=", "\xff")
	f.Fuzz(func(t *testing.T, header, token string) {
		got, others, err := socketToken([]string{header, "v5.channel.k8s.io"})
		if err == nil && got != "" && !strings.Contains(header, SocketProtocol+base64.RawURLEncoding.EncodeToString([]byte(got))) {
			// Other bytes may stand for the same token only where bits are left over.
			if data, err := base64.RawURLEncoding.Strict().DecodeString(base64.RawURLEncoding.EncodeToString([]byte(got))); err != nil || string(data) != got {
				t.Fatalf("%q: token %q", header, got)
			}
		}
		for _, o := range others {
			if strings.HasPrefix(o, SocketProtocol) {
				t.Fatalf("%q: %q is left", header, o)
			}
		}
		sent := SocketProtocol + base64.RawURLEncoding.EncodeToString([]byte(token))
		got, others, err = socketToken([]string{"x, " + sent + " ,y"})
		if valid := strings.ToValidUTF8(token, "") == token; (err == nil) != valid || valid && (got != token || strings.Join(others, ",") != "x,y") {
			t.Fatalf("%q: %q %v %v", token, got, others, err)
		}
	})
}
