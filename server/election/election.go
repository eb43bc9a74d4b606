// Package election decides which component leads among LeaseCandidates: which candidates to ping, and the new
// content of the Lease.
//
// It reads no clock, writes nothing and keeps no state: a Step depends only on the Lease, the candidates and
// the time. So it does not matter which server decides, nor whether two do: writes are conditional on the
// versions of the objects.
//
// A candidate that did not answer is not pinged again, so there are at most as many pings as writes of
// LeaseCandidates by others, and about one write of the Lease each time that candidates have answered.
package election

import (
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Wait is the time that candidates have to answer.
const Wait = 5 * time.Second

// term is for how many seconds a leader is chosen; those that lead renew the Lease for longer.
const term = 5

// Step is the next action.
type Step struct {
	Ping  []*Candidate              // whose pingTime is set to now
	Lease *coordinationv1.LeaseSpec // new content of the Lease; nil: unchanged
	Due   time.Time                 // when to decide again though nothing has changed; zero: never
}

// Decide finds the next step of an election. lease is nil if there is none yet; wait is how long candidates
// have to answer. The error is the reason why no leader can be chosen.
func Decide(lease *coordinationv1.LeaseSpec, candidates []*Candidate, now time.Time, wait time.Duration) (Step, error) {
	var here []*Candidate // candidates that may be alive
	for _, c := range candidates {
		if !c.Expired(now) && c.stateAt(now, wait) != silent {
			here = append(here, c)
		}
	}
	if len(here) == 0 {
		return Step{}, nil
	}
	needed, err := needed(lease, here, now)
	if err != nil {
		return Step{}, err
	}
	if !needed {
		return Step{Due: rest(lease, here, now)}, nil
	}
	var step Step
	for _, c := range here {
		switch c.stateAt(now, wait) {
		case unasked:
			step.Ping = append(step.Ping, c)
			step.until(now.Add(wait))
		case asked:
			step.until(c.pinged.Add(wait))
		}
	}
	if !step.Due.IsZero() {
		return step, nil
	}
	wants, err := elect(lease, here, now, wait)
	if err == nil && (lease == nil || !equality.Semantic.DeepEqual(lease, wants)) {
		step.Lease = wants
	}
	step.Due = rest(wants, here, now)
	return step, err
}

// until makes the step due at a time, if it is not before.
func (s *Step) until(at time.Time) {
	if s.Due.IsZero() || at.Before(s.Due) {
		s.Due = at
	}
}

// needed reports whether an election is necessary: there is no leader, or it is not the best candidate, or it
// is time to ping all candidates.
func needed(lease *coordinationv1.LeaseSpec, here []*Candidate, now time.Time) (bool, error) {
	by, err := strategy(here)
	if lease == nil || expired(lease, now) || holder(lease) == "" {
		// Leaders by strategies of others are theirs to choose.
		theirs := err == nil && lease != nil && by != coordinationv1.OldestEmulationVersion && ptr.Deref(lease.Strategy, "") == by
		return !theirs, nil
	}
	for _, c := range here {
		if c.renewed.Add(Lasts / 2).Before(now) {
			return true, nil
		}
	}
	if err != nil || by != coordinationv1.OldestEmulationVersion {
		return false, err
	}
	first := best(here)
	return first != nil && first.Name != holder(lease) && first.Name != ptr.Deref(lease.PreferredHolder, ""), nil
}

// rest returns until when nothing has to be decided, if nothing changes.
func rest(lease *coordinationv1.LeaseSpec, here []*Candidate, now time.Time) time.Time {
	var s Step
	until := func(end time.Time) {
		if !end.Before(now) {
			s.until(end.Add(time.Millisecond))
		}
	}
	if lease != nil && holder(lease) != "" && !expired(lease, now) {
		until(ends(lease))
	}
	for _, c := range here {
		until(c.renewed.Add(Lasts / 2))
	}
	return s.Due
}

// elect returns the new content of the Lease when all live candidates have answered.
func elect(lease *coordinationv1.LeaseSpec, here []*Candidate, now time.Time, wait time.Duration) (*coordinationv1.LeaseSpec, error) {
	by, err := strategy(here)
	if err != nil {
		return lease, err
	}
	var leader string
	again := false // a leader with an expired Lease gets another term, because it does not renew an expired one
	if by == coordinationv1.OldestEmulationVersion {
		first := best(here)
		if first == nil {
			return lease, errors.New("no candidate says of which versions it is")
		}
		// Otherwise a candidate with a time in the future would be pinged repeatedly.
		leader, again = first.Name, !first.renewed.After(now.Add(wait))
	}
	wants := &coordinationv1.LeaseSpec{RenewTime: &metav1.MicroTime{Time: now}, LeaseDurationSeconds: ptr.To[int32](term)}
	if lease != nil {
		wants = lease.DeepCopy()
	}
	wants.Strategy = &by
	switch had := holder(wants); {
	case leader == "":
	case had == leader && !(again && expired(wants, now)):
	case had == "" || expired(wants, now):
		if had != leader {
			wants.AcquireTime = nil
		}
		wants.HolderIdentity, wants.PreferredHolder = &leader, nil
		wants.RenewTime, wants.LeaseDurationSeconds = &metav1.MicroTime{Time: now}, ptr.To[int32](term)
	default:
		wants.PreferredHolder = &leader // which asks the holder to go
	}
	return wants, nil
}

func holder(lease *coordinationv1.LeaseSpec) string { return ptr.Deref(lease.HolderIdentity, "") }

// expired reports whether a Lease was not renewed in time.
func expired(lease *coordinationv1.LeaseSpec, now time.Time) bool {
	return lease.RenewTime == nil || lease.LeaseDurationSeconds == nil || ends(lease).Before(now)
}

func ends(lease *coordinationv1.LeaseSpec) time.Time {
	return lease.RenewTime.Add(time.Duration(*lease.LeaseDurationSeconds) * time.Second)
}
