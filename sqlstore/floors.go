package sqlstore

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Floors are the oldest readable revisions: of the log, and of the snapshots of each resource, which may reach
// back further. Rows between the two are packed.
type Floors struct {
	Log int64 `json:"log"`
	// Past are the floors of snapshots, by resource ("leases.coordination.k8s.io"), by its plural in any
	// group ("leases"), and "" for all others; nil: all are that of the log.
	Past map[string]int64 `json:"past,omitempty"`
	// Skipped are ranges of revisions that were left out, in order. No snapshot can be read at a revision in
	// such a range, because clients may have seen another, lost state with it.
	Skipped []Skipped `json:"skipped,omitempty"`
}

// Skipped is a range of revisions that were left out.
type Skipped struct {
	From int64 `json:"from"`
	To   int64 `json:"to"`
}

// maxSkipped bounds Floors.Skipped. Beyond it, the oldest two are merged, with the snapshots between them.
const maxSkipped = 32

// Skip returns the floors after revisions were left out.
func (f Floors) Skip(from, to int64) Floors {
	next := Floors{Log: to, Past: f.Past, Skipped: append(slices.Clone(f.Skipped), Skipped{from, to})}
	if len(next.Skipped) > maxSkipped {
		next.Skipped[1].From = next.Skipped[0].From
		next.Skipped = next.Skipped[1:]
	}
	return next
}

// ParseFloors parses the text in a database. If the text has another floor than the log, a program without support
// for packs has compacted: then all floors equal that of the log.
func ParseFloors(text string, log int64) (Floors, error) {
	if text == "" {
		return Floors{Log: log}, nil
	}
	var f Floors
	if err := json.Unmarshal([]byte(text), &f); err != nil {
		return Floors{}, &CorruptError{Reason: fmt.Sprintf("kv_meta has floors that cannot be read: %v", err)}
	}
	if f.Log != log {
		return Floors{Log: log}, nil
	}
	return f, nil
}

// Text returns the form for the database.
func (f Floors) Text() string {
	text, _ := json.Marshal(f) // numbers and strings cannot fail
	return string(text)
}

// Of returns the floor of the snapshots of a resource; for "" that of snapshots of all resources.
func (f Floors) Of(resource string) int64 {
	if f.Past == nil {
		return f.Log
	}
	if resource == "" {
		return slices.Max(slices.Collect(maps.Values(f.Past)))
	}
	return byResource(f.Past, resource, f.Past[""])
}

// Lowest returns the lowest floor.
func (f Floors) Lowest() int64 {
	if f.Past == nil {
		return f.Log
	}
	return slices.Min(slices.Collect(maps.Values(f.Past)))
}

// Check returns whether a snapshot of a resource can be read: CompactedError, FutureError or nil.
func (f Floors) Check(resource string, revision, head int64) error {
	if err := f.CheckSkipped(revision); err != nil {
		return err
	}
	return Bounds{Floor: f.Of(resource), Head: head}.Check(revision)
}

// CheckBefore returns whether the writes below a revision, or all with 0, can be read: FutureError if the database does not have the
// revision before it, CompactedError if that was left out. In both cases clients may have seen writes that are lost.
func (f Floors) CheckBefore(before, head int64) error {
	if before == 0 {
		return nil
	}
	if before-1 > head {
		return &FutureError{Revision: before - 1, Head: head}
	}
	return f.CheckSkipped(before - 1)
}

// CheckSkipped returns CompactedError for a revision that was left out.
func (f Floors) CheckSkipped(revision int64) error {
	for _, s := range f.Skipped {
		if revision > s.From && revision < s.To {
			return &CompactedError{Revision: revision, Floor: s.To}
		}
	}
	return nil
}

// Raised returns the floors after a raise to others. No floor is lowered, and no floor of snapshots is above
// that of the log. A name that to lacks is dropped once the others have reached its floor.
func (f Floors) Raised(to Floors, head int64) Floors {
	next := Floors{Log: max(f.Log, min(to.Log, head)), Past: map[string]int64{"": 0}}
	for name, floor := range to.Past {
		next.Past[name] = max(f.start(name), min(floor, next.Log))
	}
	next.Past[""] = max(f.start(""), min(to.Past[""], next.Log))
	for name, floor := range f.Past {
		if _, kept := to.Past[name]; !kept && name != "" && floor > next.Of(name) {
			next.Past[name] = floor
		}
	}
	for lowest, i := next.Lowest(), 0; i < len(f.Skipped); i++ {
		if f.Skipped[i].To > lowest {
			next.Skipped = append(next.Skipped, f.Skipped[i])
		}
	}
	return next
}

// start returns the floor from which a name's floor rises: below it nothing is kept for the name.
func (f Floors) start(name string) int64 {
	if f.Past == nil {
		return f.Log
	}
	if name == "" {
		return f.Past[""]
	}
	floor := f.Of(name)
	for other, at := range f.Past {
		if plural, _, _ := strings.Cut(other, "."); plural == name {
			floor = max(floor, at)
		}
	}
	return floor
}

// Cursor is a position among the rows of all keys, in the order of keys and revisions.
type Cursor struct {
	Key      Key
	Revision int64
}

// Packed is the result of one call of Driver.Pack.
type Packed struct {
	Next    Cursor // where the next call continues
	Done    bool   // no key is left
	Rows    int    // that were moved into packs
	Deleted int    // that are not kept
	Bytes   int64  // of the moved values
	Stored  int64  // growth of the packs

	WritersBlocked time.Duration // how long writers may have waited; 0: not measured separately
}
