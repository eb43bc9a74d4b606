package sqlstore_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
)

func TestSealedBy(t *testing.T) {
	for _, c := range []struct {
		stored, provider, key, rest string
		sealed                      bool
	}{
		{stored: `{"kind":"Secret"}`},
		{stored: ""},
		{stored: "rowlock:enc:2:aesgcm:a:x"},
		{stored: sqlstore.SealHead("aesgcm", "a") + "x:y", provider: "aesgcm", key: "a", rest: "x:y", sealed: true},
		{stored: sqlstore.SealHead("kmsv2", "of me: 100%\n") + "{}", provider: "kmsv2", key: "of%20me%3A%20100%25%0A", rest: "{}", sealed: true},
		{stored: "rowlock:enc:1:aesgcm", sealed: true},
		{stored: "rowlock:enc:1:aesgcm:a", sealed: true},
		{stored: "rowlock:enc:1:" + strings.Repeat("x", 1<<20) + ":a:", sealed: true},
	} {
		provider, key, head, sealed := sqlstore.SealedBy([]byte(c.stored))
		if provider != c.provider || key != c.key || sealed != c.sealed || c.rest != "" && c.stored[head:] != c.rest {
			t.Errorf("%.60q: %q, %q, %d, %v", c.stored, provider, key, head, sealed)
		}
	}
}

func TestUnsealed(t *testing.T) {
	key := sqlstore.Key{Resource: "secrets", Namespace: "a", Name: "b"}
	var none sqlstore.NoEncryption
	if stored, err := none.Seal(t.Context(), key, []byte("{}")); string(stored) != "{}" || err != nil {
		t.Error(stored, err)
	}
	if plain, stale, err := none.Open(t.Context(), key, []byte("{}")); string(plain) != "{}" || stale || err != nil {
		t.Error(plain, stale, err)
	}
	_, _, err := none.Open(t.Context(), key, []byte(sqlstore.SealHead("secretbox", "k")+"abc"))
	var unseal *sqlstore.UnsealError
	if !errors.As(err, &unseal) || unseal.Key != key || unseal.Provider != "secretbox" || unseal.KeyName != "k" || !errors.Is(err, sqlstore.ErrSealed) {
		t.Fatal(err)
	}
	if text := err.Error(); strings.Contains(text, "abc") || !strings.Contains(text, `secrets/a/b: cannot be decrypted (secretbox, key "k")`) {
		t.Error(text)
	}
}
