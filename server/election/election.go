// Package election decides who leads where components put themselves forward with
// LeaseCandidates: whom to ask whether it is there, and what the Lease says then.
//
// It reads no clock, writes nothing and keeps nothing: a Step follows from the Lease, the
// candidates and the time alone. So it does not matter which server decides, nor whether two
// do: who writes says which versions of the objects it has seen.
//
// It promises: nobody is asked again who did not answer, so there are at most as many
// questions as LeaseCandidates are written by others, and about one write of the Lease for
// each time that candidates answered.
package election

import (
	"errors"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"
)

// Wait is how long candidates have to answer.
const Wait = 5 * time.Second

// term is for how many seconds a leader is chosen; those that lead renew the Lease for longer.
const term = 5

// Step is the next action.
type Step struct {
	Ping  []*Candidate              // whose pingTime is set to now
	Lease *coordinationv1.LeaseSpec // what the Lease is to say; nil: what it says
	Due   time.Time                 // when to decide again though nothing has changed; zero: never
}

// Decide finds the next step of an election. lease is nil where there is none yet; wait is
// how long candidates have to answer. An error says why nobody can be chosen.
func Decide(lease *coordinationv1.LeaseSpec, candidates []*Candidate, now time.Time, wait time.Duration) (Step, error) {
	var here []*Candidate // who may be there
	for _, c := range candidates {
		if !c.Expired(now) && c.stands(now, wait) != silent {
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
		switch c.stands(now, wait) {
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

// needed says whether an election has to be held: there is no leader, or one that is not the
// best, or it is time to ask everybody.
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

// rest is until when nothing has to be decided, if nothing changes.
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

// elect finds what the Lease is to say when everybody who is here has answered.
func elect(lease *coordinationv1.LeaseSpec, here []*Candidate, now time.Time, wait time.Duration) (*coordinationv1.LeaseSpec, error) {
	by, err := strategy(here)
	if err != nil {
		return lease, err
	}
	var leader string
	again := false // a leader whose Lease has ended gets another term: it does not renew one that has ended
	if by == coordinationv1.OldestEmulationVersion {
		first := best(here)
		if first == nil {
			return lease, errors.New("no candidate says of which versions it is")
		}
		// One that says that it was there in the future would get one after the other.
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

// expired says that a Lease was not renewed in time.
func expired(lease *coordinationv1.LeaseSpec, now time.Time) bool {
	return lease.RenewTime == nil || lease.LeaseDurationSeconds == nil || ends(lease).Before(now)
}

func ends(lease *coordinationv1.LeaseSpec) time.Time {
	return lease.RenewTime.Add(time.Duration(*lease.LeaseDurationSeconds) * time.Second)
}
