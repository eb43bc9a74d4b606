package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/cache"
)

// DefaultManagerLease is the Lease that a kube-controller-manager renews while it works.
const DefaultManagerLease = "kube-system/kube-controller-manager"

// mostLease is for how long a Lease is believed at most that is not renewed: who may write
// it once cannot end the work of controllers for good by claiming years.
const mostLease = 5 * time.Minute

// mostHolder is how many bytes of the name of a holder the log has.
const mostHolder = 256

// StandBack says whether a kube-controller-manager works on this cluster, by the Lease that
// it renews. Controllers that it runs as well work while none does.
//
// A Lease is judged as the library of clients judges it: clocks of machines are never
// compared, and one that has a holder counts until it has not changed for as long as it
// says, five minutes at most, by the clock of this server. So after a start an old Lease
// counts once for its time. One that was given up, or deleted, counts no more at once.
//
// Whoever may write that Lease can have these controllers stand back, as it can take the
// work from a kube-controller-manager itself: administrators, those with `edit` in the
// namespace kube-system, and system:kube-controller-manager.
type StandBack struct {
	Cache  *cache.Cache
	Log    *slog.Logger
	Lease  string // namespace/name
	Clock  func() time.Time
	Moves  Moves   // of the clock
	Queues *Queues // shows it in metrics

	seen   coordinationv1.LeaseSpec
	seenAt time.Time // since when it is that; zero: it has not been looked at

	mu      sync.Mutex
	known   bool // it has been looked at
	back    bool
	changed chan struct{} // closed when one of these changes; nil: nobody waits
}

// newStandBack makes it; nil: controllers never stand back.
func newStandBack(h Host, c Config) *StandBack {
	switch {
	case c.NeverBack:
		return nil
	case c.ManagerLease == "":
		c.ManagerLease = DefaultManagerLease
	}
	return &StandBack{Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Lease: c.ManagerLease, Queues: h.Queues}
}

// Run follows the Lease until ctx ends.
func (s *StandBack) Run(ctx context.Context) error {
	namespace, name, _ := strings.Cut(s.Lease, "/")
	for ctx.Err() == nil {
		s.follow(ctx, namespace, name)
	}
	return nil
}

// follow ends when its watcher was cut off, or with ctx.
func (s *StandBack) follow(ctx context.Context, namespace, name string) {
	watcher, _ := s.Cache.WatchNow(leasesKey, cache.Scope{Namespace: namespace, Name: name})
	defer watcher.Stop()
	var batch []cache.Delivery
	for {
		moved := s.Moves.next()
		var ends <-chan time.Time
		if left := s.look(s.Cache.Get(leasesKey, namespace, name), s.Clock()); left > 0 {
			ends = time.After(left)
		}
		select {
		case <-ctx.Done():
			return
		case <-ends:
		case <-moved:
		case <-watcher.Ready():
			var err error
			if batch, _, err = watcher.Take(ctx, batch); err != nil {
				return
			}
		}
	}
}

// look judges the Lease as it is now, and says for how long it counts if it does not change.
func (s *StandBack) look(item *cache.Item, now time.Time) (left time.Duration) {
	var lease coordinationv1.Lease
	if item == nil || item.Corrupt != nil || json.Unmarshal(item.JSON(), &lease) != nil {
		lease = coordinationv1.Lease{}
	}
	spec := &lease.Spec
	if s.seenAt.IsZero() || !equality.Semantic.DeepEqual(*spec, s.seen) { // labels and the like are no renewal
		s.seen, s.seenAt = *spec, now
	}
	holder := ptr.Deref(spec.HolderIdentity, "")
	if holder != "" {
		lasts := min(time.Duration(ptr.Deref(spec.LeaseDurationSeconds, 0))*time.Second, mostLease)
		left = s.seenAt.Add(lasts).Sub(now)
	}
	s.set(left > 0, holder)
	return left
}

func (s *StandBack) set(back bool, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && s.back == back {
		return
	}
	if back {
		s.Log.Info("a kube-controller-manager works on this cluster: controllers stand back", "lease", s.Lease, "holder", holder[:min(len(holder), mostHolder)])
	} else if s.known {
		s.Log.Info("no kube-controller-manager works on this cluster any more: controllers take over", "lease", s.Lease)
	}
	s.known, s.back = true, back
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.Queues.standBack(back)
}

// state says whether to stand back, which is so until the Lease has been looked at, and
// has a channel that is closed when that changes.
func (s *StandBack) state() (back bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.back || !s.known, s.changed
}

// While works whenever it need not stand back, until ctx ends or the work does by itself.
// The context of the work ends when there is reason to stand back, and the next work begins
// only after that one has ended.
func (s *StandBack) While(ctx context.Context, work func(context.Context) error) error {
	for {
		back, changed := s.state()
		if back {
			select {
			case <-changed:
				continue
			case <-ctx.Done():
				return ctx.Err()
			}
		}
		working, stop := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- work(working) }()
		select {
		case err := <-ended:
			stop()
			return err
		case <-changed:
			stop()
			if err := <-ended; ctx.Err() != nil {
				return err
			}
		}
	}
}
