package encryption_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/encryption"
)

const plain = `{"kind":"Secret","data":{"a":"aGVsbG8="}}`

var row = sqlstore.Key{Resource: "secrets", Namespace: "a", Name: "b"}

func seal(t testing.TB, s sqlstore.Sealer, row sqlstore.Key) []byte {
	t.Helper()
	stored, err := s.Seal(t.Context(), row, []byte(plain))
	if err != nil {
		t.Fatal(err)
	}
	return stored
}

func opens(t testing.TB, s sqlstore.Sealer, row sqlstore.Key, stored []byte, stale bool) {
	t.Helper()
	got, was, err := s.Open(t.Context(), row, stored)
	if err != nil || string(got) != plain || was != stale {
		t.Fatalf("%q, stale %v, %v", got, was, err)
	}
}

// refuses wants an error of the provider and the key, without further details.
func refuses(t testing.TB, s sqlstore.Sealer, row sqlstore.Key, stored []byte, provider, key string) {
	t.Helper()
	got, _, err := s.Open(t.Context(), row, stored)
	var unseal *sqlstore.UnsealError
	if got != nil || !errors.As(err, &unseal) || unseal.Key != row || unseal.Provider != provider || unseal.KeyName != key || errors.Is(err, sqlstore.ErrKeyUnavailable) {
		t.Fatalf("%q, %v", got, err)
	}
	if text := err.Error(); strings.Contains(text, "aGVsbG8") || len(text) > 300 {
		t.Fatal(text)
	}
}

var locals = map[string]string{"aesgcm": secret(16, 'x'), "aescbc": secret(32, 'x'), "secretbox": secret(32, 'x')}

// TestProviders: the values of each provider open only for their row, and name the provider.
func TestProviders(t *testing.T) {
	for kind, secret := range locals {
		t.Run(kind, func(t *testing.T) {
			s := set(t, top+rule("secrets, configmaps", with(kind, "my: key", secret), none))
			stored := seal(t, s, row)
			if !bytes.HasPrefix(stored, []byte("rowlock:enc:1:"+kind+":my%3A%20key:")) || bytes.Contains(stored, []byte("Secret")) || bytes.Equal(stored, seal(t, s, row)) {
				t.Fatalf("%q", stored)
			}
			opens(t, s, row, stored, false)
			opens(t, s, row, []byte(plain), true) // it was never encrypted
			for _, other := range []sqlstore.Key{
				{Resource: "secrets", Namespace: "a", Name: "c"}, {Resource: "secrets", Namespace: "c", Name: "b"}, {Resource: "configmaps", Namespace: "a", Name: "b"},
				{Resource: "secrets", Namespace: "ab"}, {Resource: "secrets", Name: "ab"},
			} {
				refuses(t, s, other, stored, kind, "my%3A%20key")
			}
			for at := range stored {
				turned := bytes.Clone(stored)
				turned[at] ^= 1
				if got, _, err := s.Open(t.Context(), row, turned); err == nil && !bytes.Equal(got, turned) {
					t.Fatalf("turned at %d: %q", at, got)
				}
			}
			refuses(t, set(t, top+rule("secrets", with(kind, "other", secret), none)), row, stored, kind, "my%3A%20key")
			refuses(t, set(t, top+rule("secrets", none)), row, stored, kind, "my%3A%20key")
			refuses(t, set(t, top+rule("configmaps", with(kind, "my: key", secret))), row, stored, kind, "my%3A%20key")
			refuses(t, sqlstore.NoEncryption{}, row, stored, kind, "my%3A%20key")
			refuses(t, s, row, []byte("rowlock:enc:1:"), "", "")
		})
	}
}

// TestNames: the provider and key that are named before a value cannot be changed, even if the secret is the same.
func TestNames(t *testing.T) {
	for kind, secret := range locals {
		stored := seal(t, set(t, top+rule("secrets", with(kind, "one", secret))), row)
		renamed := bytes.Replace(stored, []byte(":one:"), []byte(":two:"), 1)
		refuses(t, set(t, top+rule("secrets", with(kind, "two", secret))), row, renamed, kind, "two")
	}
}

