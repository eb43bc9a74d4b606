package controllers

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/controllers/garbage"
)

// movable is a clock that a test moves.
type movable struct {
	ahead time.Duration
	moved chan struct{}
}

func newMovable() *movable                { return &movable{moved: make(chan struct{})} }
func (m *movable) now() time.Time         { return time.Now().Add(m.ahead) }
func (m *movable) moves() <-chan struct{} { return m.moved }

// move moves the clock while all others wait.
func (m *movable) move(d time.Duration) {
	m.ahead += d
	old := m.moved
	m.moved = make(chan struct{})
	close(old)
	pass(0)
}

// TestMovedClock: whoever waits for a moment of the clock is woken when that is moved there,
// and goes on to wait when it is not moved so far.
func TestMovedClock(t *testing.T) {
	var c *movable
	during(t, func(w *world) {
		w.set(jobsStorage, "a", "j", jobThatEnded(3600, ago(0)))
		w.set(requestsKey, "", "r", fmt.Sprintf(`{"metadata":{"creationTimestamp":%q}}`, ago(23*time.Hour)))
		pass(time.Second)
		c.move(59 * time.Minute)
		if w.read(jobsStorage, "a", "j") == "" || w.read(requestsKey, "", "r") == "" {
			t.Error("before their time")
		}
		c.move(2 * time.Minute)
		if w.read(jobsStorage, "a", "j") != "" || w.read(requestsKey, "", "r") != "" {
			t.Errorf("the clock was moved, and nobody has looked at it: %v %q, %q", w.took(), w.read(jobsStorage, "a", "j"), w.read(requestsKey, "", "r"))
		}
	}, func(w *world) func(context.Context) error {
		c = newMovable()
		jobs := &FinishedJobs{Chore{API: w, Cache: w.cache, Log: quiet, Clock: c.now, Moves: c.moves}}
		requests := &CertificateCleaner{API: w, Cache: w.cache, Log: quiet, Clock: c.now, Moves: c.moves}
		return func(ctx context.Context) error {
			done := make(chan error, 1)
			go func() { done <- requests.Run(ctx) }()
			return errors.Join(jobs.Run(ctx), <-done)
		}
	})
}

// TestMovedClockEndsRests: what controllers leave alone for a while, because nobody asked for
// them or because it failed, they leave alone no longer when the clock is moved.
func TestMovedClockEndsRests(t *testing.T) {
	const rest = time.Hour
	aggregated := `{"metadata":{"labels":{"x":"y"}},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"of":"it"}}]}}`
	pem := func() ([]byte, error) { return []byte("pem"), nil }
	for name, tt := range map[string]struct {
		set func(w *world)
		run func(w *world, c *movable) func(context.Context) error
	}{
		"root CA": {
			func(w *world) { w.set("namespaces", "", "a", `{}`) },
			func(w *world, c *movable) func(context.Context) error {
				return (&RootCA{API: w, Cache: w.cache, Log: quiet, PEM: pem, Rest: rest, Every: 24 * time.Hour, Moves: c.moves}).Run
			},
		},
		"tokens of accounts": {
			func(w *world) {
				w.set("secrets", "a", "s", `{"metadata":{"annotations":{"kubernetes.io/service-account.name":"none"}},"type":"kubernetes.io/service-account-token"}`)
			},
			func(w *world, c *movable) func(context.Context) error {
				return (&AccountTokens{API: w, Cache: w.cache, Log: quiet, PEM: pem, Rest: rest, Every: 24 * time.Hour, Moves: c.moves}).Run
			},
		},
		"aggregated roles": {
			func(w *world) {
				w.set(clusterRolesKey, "", "part", `{"metadata":{"labels":{"of":"it"}},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["pods"]}]}`)
				w.set(clusterRolesKey, "", "whole", aggregated)
			},
			func(w *world, c *movable) func(context.Context) error {
				return (&Aggregation{API: w, Cache: w.cache, Log: quiet, Rest: rest, Moves: c.moves}).Run
			},
		},
		"storage versions of servers that are gone": {
			func(w *world) {
				w.set(storageVersionsKey, "", "x.y", `{"spec":{},"status":{"storageVersions":[{"apiServerID":"gone","encodingVersion":"v1","decodableVersions":["v1"]}]}}`)
			},
			func(w *world, c *movable) func(context.Context) error {
				return (&StorageVersionCollector{API: w, Cache: w.cache, Log: quiet, Clock: c.now, Rest: rest, Moves: c.moves}).Run
			},
		},
		"garbage": {
			func(w *world) {
				w.set("configmaps", "a", "x", `{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"ConfigMap","name":"none","uid":"none"}]}}`)
			},
			func(w *world, c *movable) func(context.Context) error {
				g := &garbage.Collector{API: w, Cache: w.cache, Catalogue: w.catalogue, Log: quiet, Clock: c.now, Settle: rest, Moves: c.moves}
				return func(ctx context.Context) error {
					_ = g.Run(ctx) // it says that ctx has ended
					return nil
				}
			},
		},
		"standing back": {
			func(w *world) {
				w.set(leasesKey, "kube-system", "kube-controller-manager", `{"spec":{"holderIdentity":"other","leaseDurationSeconds":300,"renewTime":"2000-01-01T00:00:00.000000Z"}}`)
				w.set("namespaces", "", "a", `{}`)
			},
			func(w *world, c *movable) func(context.Context) error {
				s := &StandBack{Cache: w.cache, Log: quiet, Clock: c.now, Moves: c.moves, Lease: DefaultManagerLease}
				work := (&Accounts{API: w, Cache: w.cache, Log: quiet}).Run
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
			during(t, func(w *world) {
				pass(time.Minute)
				if early := w.took(); len(early) > 0 {
					t.Errorf("before its time: %v", early)
				}
				c.move(2 * rest)
				if len(w.took()) == 0 {
					t.Error("the clock was moved, and it rests")
				}
			}, func(w *world) func(context.Context) error {
				c = newMovable()
				tt.set(w)
				return tt.run(w, c)
			})
		})
	}
}
