package clientcert_test

import (
	"encoding/pem"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/authx/clientcert"
)

// TestAuthoritiesWhole: a bundle that is cut off anywhere is refused, or holds all
// certificates before the cut where that falls between two of them.
func TestAuthoritiesWhole(t *testing.T) {
	block := func() string {
		return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: issue(t, nil, nil).cert.Raw}))
	}
	one := "# a comment\n" + block()
	text := one + block()
	for n := range len(text) {
		certs, err := clientcert.ParseAuthorities([]byte(text[:n]))
		want := 0
		switch rest := text[min(n, len(one)):n]; {
		case n == len(text)-1: // the last line feed does not count
			want = 2
		case n >= len(one)-1 && strings.HasPrefix("-----BEGI", rest): // nothing has begun yet
			want = 1
		}
		switch {
		case want > 0 && (err != nil || len(certs) != want):
			t.Fatalf("%d: %d certificates, %v", n, len(certs), err)
		case want > 0:
		case err == nil:
			t.Fatalf("the first %d of %d bytes are taken for %d certificates", n, len(text), len(certs))
		}
	}
	if certs, err := clientcert.ParseAuthorities([]byte(text)); err != nil || len(certs) != 2 {
		t.Fatal(len(certs), err)
	}
	broken := strings.Replace(one, "MII", "AII", 1)
	if _, err := clientcert.ParseAuthorities([]byte(broken)); err == nil {
		t.Fatal("what is no certificate is taken for one")
	}
}
