package reconcile

import (
	"context"
	"encoding/json"
	"strings"
	"sync"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/cache"
)

// DefaultManagerLease is the Lease that a kube-controller-manager renews while it works.
const DefaultManagerLease = "kube-system/kube-controller-manager"

// maxLease bounds how long a Lease is valid without a renewal, so that a client that may write it
// cannot stop the controllers for good with a single write of a duration of years.
const maxLease = 5 * time.Minute

// maxHolder limits the bytes of the holder's name in the log.
const maxHolder = 256

// Standby detects a kube-controller-manager of this cluster by the Lease that it renews. Controllers that it
// also has are on standby as long as it runs.
//
// A Lease is valid for its duration after its last change, five minutes at most. So after a start an old Lease is valid
// once for its duration. One that was released or deleted is not valid.
//
// A user that may write that Lease can put these controllers on standby, as it can take the work from a
// kube-controller-manager itself: administrators, those with `edit` in the namespace kube-system, and
// system:kube-controller-manager.
type Standby struct {
	Base
	Lease   string   // namespace/name
	Metrics *Metrics // shows it; nil: none do

	seen observed // only its spec: labels and the like are no renewal

	mu      sync.Mutex
	known   bool // the Lease has been read
	on      bool
	changed chan struct{} // closed when one of these changes; nil without a waiter
}

// Run follows the Lease until ctx ends.
func (s *Standby) Run(ctx context.Context) error {
	var key Key
	key.Namespace, key.Name, _ = strings.Cut(s.Lease, "/")
	l := &Loop{Base: s.Base, Keys: []Key{key}}
	l.Sources = []Source{{
		Storage: LeaseStorage, Scope: cache.Scope{Namespace: key.Namespace, Name: key.Name},
		Changed: func(cache.Delivery) { l.Queue.AddAfter(key, 0) },
	}}
	l.Reconcile = func(context.Context, Key) (Result, error) {
		return Result{After: s.look(s.Cache.Get(LeaseStorage, key.Namespace, key.Name), s.Now())}, nil
	}
	return l.Run(ctx)
}

// look evaluates the current Lease, and returns how long it remains valid without a renewal.
func (s *Standby) look(item *cache.Item, now time.Time) (left time.Duration) {
	var lease struct{ Spec coordinationv1.LeaseSpec }
	if !Decode(item, &lease) {
		lease.Spec = coordinationv1.LeaseSpec{}
	}
	text, err := json.Marshal(&lease.Spec)
	if err != nil {
		s.Log.Warn("cannot read the Lease of a kube-controller-manager", "lease", s.Lease, "error", err)
	}
	s.seen.see(string(text), now)
	left = s.seen.left(&lease.Spec, maxLease, now)
	holder := ptr.Deref(lease.Spec.HolderIdentity, "")
	s.set(left > 0, holder)
	return left
}

func (s *Standby) set(on bool, holder string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.known && s.on == on {
		return
	}
	if on {
		s.Log.Info("a kube-controller-manager works on this cluster: controllers are on standby", "lease", s.Lease, "holder", holder[:min(len(holder), maxHolder)])
	} else if s.known {
		s.Log.Info("no kube-controller-manager works on this cluster any more: controllers take over", "lease", s.Lease)
	}
	s.known, s.on = true, on
	if s.changed != nil {
		close(s.changed)
		s.changed = nil
	}
	s.Metrics.standBy(on)
}

// state reports whether controllers are on standby, as they are until the Lease has been read, and
// returns a channel that is closed when that changes.
func (s *Standby) state() (on bool, changed <-chan struct{}) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.changed == nil {
		s.changed = make(chan struct{})
	}
	return s.on || !s.known, s.changed
}

// While works whenever it is not on standby, until ctx ends or the work does by itself. The context of the work ends
// when standby begins, and the next work begins only after that one has ended.
func (s *Standby) While(ctx context.Context, work func(context.Context) error) error {
	for {
		on, changed := s.state()
		if on {
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
