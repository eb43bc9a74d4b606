package reconcile_test

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// oneLease is an API that has one Lease.
type oneLease struct {
	mu      sync.Mutex
	lease   *coordinationv1.Lease
	version int
}

var leaseGroup = schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"}

// change writes the Lease as another client.
func (o *oneLease) change(f func(*coordinationv1.LeaseSpec)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	f(&o.lease.Spec)
	o.version++
	o.lease.ResourceVersion = strconv.Itoa(o.version)
}

func (o *oneLease) spec() coordinationv1.LeaseSpec {
	o.mu.Lock()
	defer o.mu.Unlock()
	return *o.lease.Spec.DeepCopy()
}

func (o *oneLease) Call(_ context.Context, _, method, _, _ string, body, into any) error {
	o.mu.Lock()
	defer o.mu.Unlock()
	if method == http.MethodGet {
		if o.lease == nil {
			return apierrors.NewNotFound(leaseGroup, "l")
		}
		o.lease.DeepCopyInto(into.(*coordinationv1.Lease))
		return nil
	}
	sent := body.(*coordinationv1.Lease)
	switch {
	case method == http.MethodPost && o.lease != nil:
		return apierrors.NewAlreadyExists(leaseGroup, "l")
	case method == http.MethodPut && sent.ResourceVersion != o.lease.ResourceVersion:
		return apierrors.NewConflict(leaseGroup, "l", nil)
	}
	o.version++
	o.lease = sent.DeepCopy()
	o.lease.ResourceVersion = strconv.Itoa(o.version)
	o.lease.DeepCopyInto(into.(*coordinationv1.Lease))
	return nil
}

// cut is an API that can be out of reach: it fails, or lets its callers wait.
type cut struct {
	reconcile.API
	stalls bool
	mu     sync.Mutex
	off    bool
}

func (c *cut) set(off bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.off = off
}

func (c *cut) Call(ctx context.Context, agent, method, path, contentType string, body, into any) error {
	c.mu.Lock()
	off := c.off
	c.mu.Unlock()
	if off && c.stalls {
		<-ctx.Done()
	}
	if off {
		return errors.New("out of reach")
	}
	return c.API.Call(ctx, agent, method, path, contentType, body, into)
}

// workers notes which servers work.
type workers struct {
	t    *testing.T
	mu   sync.Mutex
	at   map[string]bool
	most int
}

func (w *workers) now() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	text := ""
	for _, name := range []string{"a", "b"} {
		if w.at[name] {
			text += name
		}
	}
	return text
}

// run lets a server take part until ctx ends.
func (w *workers) run(ctx context.Context, all *sync.WaitGroup, api reconcile.API, name string) {
	note := func(works bool) {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.at[name] = works
		n := 0
		for _, one := range w.at {
			if one {
				n++
			}
		}
		w.most = max(w.most, n)
	}
	l := &reconcile.LeaderElection{Base: reconcile.Base{API: api, Log: slog.New(slog.DiscardHandler)}, Name: "l", Identity: name, Times: reconcile.StandardLeaseTimes(), Work: func(ctx context.Context) error {
		note(true)
		<-ctx.Done()
		note(false)
		return nil
	}}
	all.Go(func() { _ = l.Run(ctx) })
}

// expect looks who works at a time from now.
func (w *workers) expect(after time.Duration, who, why string) {
	w.t.Helper()
	time.Sleep(after)
	synctest.Wait()
	if got := w.now(); got != who {
		w.t.Errorf("%s: %q work, want %q", why, got, who)
	}
}

func TestLeaderElection(t *testing.T) {
	t.Run("refused", func(t *testing.T) { testLeaderElection(t, false) })
	t.Run("stalled", func(t *testing.T) { testLeaderElection(t, true) })
}

// testLeaderElection runs two servers, one of which cannot renew its Lease for a while.
func testLeaderElection(t *testing.T, stalls bool) {
	synctest.Test(t, func(t *testing.T) {
		ctx, end := context.WithCancel(t.Context())
		var all sync.WaitGroup
		defer all.Wait()
		defer end()
		lease, w := &oneLease{}, &workers{t: t, at: map[string]bool{}}
		toB := &cut{API: lease, stalls: stalls}
		ctxA, endA := context.WithCancel(ctx)
		w.run(ctxA, &all, lease, "a")
		w.expect(0, "a", "nobody had the lease")
		w.run(ctx, &all, toB, "b")
		w.expect(time.Hour, "a", "the holder renews its lease")
		if s := lease.spec(); *s.HolderIdentity != "a" || *s.LeaseTransitions != 0 || *s.LeaseDurationSeconds != 15 || s.RenewTime.Sub(s.AcquireTime.Time) < 59*time.Minute {
			t.Errorf("the lease has %+v", s)
		}
		endA()
		w.expect(14*time.Second-2400*time.Millisecond, "", "the lease of one that ended lasts")
		// b sees the last renewal up to a pause (2.4 s) later, and looks again up to a pause after its end.
		w.expect(8500*time.Millisecond, "b", "and is free then")
		if s := lease.spec(); *s.HolderIdentity != "b" || *s.LeaseTransitions != 1 || time.Since(s.AcquireTime.Time) > 8500*time.Millisecond {
			t.Errorf("the lease has %+v", s)
		}
		toB.set(true)
		w.expect(7*time.Second, "b", "one that cannot renew its lease goes on for a while")
		w.run(ctx, &all, lease, "a")
		w.expect(6*time.Second, "", "and ends before others begin")
		w.expect(12*time.Second, "a", "who then do")
		toB.set(false)
		w.expect(time.Minute, "a", "one that comes back waits")
		lease.change(func(s *coordinationv1.LeaseSpec) {
			s.HolderIdentity, s.LeaseDurationSeconds = ptr.To("somebody"), ptr.To[int32](60)
		})
		w.expect(2500*time.Millisecond, "", "a lease that was taken away is lost")
		w.expect(55*time.Second, "", "as long as it lasts")
		time.Sleep(10 * time.Second)
		synctest.Wait()
		if w.now() == "" || w.most != 1 {
			t.Errorf("%q work, at most %d at once", w.now(), w.most)
		}
	})
}

func TestLeaseTimes(t *testing.T) {
	second := time.Second
	for want, times := range map[string]reconcile.LeaseTimes{
		"":                                   reconcile.StandardLeaseTimes(),
		"r must be greater than zero":        {Duration: 3 * second, Deadline: 2 * second},
		"e must be greater than 1.2 times r": {Duration: 3 * second, Deadline: 1200 * time.Millisecond, Retry: second},
		"d must be greater than e":           {Duration: 3 * second, Deadline: 3 * second, Retry: second},
		"d must be at least a second":        {Duration: 900 * time.Millisecond, Deadline: 500 * time.Millisecond, Retry: 100 * time.Millisecond},
	} {
		got := ""
		if err := times.Validate("d", "e", "r"); err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%+v: %q, want %q", times, got, want)
		}
	}
}
