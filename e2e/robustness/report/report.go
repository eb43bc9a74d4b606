// Package report makes of the rounds of a run a page that needs no server and loads nothing, and JSON.
package report

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// format is the version of the JSON.
const format = 1

// Run is the report of a run.
type Run struct {
	Format     int               `json:"format"`
	Command    string            `json:"command"` // runs the same again
	Seed       uint64            `json:"seed"`
	Store      string            `json:"store"`
	Servers    int               `json:"servers"`
	Version    string            `json:"version"` // of the rowlock under test
	Began      time.Time         `json:"began"`
	Took       time.Duration     `json:"took_ns"`
	Rounds     int               `json:"rounds"`
	Operations int               `json:"operations"` // requests of all kinds
	Unsent     int               `json:"unsent"`     // requests for which there was no connection, which are no operations
	Requests   map[string]int    `json:"requests"`   // by kind and outcome
	Watches    int               `json:"watches"`
	Resumed    int               `json:"resumed"` // watches that began where an earlier one was
	Events     int               `json:"events"`
	Bookmarks  int               `json:"bookmarks"`
	Revisions  int               `json:"revisions"`
	Kills      int               `json:"kills"` // of servers, by SIGKILL
	Starts     int               `json:"starts"`
	Others     int               `json:"others"` // of starts, those of the other build
	Faults     map[string]int    `json:"faults"`
	Times      []Fault           `json:"times"`    // when each fault was
	NotMade    map[string]int    `json:"not_made"` // faults that could not be made, with the reason
	Seconds    []Second          `json:"seconds"`
	Judged     map[string]int    `json:"judged"` // records that each property was held against
	Open       map[string]int    `json:"open"`   // how many records were not judged, by the reason
	Stalls     Stalls            `json:"stalls"`
	Violations []judge.Violation `json:"violations"`
	Notes      []string          `json:"notes,omitempty"` // limits of this run
}

// Fault has the times of a fault, in seconds since the run began.
type Fault struct {
	Name  string  `json:"name"`
	What  string  `json:"what"`
	Begin float64 `json:"begin"`
	End   float64 `json:"end"`
}

// Stalls has the times when the program, or a server, did not run although no fault was injected. Bounds of time are longer by
// that.
type Stalls struct {
	Program judge.Stalls `json:"program"`
	Servers judge.Stalls `json:"servers"`
	Times   []Fault      `json:"times"`
}

// String returns a line of the summary; "": nothing stood still.
func (s *Stalls) String() string {
	if s.Program.Times+s.Servers.Times == 0 {
		return ""
	}
	of := func(s judge.Stalls) string {
		return fmt.Sprintf("%d times, for %s", s.Times, s.Total.Round(100*time.Millisecond))
	}
	return fmt.Sprintf("stood still, and bounds of time are longer by that: the program %s; servers %s", of(s.Program), of(s.Servers))
}

// Second counts what clients saw in one second.
type Second struct {
	Done    int `json:"done"`    // requests that were answered as asked
	Refused int `json:"refused"` // that were refused
	Unknown int `json:"unknown"` // without an answer
	Events  int `json:"events"`
}

// New begins the report of a run.
func New(command string, seed uint64, store string, servers int, version string) *Run {
	return &Run{Format: format, Command: command, Seed: seed, Store: store, Servers: servers, Version: version, Began: time.Now().UTC(),
		Requests: map[string]int{}, Faults: map[string]int{}, NotMade: map[string]int{}, Judged: map[string]int{}, Open: map[string]int{}, Violations: []judge.Violation{}}
}

// stoodStill is the name of stalls in the time lines.
const stoodStill = "stood still"

// Add adds a round.
func (r *Run) Add(round *history.Round, v judge.Verdict) {
	r.Rounds++
	for _, o := range round.Ops {
		if o.Outcome == history.Refused && o.Code == 0 {
			r.Unsent++
			r.second(o.Return).Refused++
			continue
		}
		r.request(o.Kind, o.Outcome, o.Return)
	}
	for _, l := range round.Lists {
		r.request("list", l.Outcome, l.Return)
		r.Operations += max(0, len(l.Pages)-1)
	}
	for _, a := range round.Accesses {
		outcome := history.Denied
		if a.Code >= 200 && a.Code < 300 {
			outcome = history.OK
		}
		what := "use of a right"
		if a.What == history.Rule {
			what = "breach of a rule"
		}
		r.request(what, outcome, a.Return)
	}
	for _, s := range round.Streams {
		r.stream(s)
	}
	for _, s := range round.Segments {
		r.Revisions += len(s.Rows)
	}
	for _, f := range round.Faults {
		if f.NotMade != "" {
			r.NotMade[f.Name+": "+f.NotMade]++
			continue
		}
		r.Faults[f.Name]++
		r.Times = append(r.Times, Fault{f.Name, f.What, f.Begin.Seconds(), f.End.Seconds()})
	}
	for name, n := range v.Judged {
		r.Judged[name] += n
	}
	for name, n := range v.Open {
		r.Open[name] += n
	}
	r.Stalls.Program.Add(v.Program)
	r.Stalls.Servers.Add(v.Servers)
	for _, s := range v.Stalls {
		r.Stalls.Times = append(r.Stalls.Times, Fault{stoodStill, s.String(), s.Begin.Seconds(), s.End.Seconds()})
	}
	r.Violations = append(r.Violations, v.Violations...)
}