// TestOrder: the first provider seals, each opens, and values of other keys than the first are stale.
func TestOrder(t *testing.T) {
	old := with("aescbc", "one", locals["aescbc"])
	before := seal(t, set(t, top+rule("secrets", old)), row)
	two := "aescbc: {keys: [{name: two, secret: " + secret(32, 'y') + "}, {name: one, secret: " + locals["aescbc"] + "}]}"
	for name, providers := range map[string][]string{
		"another key": {two}, "another provider": {with("aesgcm", "one", locals["aesgcm"]), old}, "none": {none, old},
		"the same name": {with("aescbc", "one", secret(32, 'z')), old},
	} {
		t.Run(name, func(t *testing.T) {
			s := set(t, top+rule("secrets", providers...))
			opens(t, s, row, before, true)
			stored := seal(t, s, row)
			opens(t, s, row, stored, false)
			if sealed := string(stored) != plain; sealed == (name == "none") {
				t.Errorf("sealed: %v", sealed)
			}
		})
	}
	s := set(t, top+rule("secrets", old)) // without a provider that reads unencrypted values
	refuses(t, s, row, []byte(plain), "", "")
}

// TestWildcards: which rule is that of which resource.
func TestWildcards(t *testing.T) {
	key := func(name string) string { return with("aesgcm", name, locals["aesgcm"]) }
	s := set(t, top+rule("events", none)+rule("secrets, pandas.awesome.bears.example", key("named"))+rule("'*.apps'", key("apps"))+rule("'*.'", key("core"))+rule("'*.*'", key("all")))
	for resource, want := range map[string]string{
		"events": "", "secrets": "named", "pandas.awesome.bears.example": "named", "deployments.apps": "apps", "configmaps": "core", "jobs.batch": "all",
		"cats.awesome.bears.example": "all", "pandas": "core", "~clusterips": "",
	} {
		stored := seal(t, s, sqlstore.Key{Resource: resource, Name: "x"})
		if _, name, _, sealed := sqlstore.SealedBy(stored); name != want || sealed != (want != "") {
			t.Errorf("%s: %q, want %q", resource, name, want)
		}
	}
	some := set(t, top+rule("secrets", key("a")))
	if stored := seal(t, some, sqlstore.Key{Resource: "configmaps", Name: "x"}); string(stored) != plain {
		t.Errorf("%q", stored)
	}
}

// TestLeft: a cancelled read gets the error of its context, and not that a value is bad.
func TestLeft(t *testing.T) {
	s := set(t, top+rule("secrets", with("aesgcm", "a", locals["aesgcm"])))
	stored := seal(t, s, row)
	ctx, leave := context.WithCancel(t.Context())
	leave()
	if _, _, err := s.Open(ctx, sqlstore.Key{Resource: "secrets", Name: "other"}, stored); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

func FuzzOpen(f *testing.F) {
	s := set(f, top+rule("secrets", with("aesgcm", "a", locals["aesgcm"]), with("aescbc", "a", locals["aescbc"]), with("secretbox", "a", locals["secretbox"]), none))
	for kind, secret := range locals {
		f.Add(seal(f, set(f, top+rule("secrets", with(kind, "a", secret))), row))
	}
	f.Add([]byte(plain))
	f.Add([]byte("rowlock:enc:1:aescbc:a:"))
	f.Fuzz(func(t *testing.T, stored []byte) {
		got, _, err := s.Open(t.Context(), row, stored)
		sealed := bytes.HasPrefix(stored, []byte(sqlstore.SealedPrefix))
		switch {
		case err == nil && sealed && string(got) != plain: // which was sealed here, or in another process
			t.Fatalf("%q opened: %q", stored, got)
		case err == nil && !sealed && !bytes.Equal(got, stored):
			t.Fatalf("%q became %q", stored, got)
		case err != nil && !sealed:
			t.Fatal(err)
		}
	})
}

func BenchmarkSealOpen1KB(b *testing.B) {
	value := bytes.Repeat([]byte("0123456789abcdef"), 64)
	for kind, secret := range locals {
		s, err := opened(b, top+rule("secrets", with(kind, "a", secret)), func(c *encryption.Config) {})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(kind, func(b *testing.B) {
			b.ReportAllocs()
			for range b.N {
				stored, err := s.Seal(b.Context(), row, value)
				if err != nil {
					b.Fatal(err)
				}
				if _, _, err := s.Open(b.Context(), row, stored); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// TestManyResources: resources that clients define leave a bounded number of series, and those that are used have some.
func TestManyResources(t *testing.T) {
	s := set(t, top+rule("'*.*'", with("aesgcm", "a", secret(16, 'x'))))
	stored := seal(t, s, row)
	for i := range 3 * 4096 {
		s.Covers(fmt.Sprintf("pandas.group%d.example", i))
	}
	opens(t, s, row, stored, false)
	registry := prometheus.NewRegistry()
	registry.MustRegister(s.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	n, found := 0, false
	for _, f := range families {
		n += len(f.GetMetric())
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				found = found || l.GetName() == "resource" && l.GetValue() == row.Resource
			}
		}
	}
	if n > 2*4096+20 || !found {
		t.Errorf("%d series, and the resource that is used has some: %t", n, found)
	}
}
