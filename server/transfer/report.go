package transfer

import (
	"fmt"
	"maps"
	"slices"
	"sort"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// How many names a report has of a kind at most.
const (
	maxNames    = 20
	maxProblems = 1000
	maxWarnings = 1000
	maxUnknown  = 10 // fields of one object
	// Large is the maximum size of an object that servers accept in a write, in bytes of JSON.
	Large = 3 << 19
)

// Report counts the decisions on entries, by name.
type Report struct {
	Entries     int64      `json:"entries"`   // that were read
	Objects     int64      `json:"objects"`   // that are taken along
	Claims      int64      `json:"claims"`    // addresses and ports of services that are held
	Resources   []Resource `json:"resources"` // in the order of their names
	Left        []Skipped  `json:"left"`      // in the order of the reasons
	Undecodable int64      `json:"undecodable"`
	Problems    []Problem  `json:"problems"` // the first undecodable values
	Warnings    []string   `json:"warnings"`
	byResource  map[string]*Resource
	byReason    map[string]*Skipped
	byField     map[string]*Skipped
}

// Resource counts the objects of one resource.
type Resource struct {
	Name    string `json:"name"` // "deployments.apps"
	Objects int64  `json:"objects"`
	Bytes   int64  `json:"bytes"` // of JSON
}

// Skipped counts the entries that were left out for one reason.
type Skipped struct {
	Why   string   `json:"why"`
	Keys  int64    `json:"keys"`
	Names []string `json:"names"` // the first of them
}

// Problem is an entry that cannot be read.
type Problem struct {
	Key    string `json:"key"`
	Reason string `json:"reason"`
}

func newReport() Report {
	return Report{Resources: []Resource{}, Left: []Skipped{}, Problems: []Problem{}, Warnings: []string{}, byResource: map[string]*Resource{}, byReason: map[string]*Skipped{}, byField: map[string]*Skipped{}}
}

func (r *Report) count(key string, out *Outcome) {
	r.Entries++
	switch out.Disposition {
	case Taken:
		r.Objects++
		r.Claims += int64(len(out.Claims))
		one := r.byResource[out.Key.Resource]
		if one == nil {
			one = &Resource{Name: out.Key.Resource}
			r.byResource[out.Key.Resource] = one
		}
		one.Objects++
		one.Bytes += int64(len(out.Row.Value))
		for _, field := range out.Unknown {
			r.lost(out.Key.Resource+": "+field, key)
		}
		if n := len(out.Row.Value); n > Large {
			r.warn(foreign.Shown(key) + ": the object is larger than servers take in a write (--store keeps it, and it must shrink to be changed)")
		}
	case Left:
		one := r.byReason[out.Why]
		if one == nil {
			one = &Skipped{Why: out.Why}
			r.byReason[out.Why] = one
		}
		one.Keys++
		if len(one.Names) < maxNames {
			one.Names = append(one.Names, foreign.Shown(key))
		}
	case Damaged:
		r.Undecodable++
		if len(r.Problems) < maxProblems {
			r.Problems = append(r.Problems, Problem{Key: foreign.Shown(key), Reason: out.Err.Error()})
		}
	}
}

// lost counts a field of a resource that is not known here.
func (r *Report) lost(field, key string) {
	field = foreign.Shown(field)
	one := r.byField[field]
	if one == nil {
		if len(r.byField) >= maxWarnings {
			return
		}
		one = &Skipped{Why: field, Names: []string{foreign.Shown(key)}}
		r.byField[field] = one
	}
	one.Keys++
}

// losses returns the warnings of lost.
func (r *Report) losses() (list []string) {
	for _, field := range slices.Sorted(maps.Keys(r.byField)) {
		one := r.byField[field]
		list = append(list, fmt.Sprintf("%s: it is left out of %d objects (the first: %q), as the type has no such field in this release", field, one.Keys, one.Names[0]))
	}
	return list
}

func (r *Report) warn(text string) {
	if len(r.Warnings) < maxWarnings {
		r.Warnings = append(r.Warnings, text)
	}
}

// Report returns the report on all entries so far. It is the caller's.
func (r *Reader) Report() Report {
	out := r.report
	out.Resources, out.Left = []Resource{}, []Skipped{}
	for _, name := range slices.Sorted(maps.Keys(r.report.byResource)) {
		out.Resources = append(out.Resources, *r.report.byResource[name])
	}
	for _, why := range r.report.byReason {
		one := *why
		one.Names = slices.Clone(one.Names)
		out.Left = append(out.Left, one)
	}
	sort.Slice(out.Left, func(i, j int) bool { return out.Left[i].Why < out.Left[j].Why })
	out.Problems = slices.Clone(out.Problems)
	out.Warnings = slices.Concat([]string{}, out.Warnings, out.losses(), r.customs.warnings())
	out.byResource, out.byReason, out.byField = nil, nil, nil
	return out
}
