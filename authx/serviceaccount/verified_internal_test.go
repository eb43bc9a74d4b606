package serviceaccount

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
)

// there finds every account.
type there struct{}

func (there) Object(context.Context, string, string, string) (Object, bool, error) {
	return Object{UID: "u"}, true, nil
}

func (there) Secret(context.Context, string, string) (Secret, bool, error) {
	return Secret{}, false, nil
}

// TestRemembered: the number and length of cached tokens is bounded, whatever their holders have put into
// them.
func TestRemembered(t *testing.T) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	local, err := NewLocal(key)
	if err != nil {
		t.Fatal(err)
	}
	a := New(Config{Issuers: []string{"https://issuer"}, Keys: Fixed{local.Key()}, Lookup: there{}})
	use := func(audiences ...string) {
		t.Helper()
		token, _, err := NewSigner("https://issuer", local).Issue(t.Context(), &authx.Grant{Namespace: "n", Account: authx.Ref{Name: "a", UID: "u"}, Audiences: audiences, Issued: time.Now(), Expires: time.Now().Add(time.Hour)})
		if err != nil {
			t.Fatal(err)
		}
		if _, mine, err := a.AuthenticateToken(t.Context(), token, nil); !mine || err != nil {
			t.Fatal(mine, err)
		}
	}
	long := make([]string, 1000)
	for i := range long {
		long[i] = fmt.Sprint("audience ", i)
	}
	use(long...)
	if n := len(a.verified.entries); n != 0 {
		t.Errorf("%d long tokens are remembered", n)
	}
	use("short")
	if n := len(a.verified.entries); n != 1 {
		t.Errorf("%d short tokens are remembered", n)
	}
	for i := range 2 * remembered {
		a.verified.put(sha256.Sum256(fmt.Append(nil, i)), &accepted{}, time.Now())
		if n := len(a.verified.entries); n == 0 || n > remembered {
			t.Fatalf("%d tokens are remembered", n)
		}
	}
}
