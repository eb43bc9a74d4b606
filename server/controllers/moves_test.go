package controllers_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/aggregation"
	"github.com/rowlock/rowlock/server/controllers/certificates"
	"github.com/rowlock/rowlock/server/controllers/garbage"
	"github.com/rowlock/rowlock/server/controllers/storageversions"
	"github.com/rowlock/rowlock/server/controllers/workloads"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// movable is a clock that a test moves.
type movable struct {
	ahead time.Duration
	moved chan struct{}
}

func newMovable() *movable                { return &movable{moved: make(chan struct{})} }
func (m *movable) now() time.Time         { return time.Now().Add(m.ahead) }
func (m *movable) moves() <-chan struct{} { return m.moved }

func (m *movable) base(w *controllertest.FakeAPI, settle time.Duration) reconcile.Base {
	return reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog, Clock: m.now, Moves: m.moves, Debounce: settle}
}

// move moves the clock while all others wait.
func (m *movable) move(d time.Duration) {
	m.ahead += d
	old := m.moved
	m.moved = make(chan struct{})
	close(old)
	controllertest.Advance(0)
}

// TestMovedClock: a goroutine that waits for a time wakes when the clock is set to it, and
// continues to wait if the clock is set to an earlier time.
func TestMovedClock(t *testing.T) {
	var c *movable
	controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
		w.Set("jobs.batch", "a", "j", fmt.Sprintf(`{"spec":{"ttlSecondsAfterFinished":3600},"status":{"conditions":[{"type":"Complete","status":"True","lastTransitionTime":%q}]}}`, controllertest.Ago(0)))
		w.Set("certificatesigningrequests.certificates.k8s.io", "", "r", fmt.Sprintf(`{"metadata":{"creationTimestamp":%q}}`, controllertest.Ago(23*time.Hour)))
		controllertest.Advance(time.Second)
		c.move(59 * time.Minute)
		if w.Read("jobs.batch", "a", "j") == "" || w.Read("certificatesigningrequests.certificates.k8s.io", "", "r") == "" {
			t.Error("before their time")
		}
		c.move(2 * time.Minute)
		if w.Read("jobs.batch", "a", "j") != "" || w.Read("certificatesigningrequests.certificates.k8s.io", "", "r") != "" {
			t.Errorf("the clock was moved, and nobody has looked at it: %v %q, %q", w.Calls(), w.Read("jobs.batch", "a", "j"), w.Read("certificatesigningrequests.certificates.k8s.io", "", "r"))
		}
	}, func(w *controllertest.FakeAPI) func(context.Context) error {
		c = newMovable()
		jobs := &workloads.FinishedJobs{Base: c.base(w, 0)}
		requests := &certificates.Cleaner{Base: c.base(w, 0)}
		return func(ctx context.Context) error {
			done := make(chan error, 1)
			go func() { done <- requests.Run(ctx) }()
			return errors.Join(jobs.Run(ctx), <-done)
		}
	})
}

// TestMovedClockEndsRests: when the clock is moved, objects that have not settled and keys in backoff are due
// at once.
func TestMovedClockEndsRests(t *testing.T) {
	const rest = time.Hour
	aggregated := `{"metadata":{"labels":{"x":"y"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"of":"it"}}]}}`
	pem := func() ([]byte, error) { return []byte("pem"), nil }
	for name, tt := range map[string]struct {
		set func(w *controllertest.FakeAPI)
		run func(w *controllertest.FakeAPI, c *movable) func(context.Context) error
	}{
		"root CA": {
			func(w *controllertest.FakeAPI) { w.Set("namespaces", "", "a", `{}`) },
			func(w *controllertest.FakeAPI, c *movable) func(context.Context) error {
				return (&accounts.RootCA{Base: c.base(w, rest), Authority: reconcile.Authority{Read: pem, Every: 24 * time.Hour}}).Run
			},
		},
		"tokens of accounts": {
			func(w *controllertest.FakeAPI) {
				w.Set("secrets", "a", "s", `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"none"}},"type":"kubernetes.io/service-account-token"}`)
			},
			func(w *controllertest.FakeAPI, c *movable) func(context.Context) error {
				return (&accounts.Tokens{Base: c.base(w, rest), Authority: reconcile.Authority{Read: pem, Every: 24 * time.Hour}}).Run
			},
		},
		"aggregated roles": {
			func(w *controllertest.FakeAPI) {
				w.Set("clusterroles.rbac.authorization.k8s.io", "", "part", `{"metadata":{"labels":{"of":"it"}},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
				w.Set("clusterroles.rbac.authorization.k8s.io", "", "whole", aggregated)
			},
			func(w *controllertest.FakeAPI, c *movable) func(context.Context) error {
				return (&aggregation.Controller{Base: c.base(w, rest)}).Run
			},
		},
		"storage versions of servers that are gone": {
			func(w *controllertest.FakeAPI) {
				w.Set("storageversions.internal.apiserver.k8s.io", "", "x.y", `{"spec":{},"status":{"storageVersions":[{"apiServerID":"gone","encodingVersion":"v1","decodableVersions":["v1"]}]}}`)
			},
			func(w *controllertest.FakeAPI, c *movable) func(context.Context) error {
				return (&storageversions.Collector{Base: c.base(w, rest)}).Run
			},
		},
		"garbage": {
			func(w *controllertest.FakeAPI) {
				w.Set("configmaps", "a", "x", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`)
			},
			func(w *controllertest.FakeAPI, c *movable) func(context.Context) error {
				g := &garbage.Collector{Base: c.base(w, rest), Catalogue: w.Catalogue}
				return func(ctx context.Context) error {
					_ = g.Run(ctx) // the error is that of ctx
					return nil
				}
			},
		},
		"standby": {
			func(w *controllertest.FakeAPI) {
				w.Set(reconcile.LeaseStorage, "kube-system", "kube-controller-manager", `{"spec":{"holderIdentity":"other","leaseDurationSeconds":300,"renewTime":"2000-01-01T00:00:00.000000Z"}}`)
				w.Set("namespaces", "", "a", `{}`)
			},
			func(w *controllertest.FakeAPI, c *movable) func(context.Context) error {
				s := &reconcile.Standby{Base: c.base(w, 0), Lease: reconcile.DefaultManagerLease}
				work := (&accounts.Default{Base: reconcile.Base{API: w, Cache: w.Cache, Log: controllertest.DiscardLog}}).Run
				return func(ctx context.Context) error {
					done := make(chan error, 1)
					go func() { done <- s.Run(ctx) }()
					_ = s.While(ctx, work) // as above
					return <-done
				}
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var c *movable
			controllertest.RunInBubble(t, func(w *controllertest.FakeAPI) {
				controllertest.Advance(time.Minute)
				if early := w.Calls(); len(early) > 0 {
					t.Errorf("before its time: %v", early)
				}
				c.move(2 * rest)
				if len(w.Calls()) == 0 {
					t.Error("the clock was moved, and it rests")
				}
			}, func(w *controllertest.FakeAPI) func(context.Context) error {
				c = newMovable()
				tt.set(w)
				return tt.run(w, c)
			})
		})
	}
}
