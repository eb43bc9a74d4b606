package server

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestReminder: repeated messages become rarer and rarer.
func TestReminder(t *testing.T) {
	var r reminder
	var logged []time.Duration
	start := time.Unix(1000, 0)
	for at := time.Duration(0); at < 4*time.Hour; at += healEvery {
		if r.due(start.Add(at)) {
			logged = append(logged, at)
		}
	}
	if len(logged) < 8 || len(logged) > 12 || logged[0] != 0 || logged[1] != time.Minute || logged[2] != 3*time.Minute {
		t.Errorf("it is logged after %v", logged)
	}
	if last := logged[len(logged)-1] - logged[len(logged)-2]; last != time.Hour {
		t.Errorf("the last space is %v", last)
	}
}

// TestOwnObjectsWithoutKeys: objects that cannot be written while a key is unavailable are logged once, are
// not tried while it is, and are tried again when it is back.
func TestOwnObjectsWithoutKeys(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	keys := storetest.NewTestSealer("one")
	away := fmt.Errorf("%w: nobody answers", sqlstore.ErrKeyUnavailable)
	keys.Fail(away)
	now := time.Unix(1000, 0)
	store := sqlstore.New(storetest.NewShared().Open(), sqlstore.Config{Sealer: keys})
	o := &ownObjects{
		cfg:   &Config{Store: store, Log: log, Clock: func() time.Time { return now }},
		cache: NewCache(kinds.NewCatalogue(nil), json.New(json.Settings{}), log),
	}
	refused := apierrors.NewInternalError(&sqlstore.SealError{Key: sqlstore.Key{Resource: "secrets"}, Err: away})
	pass := func() {
		t.Helper()
		o.failing = nil
		for i := range 2 * maxLogged {
			if err := o.tolerate(fmt.Sprintf("secrets/s%d", i), refused); err != nil {
				t.Fatal(err)
			}
		}
		o.missing = o.failing
		o.logState(true, nil)
	}
	for range 100 {
		pass()
		now = now.Add(healEvery)
	}
	if n := strings.Count(out.String(), "level=ERROR"); n != maxLogged {
		t.Errorf("%d objects are named, want %d", n, maxLogged)
	}
	if n := strings.Count(out.String(), "some default objects are missing"); n != 5 { // after 0, 1, 3, 7 and 15 minutes of 17
		t.Errorf("%d reminders", n)
	}
	if err := o.locked(t.Context()); !errors.Is(err, sqlstore.ErrKeyUnavailable) {
		t.Errorf("while the key is away a pass is kept from by %v", err)
	}
	keys.Fail(errors.New("the plugin refuses"))
	if err := o.locked(t.Context()); err != nil {
		t.Errorf("a pass is kept from by %v, which no key is the reason of", err)
	}
	keys.Fail(nil)
	if err := o.locked(t.Context()); err != nil {
		t.Errorf("with the key a pass is kept from by %v", err)
	}
	o.missing = nil
	o.logState(false, nil)
	pass()
	if n := strings.Count(out.String(), "level=ERROR"); n != 2*maxLogged || !strings.Contains(out.String(), "all default objects exist") {
		t.Errorf("after all were there, %d objects are named in all", n)
	}
	if err := o.tolerate("secrets/s0", errors.New("no space left")); err == nil {
		t.Error("an error is forgiven that no key is the reason of")
	}
}

// TestStartWaitsForTheStore: a start goes on once a store that was away is back, waits for no
// longer than a while, and for nothing else.
func TestStartWaitsForTheStore(t *testing.T) {
	away, other := fmt.Errorf("namespaces: %w", apierrors.NewServiceUnavailable("away")), errors.New("other")
	for name, c := range map[string]struct {
		away     time.Duration // for how long the store is
		then     error
		writable error
		over     time.Duration // when a loop fails; 0: none does
		took     time.Duration
		want     error
	}{
		"at once":             {0, nil, nil, 0, 0, nil},
		"back soon":           {7 * time.Second, nil, nil, 0, 7 * time.Second, nil},
		"not back":            {time.Hour, nil, nil, 0, startTimeout, away},
		"something else":      {2 * time.Second, other, nil, 0, 2 * time.Second, other},
		"writes are refused":  {time.Hour, nil, sqlstore.ErrFull, 0, 0, away},
		"the store has ended": {time.Hour, nil, nil, 1500 * time.Millisecond, 1500 * time.Millisecond, away},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				over := make(chan struct{})
				if c.over > 0 {
					time.AfterFunc(c.over, func() { close(over) })
				}
				err := retryWrites(t.Context(), over, func(context.Context) error {
					if time.Since(began) < c.away {
						return away
					}
					return c.then
				}, func() error { return c.writable })
				if took := time.Since(began); took != c.took || !errors.Is(err, c.want) {
					t.Errorf("%v after %s, want %v after %s", err, took, c.want, c.took)
				}
			})
		})
	}
}

// making is an API without objects, which records the created ones.
type making struct{ made []string }

func (m *making) Call(_ context.Context, _, method, path, _ string, body, _ any) error {
	if method == "GET" {
		return apierrors.NewNotFound(schema.GroupResource{}, path)
	}
	m.made = append(m.made, path+"/"+body.(metav1.Object).GetName())
	return nil
}

// TestOwnObjectsAreMadeAgain: namespaces of the system, and the kubernetes Service with its endpoints, come back while
// the server runs, as on a stock server.
func TestOwnObjectsAreMadeAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &making{}
		o := &ownObjects{
			cfg: &Config{Log: slog.New(slog.DiscardHandler), Clock: time.Now, Bootstrap: Bootstrap{ServiceIP: net.IPv4(10, 96, 0, 1), AdvertiseIP: net.IPv4(192, 0, 2, 1), AdvertisePort: 6443}},
			api: api, cache: NewCache(kinds.NewCatalogue(nil), json.New(json.Settings{}), slog.New(slog.DiscardHandler)),
		}
		ctx, cancel := context.WithTimeout(t.Context(), healEvery+time.Second)
		defer cancel()
		if err := o.heal(ctx); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"/api/v1/namespaces/kube-system", "/api/v1/namespaces/kube-public", "/api/v1/namespaces/kube-node-lease", "/api/v1/namespaces/default",
			"/api/v1/namespaces/default/services/kubernetes", "/api/v1/namespaces/default/endpoints/kubernetes", "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices/kubernetes",
		}
		if diff := cmp.Diff(want, api.made); diff != "" {
			t.Error(diff)
		}
	})
}
