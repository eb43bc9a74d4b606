package reconcile_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// managed is a cluster with something that stands back, and reports whether it works.
type managed struct {
	*controllertest.Cluster
	t     *testing.T
	began atomic.Int32 // how often
	works atomic.Bool
}

const leases = "leases.coordination.k8s.io"

// lease writes the Lease as a holder does that renewed it at some time of its own clock.
func (m *managed) lease(holder string, lasts int32, renewed time.Time, labels map[string]string) {
	spec := coordinationv1.LeaseSpec{LeaseDurationSeconds: &lasts, RenewTime: ptr.To(metav1.NewMicroTime(renewed))}
	if holder != "" {
		spec.HolderIdentity = &holder
	}
	m.Set(leases, "kube-system", "kube-controller-manager", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{Labels: labels}, Spec: spec})
}

// expect waits until nothing moves any more.
func (m *managed) expect(when string, works bool) {
	m.t.Helper()
	synctest.Wait()
	if got := m.works.Load(); got != works {
		m.t.Errorf("%s: it works: %v", when, got)
	}
}

// inManaged runs a test with time of its own.
func inManaged(t *testing.T, before, test func(m *managed)) {
	synctest.Test(t, func(t *testing.T) {
		m := &managed{Cluster: controllertest.NewCluster(t), t: t}
		before(m)
		ctx, cancel := context.WithCancel(t.Context())
		s := &reconcile.Standby{Base: reconcile.Base{Cache: m.Cache, Log: controllertest.DiscardLog}, Lease: reconcile.DefaultManagerLease}
		ended := make(chan error, 2)
		go func() { ended <- s.Run(ctx) }()
		go func() {
			ended <- s.While(ctx, func(ctx context.Context) error {
				m.began.Add(1)
				m.works.Store(true)
				<-ctx.Done()
				time.Sleep(time.Millisecond) // work in progress takes a moment to end
				m.works.Store(false)
				return ctx.Err()
			})
		}()
		test(m)
		cancel()
		for range 2 {
			if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
				t.Error(err)
			}
		}
		if m.works.Load() {
			t.Error("it works after its end")
		}
	})
}

func TestStandingBack(t *testing.T) {
	inManaged(t, func(*managed) {}, func(m *managed) {
		m.expect("without a Lease", true)
		long := time.Unix(1000, 0) // a clock that is years behind
		m.lease("one", 15, long, nil)
		time.Sleep(2 * time.Millisecond)
		m.expect("with a holder", false)
		for range 20 {
			time.Sleep(10 * time.Second)
			long = long.Add(time.Second) // and slow
			m.lease("one", 15, long, nil)
			m.expect("while it is renewed", false)
		}
		time.Sleep(10 * time.Second)
		m.lease("one", 15, long, map[string]string{"a": "b"})
		time.Sleep(4 * time.Second)
		m.expect("shortly before its end", false)
		time.Sleep(time.Second)
		m.expect("when it was not renewed, though somebody wrote a label", true)
		m.lease("two", 15, long, nil)
		time.Sleep(2 * time.Millisecond)
		m.expect("with another holder", false)
		m.lease("", 1, long, nil)
		m.expect("when that gave it up", true)
		m.lease("two", 15, long, nil)
		time.Sleep(2 * time.Millisecond)
		m.expect("when it came back", false)
		m.Set(leases, "kube-system", "kube-controller-manager", nil)
		m.expect("when the Lease was deleted", true)
		m.lease("eternal", 1<<31-1, long, nil)
		time.Sleep(4 * time.Minute)
		m.expect("with a holder for 68 years", false)
		time.Sleep(time.Minute)
		m.expect("with that holder, which renews nothing", true)
		m.lease("never", -5, long, nil)
		m.expect("with a Lease that is over before it begins", true)
		if n := m.began.Load(); n != 5 {
			t.Errorf("it began %d times", n)
		}
	})
}

// A Lease that was there before counts once for its time, as its age is unknown.
func TestStandingBackAtFirst(t *testing.T) {
	inManaged(t, func(m *managed) { m.lease("one", 15, time.Now(), nil) }, func(m *managed) {
		m.expect("with an old Lease", false)
		if m.began.Load() != 0 {
			t.Error("it began before the Lease was looked at")
		}
		time.Sleep(15 * time.Second)
		m.expect("when it was not renewed", true)
	})
}

// Work that ends by itself is begun again by who began it, not here.
func TestWorkEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := &managed{Cluster: controllertest.NewCluster(t), t: t}
		ctx, cancel := context.WithCancel(t.Context())
		s := &reconcile.Standby{Base: reconcile.Base{Cache: m.Cache, Log: controllertest.DiscardLog}, Lease: reconcile.DefaultManagerLease}
		following := make(chan error, 1)
		go func() { following <- s.Run(ctx) }()
		over := errors.New("over")
		if err := s.While(ctx, func(context.Context) error { return over }); !errors.Is(err, over) {
			t.Error(err)
		}
		cancel()
		<-following
	})
}
