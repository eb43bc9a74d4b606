package copying

import (
	"cmp"
	"sort"
	"sync"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// Outcome is the result for an object.
type Outcome string

const (
	Created   Outcome = "created"
	Changed   Outcome = "changed"
	Unchanged Outcome = "unchanged"
	Skipped   Outcome = "skipped"
	Conflict  Outcome = "conflict"
	Failed    Outcome = "failed"
	Noted     Outcome = "noted" // copied, but not quite as it was
)

// Tally counts the objects of a resource by outcome.
type Tally struct {
	Resource  string `json:"resource"`
	Created   int64  `json:"created"`
	Changed   int64  `json:"changed"`
	Unchanged int64  `json:"unchanged"`
	Skipped   int64  `json:"skipped"`
	Conflicts int64  `json:"conflicts"`
	Failed    int64  `json:"failed"`
}

// Detail is the result for one object in the report.
type Detail struct {
	Resource  string  `json:"resource"`
	Namespace string  `json:"namespace,omitempty"`
	Name      string  `json:"name"`
	Outcome   Outcome `json:"outcome"`
	Reason    string  `json:"reason"`
}

// maxDetails limits the objects that a report names.
const maxDetails = 10_000

// Report is the result of a copy; after a dry run, the result that a copy would have.
type Report struct {
	DryRun    bool     `json:"dryRun"`
	Resources []Tally  `json:"resources"`
	Total     Tally    `json:"total"`
	Details   []Detail `json:"details"`           // objects neither created, changed nor unchanged; notes
	Unnamed   int64    `json:"unnamed,omitempty"` // details beyond those

	mu      sync.Mutex
	tallies map[string]*Tally
	plan    bool // name everything
}

func newReport(dry bool) *Report {
	return &Report{DryRun: dry, Details: []Detail{}, Resources: []Tally{}, tallies: map[string]*Tally{}, plan: dry}
}

func (r *Report) add(t *task, o Outcome, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	sum := r.tallies[t.Resource]
	if sum == nil {
		sum = &Tally{Resource: t.Resource}
		r.tallies[t.Resource] = sum
	}
	for _, s := range []*Tally{sum, &r.Total} {
		switch o {
		case Created:
			s.Created++
		case Changed:
			s.Changed++
		case Unchanged:
			s.Unchanged++
		case Skipped:
			s.Skipped++
		case Conflict:
			s.Conflicts++
		case Failed:
			s.Failed++
		}
	}
	if reason != "" || r.plan && o != Unchanged {
		r.detail(t, o, reason)
	}
}

// note records how a copied object differs from its source.
func (r *Report) note(t *task, reason string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.detail(t, Noted, reason)
}

func (r *Report) detail(t *task, o Outcome, reason string) {
	if len(r.Details) >= maxDetails {
		r.Unnamed++
		return
	}
	r.Details = append(r.Details, Detail{t.Resource, t.namespace, t.name, o, remote.Printable(reason)})
}

// finish sorts the report.
func (r *Report) finish() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, s := range r.tallies {
		r.Resources = append(r.Resources, *s)
	}
	sort.Slice(r.Resources, func(i, j int) bool { return r.Resources[i].Resource < r.Resources[j].Resource })
	sort.SliceStable(r.Details, func(i, j int) bool {
		a, b := &r.Details[i], &r.Details[j]
		return cmp.Or(cmp.Compare(a.Outcome, b.Outcome), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Namespace, b.Namespace), cmp.Compare(a.Name, b.Name)) < 0
	})
	r.Total.Resource = "total"
}
