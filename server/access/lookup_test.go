package access_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/authx/bootstrap"
	"github.com/rowlock/rowlock/authx/serviceaccount"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

const (
	deleting = `,"deletionTimestamp":"2026-01-02T03:04:05Z","deletionGracePeriodSeconds":0,"finalizers":["x.example/a"]`
	garbage  = `{"kind":"Secret","metadata":{"name":"broken"`
)

var deletedAt = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// startLookup returns a server, and a look-up of its objects.
func startLookup(t *testing.T, options ...func(*server.Config)) (*servertest.Server, access.Lookup) {
	t.Helper()
	s := servertest.Start(t, append(options, servertest.Idle)...)
	return s, access.NewLookup(access.Host{Catalogue: s.Verbs.Catalogue, Cache: s.Cache, Objects: s.Verbs.Objects, API: s.Server})
}

func TestLookupOfObjects(t *testing.T) {
	s, lookup := startLookup(t)
	s.Put("serviceaccounts", "ns", "live", `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"live","namespace":"ns","uid":"1"}}`)
	s.Put("serviceaccounts", "ns", "going", `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"going","namespace":"ns","uid":"2"`+deleting+`}}`)
	s.Put("pods", "ns", "live", `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"live","namespace":"ns","uid":"3"}}`)
	s.Put("nodes", "", "live", `{"kind":"Node","apiVersion":"v1","metadata":{"name":"live","uid":"4"}}`)
	s.Put("secrets", "ns", "broken", garbage)
	for _, tc := range []struct {
		plural, namespace, name string
		want                    serviceaccount.Object
		found, fails            bool
	}{
		{"serviceaccounts", "ns", "live", serviceaccount.Object{UID: "1"}, true, false},
		{"serviceaccounts", "ns", "going", serviceaccount.Object{UID: "2", Deleted: deletedAt}, true, false},
		{"serviceaccounts", "other", "live", serviceaccount.Object{}, false, false},
		{"serviceaccounts", "ns", "absent", serviceaccount.Object{}, false, false},
		{"serviceaccounts", "ns", "", serviceaccount.Object{}, false, false},
		{"pods", "ns", "live", serviceaccount.Object{UID: "3"}, true, false},
		{"pods", "ns", "going", serviceaccount.Object{}, false, false},
		{"nodes", "", "live", serviceaccount.Object{UID: "4"}, true, false},
		{"secrets", "ns", "broken", serviceaccount.Object{}, false, true},
		{"secrets", "ns", "a/b", serviceaccount.Object{}, false, true},
	} {
		got, found, err := lookup.Object(t.Context(), tc.plural, tc.namespace, tc.name)
		got.Deleted = got.Deleted.UTC()
		if got != tc.want || found != tc.found || (err != nil) != tc.fails {
			t.Errorf("%s %s/%s: %v %v %v", tc.plural, tc.namespace, tc.name, got, found, err)
		}
	}
}

func TestLookupOfSecrets(t *testing.T) {
	s, lookup := startLookup(t)
	put := func(name, meta, data string) {
		s.Put("secrets", "ns", name, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"`+name+`","namespace":"ns","uid":"u"`+meta+`},"data":{`+data+`}}`)
	}
	put("new", "", `"token":"dG9rZW4="`)
	put("used", `,"labels":{"kubernetes.io/legacy-token-last-used":"2026-01-01"}`, `"token":"dG9rZW4="`)
	put("invalid", `,"labels":{"kubernetes.io/legacy-token-invalid-since":"2026-01-01"}`, `"token":"dG9rZW4="`)
	put("going", deleting, `"token":"dG9rZW4="`)
	put("empty", "", `"other":"dG9rZW4="`)
	s.Put("secrets", "ns", "broken", garbage)
	here := serviceaccount.Object{UID: "u"}
	for _, tc := range []struct {
		name         string
		want         serviceaccount.Secret
		found, fails bool
	}{
		{"new", serviceaccount.Secret{Object: here, Token: []byte("token")}, true, false},
		{"used", serviceaccount.Secret{Object: here, Token: []byte("token"), LastUsed: "2026-01-01"}, true, false},
		{"invalid", serviceaccount.Secret{Object: here, Token: []byte("token"), Invalid: true}, true, false},
		{"going", serviceaccount.Secret{Object: serviceaccount.Object{UID: "u", Deleted: deletedAt}, Token: []byte("token")}, true, false},
		{"empty", serviceaccount.Secret{Object: here}, true, false},
		{"absent", serviceaccount.Secret{}, false, false},
		{"", serviceaccount.Secret{}, false, false},
		{"broken", serviceaccount.Secret{}, false, true},
	} {
		got, found, err := lookup.Secret(t.Context(), "ns", tc.name)
		if d := cmp.Diff(tc.want, got); d != "" || found != tc.found || (err != nil) != tc.fails {
			t.Errorf("%q: %v %v %s", tc.name, found, err, d)
		}
	}
}

func TestLookupOfBootstrapSecrets(t *testing.T) {
	s, lookup := startLookup(t)
	put := func(namespace, name, meta string) {
		s.Put("secrets", namespace, name, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"`+name+`","namespace":"`+namespace+`","uid":"u"`+meta+`},`+
			`"type":"bootstrap.kubernetes.io/token","data":{"token-id":"YWJjZGVm"}}`)
	}
	put("kube-system", "live", "")
	put("kube-system", "going", deleting)
	put("default", "elsewhere", "")
	const kind = "bootstrap.kubernetes.io/token"
	data := map[string][]byte{"token-id": []byte("abcdef")}
	for _, tc := range []struct {
		name  string
		want  bootstrap.Secret
		found bool
	}{
		{"live", bootstrap.Secret{Type: kind, Data: data}, true},
		{"going", bootstrap.Secret{Type: kind, Data: data, Deleting: true}, true},
		{"elsewhere", bootstrap.Secret{}, false},
		{"absent", bootstrap.Secret{}, false},
	} {
		got, found, err := lookup.BootstrapSecret(t.Context(), tc.name)
		if d := cmp.Diff(tc.want, got); d != "" || found != tc.found || err != nil {
			t.Errorf("%q: %v %v %s", tc.name, found, err, d)
		}
	}
}

// TestLookupIsOfNow: it finds an object that another server has just written and that is not in
// this server's memory yet; without the store it fails.
func TestLookupIsOfNow(t *testing.T) {
	database := storetest.NewShared()
	_, lookup := startLookup(t, servertest.On(database.Open(), sqlstore.Config{}))
	other := servertest.Start(t, servertest.Idle, servertest.On(database.Open(), sqlstore.Config{}))
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		other.Put("serviceaccounts", "ns", name, `{"kind":"ServiceAccount","apiVersion":"v1","metadata":{"name":"`+name+`","namespace":"ns","uid":"u"}}`)
		if _, found, err := lookup.Object(t.Context(), "serviceaccounts", "ns", name); !found || err != nil {
			t.Errorf("%s: %v %v", name, found, err)
		}
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, found, err := lookup.Secret(ctx, "ns", "absent"); found || err == nil {
		t.Errorf("a store that cannot be asked: %v %v", found, err)
	}
}
