// Package plot judges the measures of a long run, and draws them into a report.
package plot

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/years/flat"
)

// Unit is the unit of a measure.
type Unit string

// The units.
const (
	Bytes   Unit = "bytes"
	Seconds Unit = "seconds"
	Count   Unit = "count"
)

// Show writes a value with its unit.
func (u Unit) Show(v float64) string {
	switch u {
	case Bytes:
		return fmt.Sprintf("%.2f MB", v/(1<<20))
	case Seconds:
		return fmt.Sprintf("%.2f ms", v*1000)
	}
	return fmt.Sprintf("%.6g", v)
}

// Measure is something that must not grow.
type Measure struct {
	Name      string         `json:"name"`
	Unit      Unit           `json:"unit"`
	Tolerance flat.Tolerance `json:"tolerance"`
	Judged    bool           `json:"judged"` // false: there are too few samples
	Verdict   flat.Verdict   `json:"verdict"`
	Points    []flat.Point   `json:"points"`
}

// Turnover compares the run with 30 days of a cluster.
type Turnover struct {
	What  string  `json:"what"`
	Month float64 `json:"month,omitempty"` // 0: clusters differ too much
	Run   float64 `json:"run"`
}

// Report is a run.
type Report struct {
	Command  string         `json:"command"`
	Store    string         `json:"store"`
	Version  string         `json:"version"`
	Began    time.Time      `json:"began"`
	Took     time.Duration  `json:"took"`
	Settle   float64        `json:"settle"` // samples before that many seconds are not judged
	First    int64          `json:"first"`  // revision
	Last     int64          `json:"last"`
	Requests map[string]int `json:"requests"`
	Turnover []Turnover     `json:"turnover"`
	Measures []*Measure     `json:"measures"`
	Wrong    []string       `json:"wrong"` // besides growth
}

// Judge judges all measures.
func (r *Report) Judge() {
	for _, m := range r.Measures {
		settled := m.Points
		for len(settled) > 0 && settled[0].At < r.Settle {
			settled = settled[1:]
		}
		m.Verdict, m.Judged = flat.Judge(settled, m.Tolerance)
	}
}

// Growing returns the measures that grow.
func (r *Report) Growing() (list []*Measure) {
	for _, m := range r.Measures {
		if m.Verdict.Grows {
			list = append(list, m)
		}
	}
	return list
}

// Faults counts the measures that grow, and what else is wrong.
func (r *Report) Faults() int { return len(r.Growing()) + len(r.Wrong) }

// Growth describes how a measure grows.
func (m *Measure) Growth() string {
	v := m.Verdict
	return fmt.Sprintf("%s grew from %s to %s (medians of the first and the last third), and may grow by %s; it goes on by %s a minute", m.Name, m.Unit.Show(v.First), m.Unit.Show(v.Last), m.Unit.Show(v.Allowed), m.Unit.Show(v.Slope*60))
}

// Summary returns the result in lines.
func (r *Report) Summary() string {
	var b strings.Builder
	requests, judged := 0, 0
	for _, n := range r.Requests {
		requests += n
	}
	for _, m := range r.Measures {
		if m.Judged {
			judged++
		}
		fmt.Fprintf(&b, "%-38s %14s %14s %14s\n", m.Name, m.Unit.Show(m.Verdict.First), m.Unit.Show(m.Verdict.Middle), m.Unit.Show(m.Verdict.Last))
	}
	for _, t := range r.Turnover {
		month := ""
		if t.Month > 0 {
			month = fmt.Sprintf(" of %.6g in 30 days", t.Month)
		}
		fmt.Fprintf(&b, "%s: %.4g%s\n", t.What, t.Run, month)
	}
	fmt.Fprintf(&b, "%d requests and %d revisions in %s, past 2^53; %d of %d measures judged\n", requests, r.Last-r.First, r.Took.Round(time.Second), judged, len(r.Measures))
	for _, m := range r.Growing() {
		fmt.Fprintf(&b, "GROWS: %s\n", m.Growth())
	}
	for _, w := range r.Wrong {
		fmt.Fprintf(&b, "WRONG: %s\n", w)
	}
	if r.Faults() == 0 {
		b.WriteString("nothing grows\n")
	}
	return b.String()
}

// WriteJSON writes the report for programs.
func (r *Report) WriteJSON(w io.Writer) error {
	return json.NewEncoder(w).Encode(r)
}
