package follow

import (
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Target is the state to restore: a revision, the state at a time, or by the zero value
// the newest there is.
type Target struct {
	Revision int64
	Time     time.Time
}

// Plan lists the files that make up a state.
type Plan struct {
	Run      int       `json:"run"`
	Base     string    `json:"base"`     // file
	Revision int64     `json:"revision"` // that is restored
	Until    time.Time `json:"until"`    // by when everything was in the log, of the newest revision of the run
	From     int64     `json:"from"`     // revision of the base
	Segments []string  `json:"segments"` // files
	Newest   bool      `json:"newest"`   // there is nothing newer in the folder

	dir string
}

// UnreachableError: the target cannot be restored. It states what can be.
type UnreachableError struct{ Reason string }

func (e *UnreachableError) Error() string { return e.Reason }

// Plan finds the files from which to restore a target. Errors: UnreachableError, ErrDamaged.
func (l *Listing) Plan(target Target) (*Plan, error) {
	for i := len(l.Runs) - 1; i >= 0; i-- {
		r, newest := l.Runs[i], i == len(l.Runs)-1
		revision, ok, err := l.revisionIn(r, target)
		if err != nil {
			return nil, err
		}
		if !ok {
			continue
		}
		if p := l.from(r, revision); p != nil {
			p.Newest = newest && revision == r.Last
			return p, nil
		}
		if target == (Target{}) && newest && len(r.Segments) > 0 {
			continue // a run that has no base yet
		}
	}
	return nil, l.unreachable(target)
}

// revisionIn returns the revision of a run that a target means; ok is false if it has none.
func (l *Listing) revisionIn(r *Run, target Target) (revision int64, ok bool, err error) {
	switch {
	case target.Revision > 0:
		return target.Revision, target.Revision <= r.Last, nil
	case target.Time.IsZero():
		return r.Last, true, nil
	case target.Time.After(r.Until):
		return 0, false, nil
	}
	for i := len(r.Segments) - 1; i >= 0; i-- {
		revision, ok, err = l.writtenBy(&r.Segments[i], target.Time)
		if err != nil || ok {
			return revision, ok, err
		}
	}
	// Nothing in the log is as old: a base may be, if the log begins with it.
	for _, b := range r.Bases {
		begins := len(r.Segments) == 0 || r.Segments[0].First == b.Revision+1
		if b.Problem == "" && begins && !b.Taken.Add(time.Second).After(target.Time) { // the time of a base is in whole seconds
			return b.Revision, true, nil
		}
	}
	return 0, false, nil
}

// writtenBy returns the newest revision of a segment that was written at or before a time.
// Clocks may have been set: a later revision may have an earlier time.
func (l *Listing) writtenBy(s *Segment, t time.Time) (revision int64, ok bool, err error) {
	if s.Last < s.First {
		return 0, false, nil
	}
	f, err := openFile(filepath.Join(l.Dir, s.File))
	if err != nil {
		return 0, false, err
	}
	defer f.Close()
	in, err := newSegmentReader(s.File, f)
	if err != nil {
		return 0, false, err
	}
	unpack, err := newUnpacker()
	if err != nil {
		return 0, false, err
	}
	defer unpack.close()
	for {
		one, err := in.read()
		switch {
		case errors.Is(err, io.EOF) || errors.Is(err, errTorn):
			return revision, ok, nil
		case err != nil:
			return 0, false, l.before(err, in)
		case one.kind != kindRows || micros(one.earliest).After(t):
			continue
		}
		err = unpack.rows(&one, func(c *sqlstore.Change) error {
			if !c.WrittenAt.After(t) {
				revision, ok = c.Revision, true
			}
			return nil
		})
		if err != nil {
			return 0, false, fmt.Errorf("%s: %w", s.File, err)
		}
	}
}

// before adds the reachable states to an error about damage.
func (l *Listing) before(err error, in *segmentReader) error {
	return fmt.Errorf("%w; what comes before it can be restored, up to revision %d", err, in.next-1)
}

// from plans a revision of a run; nil if files are missing.
func (l *Listing) from(r *Run, revision int64) *Plan {
	var found *Base
	for i := range r.Bases {
		if b := &r.Bases[i]; b.Problem == "" && b.Revision <= revision {
			found = b
		}
	}
	if found == nil {
		return nil
	}
	p := &Plan{Run: r.Number, Base: found.File, From: found.Revision, Revision: revision, Until: r.Until, Segments: []string{}, dir: l.Dir}
	next := found.Revision + 1
	for i := range r.Segments {
		s := &r.Segments[i]
		if next > revision || s.Last < next {
			continue
		}
		if s.First > next {
			break // a part is missing
		}
		p.Segments = append(p.Segments, s.File)
		next = s.Last + 1
	}
	if next <= revision {
		return nil
	}
	return p
}

// newest returns the newest state that can be restored.
func (l *Listing) newest() *Plan {
	for i := len(l.Runs) - 1; i >= 0; i-- {
		r := l.Runs[i]
		best := r.Last
		for k := range r.Segments { // nothing after a missing part is reachable
			if r.Segments[k].Problem != "" && k > 0 {
				best = min(best, r.Segments[k-1].Last)
			}
		}
		if p := l.from(r, best); p != nil {
			return p
		}
		for k := len(r.Bases) - 1; k >= 0; k-- {
			if p := l.from(r, r.Bases[k].Revision); p != nil {
				return p
			}
		}
	}
	return nil
}

// unreachable returns the error for a target without a plan, with the reachable states.
func (l *Listing) unreachable(target Target) error {
	what := "the newest state"
	switch {
	case target.Revision > 0:
		what = fmt.Sprintf("revision %d", target.Revision)
	case !target.Time.IsZero():
		what = target.Time.UTC().Format(time.RFC3339Nano)
	}
	can := "nothing can be restored: there is no whole base"
	if p := l.newest(); p != nil {
		can = fmt.Sprintf("the newest that can be is revision %d, with everything until %s", p.Revision, p.Until.UTC().Format(time.RFC3339Nano))
		if r := l.oldest(); r != nil {
			can = fmt.Sprintf("the oldest that can be restored is revision %d of %s, %s", r.First, r.From.UTC().Format(time.RFC3339), can)
		}
	}
	gap := ""
	for i := 1; i < len(l.Runs); i++ {
		a, b := l.Runs[i-1], l.Runs[i]
		inTime := target.Time.After(a.Until) && (b.From.IsZero() || target.Time.Before(b.From.Add(time.Second)))
		if inTime || target.Revision > a.Last && target.Revision < b.First {
			gap = fmt.Sprintf(": the backup has a gap from revision %d of %s to revision %d of %s", a.Last, a.Until.UTC().Format(time.RFC3339), b.First, b.From.UTC().Format(time.RFC3339))
		}
	}
	for _, p := range l.Problems {
		gap += "; " + p
	}
	return &UnreachableError{fmt.Sprintf("%s: %s cannot be restored%s; %s", l.Dir, what, gap, can)}
}

func (l *Listing) oldest() *Run {
	for _, r := range l.Runs {
		if !r.From.IsZero() {
			return r
		}
	}
	return nil
}
