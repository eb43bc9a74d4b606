package election

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"github.com/blang/semver/v4"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Lasts is the time for which a candidate counts without a renewal.
const Lasts = 30 * time.Minute

// longestVersion bounds the bytes of a version that counts: each part of one takes many times its
// length.
const longestVersion = 256

// Candidate holds the relevant fields of a LeaseCandidate.
type Candidate struct {
	Name     string
	Revision int64

	strategy          coordinationv1.CoordinatedLeaseStrategy
	emulation, binary semver.Version
	versioned         bool // both are known, and not too long
	created           time.Time
	pinged, renewed   time.Time // zero: never
}

// Read makes a Candidate of a LeaseCandidate.
func Read(name string, revision int64, created metav1.Time, spec *coordinationv1beta1.LeaseCandidateSpec) *Candidate {
	c := &Candidate{Name: name, Revision: revision, strategy: spec.Strategy, created: created.Time}
	var known [2]bool
	c.emulation, known[0] = version(spec.EmulationVersion)
	c.binary, known[1] = version(spec.BinaryVersion)
	c.versioned = known == [2]bool{true, true}
	if spec.PingTime != nil {
		c.pinged = spec.PingTime.Time
	}
	if spec.RenewTime != nil {
		c.renewed = spec.RenewTime.Time
	}
	return c
}

func version(text string) (v semver.Version, known bool) {
	if len(text) > longestVersion {
		return v, false
	}
	v, err := semver.Parse(text)
	return v, err == nil
}

// Expired reports whether a candidate has not renewed itself for so long that it is no longer a candidate.
func (c *Candidate) Expired(now time.Time) bool { return c.renewed.Add(Lasts).Before(now) }

// Created returns when the LeaseCandidate was first written.
func (c *Candidate) Created() time.Time { return c.created }

// state is the state of a candidate in an election.
type state int

const (
	present state = iota // it has just said that it is there
	unasked              // unknown
	asked                // it was pinged just now
	silent               // it was pinged and did not answer
)

// stateAt returns the state of a candidate that has so long to answer.
func (c *Candidate) stateAt(now time.Time, wait time.Duration) state {
	pinged := c.pinged
	if pinged.After(now.Add(wait)) {
		pinged = time.Time{} // otherwise it would never be pinged
	}
	switch {
	case pinged.After(c.renewed) && pinged.Add(wait).After(now):
		return asked
	case pinged.After(c.renewed):
		return silent
	case c.renewed.Add(wait).After(now), pinged.Add(2 * wait).After(now):
		// A candidate that has answered counts until those pinged together with it have had their time.
		return present
	}
	return unasked
}

// better orders candidates by the strategy OldestEmulationVersion, best first.
func better(a, b *Candidate) int {
	return cmp.Or(a.emulation.Compare(b.emulation), a.binary.Compare(b.binary), a.created.Compare(b.created), strings.Compare(a.Name, b.Name))
}

// best returns the candidate that leads by the strategy OldestEmulationVersion, or nil.
func best(list []*Candidate) *Candidate {
	var found *Candidate
	for _, c := range list {
		if c.versioned && (found == nil || better(c, found) < 0) {
			found = c
		}
	}
	return found
}

// strategy returns that of the candidates with the newest program, which must agree.
func strategy(list []*Candidate) (coordinationv1.CoordinatedLeaseStrategy, error) {
	newest := list[0]
	var other *Candidate
	for _, c := range list[1:] {
		switch order := c.binary.Compare(newest.binary); {
		case order > 0:
			newest, other = c, nil
		case order == 0 && c.strategy != newest.strategy:
			other = c
		}
	}
	if other != nil {
		return "", fmt.Errorf("candidates %q and %q have the same binary version and different strategies, %s and %s", newest.Name, other.Name, newest.strategy, other.strategy)
	}
	return newest.strategy, nil
}
