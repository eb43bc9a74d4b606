package reconcile

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"math/rand/v2"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/rowlock/rowlock/server/ratelog"
)

// LeaseTimes are the times of a Lease for leader election.
type LeaseTimes struct {
	Duration time.Duration // for how long others leave the Lease alone that is not renewed
	Deadline time.Duration // how long a holder continues that cannot renew it
	Retry    time.Duration // between two tries to take or renew it
}

// StandardLeaseTimes returns the times of stock components.
func StandardLeaseTimes() LeaseTimes {
	return LeaseTimes{Duration: 15 * time.Second, Deadline: 10 * time.Second, Retry: 2 * time.Second}
}

// leaderAgent is the field manager of Leases of leaders.
const leaderAgent = "kube-apiserver"

// leaseJitter is by how much a pause between two tries may be longer.
const leaseJitter = 0.2

// Validate checks the times; the names of flags are for the message.
func (t LeaseTimes) Validate(duration, deadline, retry string) error {
	switch {
	case t.Retry <= 0:
		return errors.New(retry + " must be greater than zero")
	case t.Deadline <= t.Retry+time.Duration(leaseJitter*float64(t.Retry)):
		return errors.New(deadline + " must be greater than 1.2 times " + retry)
	case t.Duration <= t.Deadline:
		return errors.New(duration + " must be greater than " + deadline)
	case t.Duration < time.Second:
		return errors.New(duration + " must be at least a second")
	}
	return nil
}

// LeaderElection makes one server at a time work: the holder of a Lease in kube-system, which others can read
// and take over. It works like client-go's leader election: each server reads the Lease every Retry, and the
// holder writes it.
type LeaderElection struct {
	Base
	Name     string // of the Lease
	Identity string // of this server, the same after a restart
	Times    LeaseTimes
	Work     func(ctx context.Context) error

	seen   observed // by its resourceVersion
	failed ratelog.Line
}

// Run works until ctx ends. It is for one goroutine; Work runs in another, which has ended when Run returns.
// A server that ends does not release the Lease, because writes are no longer possible then: it holds it
// again when it returns, and another server takes it later.
func (l *LeaderElection) Run(ctx context.Context) error {
	for ctx.Err() == nil {
		began := l.Now()
		if held, err := l.renew(ctx, l.Times.Deadline); held && err == nil {
			l.lead(ctx, began)
		}
		select {
		case <-ctx.Done():
		case <-l.pause():
		}
	}
	return nil
}

func (l *LeaderElection) pause() <-chan time.Time {
	return time.After(l.Times.Retry + time.Duration(rand.Float64()*leaseJitter*float64(l.Times.Retry)))
}

// lead runs the work until the Lease is lost or the work ends. The validity of a renewal counts from the start of its request:
// other servers may have seen it then.
func (l *LeaderElection) lead(ctx context.Context, renewed time.Time) {
	l.Log.Info("this server holds a lease", "lease", l.Name)
	working, stop := context.WithCancel(ctx)
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := l.Work(working); err != nil && working.Err() == nil {
			l.Log.Warn("the work of the holder of a lease ended", "lease", l.Name, "error", err)
		}
	}()
	left := func(now time.Time) time.Duration { return renewed.Add(l.Times.Deadline).Sub(now) }
	for leads := true; leads; {
		select {
		case <-ctx.Done():
			leads = false
		case <-ended:
			leads = false
		case <-time.After(left(l.Now())):
			leads = false
		case <-l.pause():
			began := l.Now()
			switch held, err := l.renew(ctx, left(began)); {
			case err == nil && held:
				renewed = began
			case err == nil:
				leads = false
			}
		}
	}
	stop()
	<-ended
	l.Log.Info("this server no longer holds a lease", "lease", l.Name)
}

// renew acquires or renews the Lease within a timeout, and reports whether this server holds it; after an
// error that is unknown.
func (l *LeaderElection) renew(ctx context.Context, within time.Duration) (held bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	held, err = l.try(ctx)
	if err != nil && ctx.Err() == nil && !Superseded(err) {
		l.failed.Log(ctx, l.Log, slog.LevelWarn, "a lease cannot be held", "lease", l.Name, "error", err)
	}
	return held, err
}

func (l *LeaderElection) try(ctx context.Context) (bool, error) {
	var have coordinationv1.Lease
	path := LeasesPath(metav1.NamespaceSystem) + "/" + l.Name
	now := metav1.NewMicroTime(l.Now())
	err := l.API.Call(ctx, leaderAgent, http.MethodGet, path, "", nil, &have)
	absent := apierrors.IsNotFound(err)
	if err != nil && !absent {
		return false, err
	}
	s := &have.Spec
	mine := ptr.Deref(s.HolderIdentity, "") == l.Identity
	l.seen.see(have.ResourceVersion, now.Time)
	if !mine && l.seen.left(s, math.MaxInt64, now.Time) > 0 {
		return false, nil
	}
	if !mine {
		s.AcquireTime = &now
	}
	if !mine && !absent {
		s.LeaseTransitions = ptr.To(ptr.Deref(s.LeaseTransitions, 0) + 1)
	}
	s.HolderIdentity, s.RenewTime, s.PreferredHolder = &l.Identity, &now, nil
	s.LeaseDurationSeconds = ptr.To(int32(l.Times.Duration / time.Second))
	var written coordinationv1.Lease
	if absent {
		have.Name, have.Namespace, s.LeaseTransitions = l.Name, metav1.NamespaceSystem, ptr.To[int32](0)
		err = l.API.Call(ctx, leaderAgent, http.MethodPost, LeasesPath(metav1.NamespaceSystem), JSON, &have, &written)
	} else {
		err = l.API.Call(ctx, leaderAgent, http.MethodPut, path, JSON, &have, &written)
	}
	if err != nil {
		return false, err
	}
	l.seen = observed{written.ResourceVersion, now.Time}
	return true, nil
}