func (r *Run) second(at time.Duration) *Second {
	i := int(at / time.Second)
	for len(r.Seconds) <= i {
		r.Seconds = append(r.Seconds, Second{})
	}
	return &r.Seconds[i]
}

func (r *Run) request(kind string, o history.Outcome, at time.Duration) {
	r.Operations++
	r.Requests[kind+": "+string(o)]++
	s := r.second(at)
	switch o {
	case history.Unknown:
		s.Unknown++
	case history.Refused:
		s.Refused++
	default: // a conflict, or an object that does not exist, is an answer too
		s.Done++
	}
}

func (r *Run) stream(s *history.Stream) {
	r.Operations++
	r.Watches++
	if s.From != 0 {
		r.Resumed++
	}
	for i := range s.Events {
		e := &s.Events[i]
		switch e.Type {
		case "BOOKMARK":
			r.Bookmarks++
		case "ADDED", "MODIFIED", "DELETED":
			r.Events++
			r.second(e.At).Events++
		}
	}
}

// WriteJSON writes the report for programs.
func (r *Run) WriteJSON(w io.Writer) error {
	enc := json.NewEncoder(w)
	enc.SetIndent("", " ")
	return enc.Encode(r)
}

// Summary returns the report in a few lines.
func (r *Run) Summary() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d operations, %d watches with %d events and %d bookmarks, %d revisions, %d faults, %d servers killed, in %s\n",
		r.Operations, r.Watches, r.Events, r.Bookmarks, r.Revisions, len(r.Times), r.Kills, r.Took.Round(time.Second))
	if r.Others > 0 {
		fmt.Fprintf(&b, "servers were started %d times, %d of them as the other build\n", r.Starts, r.Others)
	}
	if text := r.Stalls.String(); text != "" {
		b.WriteString(text + "\n")
	}
	for _, name := range slices.Sorted(maps.Keys(r.Open)) {
		fmt.Fprintf(&b, "not judged: %d %s\n", r.Open[name], name)
	}
	for _, name := range slices.Sorted(maps.Keys(r.NotMade)) {
		fmt.Fprintf(&b, "not made: %d faults %s\n", r.NotMade[name], name)
	}
	if names := r.unjudged(); len(names) > 0 {
		fmt.Fprintf(&b, "nothing was held against: %s\n", strings.Join(names, ", "))
	}
	if len(r.Violations) == 0 {
		b.WriteString("no violation\n")
	} else {
		fmt.Fprintf(&b, "%d violations\n", len(r.Violations))
	}
	return b.String()
}

// unjudged returns the properties that no record was held against: a run without violations says nothing about them.
func (r *Run) unjudged() (names []string) {
	for _, p := range r.properties() {
		if p.N == 0 {
			names = append(names, p.Name)
		}
	}
	return names
}

// NotProven are the limits of a run without a violation.
var NotProven = []string{
	"A run is a sample: schedules that did not come up may break what this one did not. Many seeds say more than one long run.",
	"The clock of PostgreSQL is not set, and those of servers only on linux/amd64.",
	"PostgreSQL's disk is an ordinary one: pages that it did not sync are not lost. Those of SQLite are, where FUSE can be used.",
	"Everything runs on one machine. Packets are delayed, lost and cut by proxies, and not by a network.",
	"Of the API the traffic uses ConfigMaps, Leases, Deployments, custom resources, service accounts and roles, in JSON.",
	"Relaxed durability and encryption at rest are not part of it; they have tests of their own. After PostgreSQL has lost commits, the order of writes to an object is not checked for the rest of a round.",
	"How fast anything is: times are recorded, and not judged, but for rights and for clients that do not come back.",
}
