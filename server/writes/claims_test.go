package writes_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/writes"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// service returns a Service with node ports; zero stands for any.
func service(name, address string, ports ...int32) *corev1.Service {
	s := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Name: name}}
	s.Spec.Type, s.Spec.ClusterIP = corev1.ServiceTypeNodePort, address
	for i, port := range ports {
		s.Spec.Ports = append(s.Spec.Ports, corev1.ServicePort{Name: string(rune('a' + i)), Port: int32(80 + i), NodePort: port})
	}
	return s
}

func (d *desk) makeService(s *corev1.Service, dry bool) error {
	req := d.request("create", "services", "", "")
	req.DryRun = dry
	_, err := d.Create(d.t.Context(), req, s)
	return err
}

func (d *desk) remove(plural, name string) {
	d.t.Helper()
	if _, err := d.Delete(d.t.Context(), d.request("delete", plural, "", name), &writes.Deletion{Name: name, Options: &metav1.DeleteOptions{}}); err != nil {
		d.t.Fatal(err)
	}
}

// has returns the names in a storage, which a server has caught up with.
func (d *desk) has(storage string) (names []string) {
	d.t.Helper()
	d.knows()
	d.cache.Snapshot(storage).Ascend("", "", "", func(it *cache.Item) bool {
		names = append(names, it.Name)
		return true
	})
	return names
}

func (d *desk) wantNone(storages ...string) {
	d.t.Helper()
	for _, storage := range storages {
		if names := d.has(storage); names != nil {
			d.t.Errorf("%s has %q", storage, names)
		}
	}
}

// TestClaimsReleasedElsewhere: a server does not refuse an address or a port that another server has released, nor the name of an
// object that another server has deleted.
func TestClaimsReleasedElsewhere(t *testing.T) {
	const address, port = "10.96.7.7", 30077
	for what, try := range map[string]func(second *desk) error{
		"an address":          func(d *desk) error { return d.makeService(service("y", address, 0), false) },
		"a port":              func(d *desk) error { return d.makeService(service("y", "", port), false) },
		"a port in a dry run": func(d *desk) error { return d.makeService(service("y", "", port), true) },
		"a name in a dry run": func(d *desk) error { return d.makeService(service("x", "", 0), true) },
		"a port for an update": func(d *desk) error {
			_, err := d.Update(t.Context(), d.request("update", "services", "", "there"), put(func(old kinds.Object) (kinds.Object, error) {
				s := objects.Copy(old).(*corev1.Service)
				s.Spec.Ports[0].NodePort = port
				return s, nil
			}))
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			first, second := twoDesks(t)
			for _, s := range []*corev1.Service{service("x", address, port), service("there", "", 0)} {
				if err := first.makeService(s, false); err != nil {
					t.Fatal(err)
				}
			}
			second.knows()
			if err := second.makeService(service("z", address, port), false); !apierrors.IsInvalid(err) {
				t.Errorf("claimed twice: %v", err)
			}
			first.remove("services", "x")
			if err := try(second); err != nil {
				t.Error(err)
			}
		})
	}
}

// parted is a driver whose pages of changes end before the first claim. The next page comes once the server reads the head or
// commits after it was armed.
type parted struct {
	sqlstore.Driver
	armed atomic.Bool
	more  chan struct{}
	open  func()
}

func newParted(d sqlstore.Driver) *parted {
	p := &parted{Driver: d, more: make(chan struct{})}
	p.open = sync.OnceFunc(func() { close(p.more) })
	return p
}

func (p *parted) pass() {
	if p.armed.Load() {
		p.open()
	}
}

func (p *parted) Bounds(ctx context.Context) (sqlstore.Bounds, error) {
	p.pass()
	return p.Driver.Bounds(ctx)
}

func (p *parted) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	p.pass()
	return p.Driver.Apply(ctx, batch, now)
}

func (p *parted) Changes(ctx context.Context, after int64, limit int, previous bool) ([]sqlstore.Change, error) {
	changes, err := p.Driver.Changes(ctx, after, limit, previous)
	n := slices.IndexFunc(changes, func(c sqlstore.Change) bool { return c.Key.Resource[0] == '~' })
	if n > 0 {
		return changes[:n], err
	}
	if n == 0 {
		select {
		case <-p.more:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	return changes, err
}

// TestDeleteBetweenPages: a server that has an object and not yet its claims, as they come with the next page of changes,
// releases them when it deletes the object.
func TestDeleteBetweenPages(t *testing.T) {
	for what, fill := range map[string]func(first *desk) error{
		"a Service": func(d *desk) error { return d.makeService(service("x", "", 0, 0), false) },
		"a Service that cannot be read": func(d *desk) error {
			_, err := d.store.Write(t.Context(),
				sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "services", Namespace: "a", Name: "x"}, Value: []byte(`{"metadata":`)},
				sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "~serviceips", Name: "10.96.7.7"}, Value: kinds.ClaimValue("a/x")})
			return err
		},
	} {
		t.Run(what, func(t *testing.T) {
			memory := storetest.NewShared()
			first, driver := newDeskOn(t, memory.Open()), newParted(storetest.WithoutHints{Driver: memory.Open()})
			second := newDeskOn(t, driver)
			if err := fill(first); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() { done <- second.Objects.CatchUp(t.Context()) }()
			for began := time.Now(); second.cache.Get("services", "a", "x") == nil; time.Sleep(time.Millisecond) {
				if time.Since(began) > 2*time.Minute {
					t.Fatal("the second server does not get the first page")
				}
			}
			second.wantNoClaims()
			driver.armed.Store(true)
			deletion := &writes.Deletion{Name: "x", Options: &metav1.DeleteOptions{}}
			req := second.request("delete", "services", "", "x")
			if second.cache.Get("services", "a", "x").Err() != nil {
				var err error
				if deletion.Unread, err = second.AuthorizeUnread(t.Context(), req); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := second.Delete(t.Context(), req, deletion); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
			first.wantNone("services", "~serviceips", "~serviceports")
		})
	}
}

// wantNoClaims wants no claims in the cache as it is.
func (d *desk) wantNoClaims() {
	d.t.Helper()
	for _, pool := range []string{"~serviceips", "~serviceports"} {
		if n := d.cache.Count(pool); n > 0 {
			d.t.Fatalf("%d claims in %s", n, pool)
		}
	}
}

// TestDeleteCompanionOfElsewhere: the Endpoints of a Service are deleted with it, also if another server has made them.
func TestDeleteCompanionOfElsewhere(t *testing.T) {
	first, second := twoDesks(t)
	if err := first.makeService(service("x", "", 0), false); err != nil {
		t.Fatal(err)
	}
	second.knows()
	if _, err := first.Create(t.Context(), first.request("create", "endpoints", "", ""), &corev1.Endpoints{ObjectMeta: metav1.ObjectMeta{Name: "x"}}); err != nil {
		t.Fatal(err)
	}
	second.remove("services", "x")
	first.wantNone("services", "endpoints", "~serviceips", "~serviceports")
}
