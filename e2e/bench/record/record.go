// Package record stores the measurements of a run of e2e/bench, and its environment, as JSON for comparison
// with later runs and for plots.
//
// Each figure has its unit and its spread, and each run its machine and its versions.
package record

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"
)

// format is the version of the JSON. Other versions are refused.
const format = 1

// ErrFormat reports that a file is no record, or one of a later version.
var ErrFormat = errors.New("not a record of a run that this version knows")

// Run holds the measurements of one run.
type Run struct {
	Format  int       `json:"format"`
	Name    string    `json:"name"` // the name in plots
	Taken   time.Time `json:"taken"`
	Command []string  `json:"command"` // the arguments; credentials are left out
	Where
	Figures []Figure `json:"figures"`
}

// Better defines whether a higher or a lower value of a figure is better.
type Better string

// Without one, neither is better.
const (
	Lower  Better = "lower"
	Higher Better = "higher"
)

// Figure is a quantity that was measured once or several times.
type Figure struct {
	Group  string    `json:"group"`            // the measurement, "create"
	Name   string    `json:"name"`             // "32 clients, p99"
	Server string    `json:"server,omitempty"` // if several servers were measured
	Unit   string    `json:"unit"`             // "ms", "MB", "1/s", "times", ""
	Better Better    `json:"better,omitempty"`
	Goal   float64   `json:"goal,omitempty"` // the promised value; 0: none
	Median float64   `json:"median"`
	Min    float64   `json:"min"`
	Max    float64   `json:"max"`
	Values []float64 `json:"values"` // in the order in which they were measured
}

// Of makes a figure of at least one value.
func Of(group, name, unit string, better Better, values ...float64) Figure {
	sorted := slices.Sorted(slices.Values(values))
	f := Figure{Group: group, Name: name, Unit: unit, Better: better, Values: values}
	if n := len(sorted); n > 0 {
		f.Median, f.Min, f.Max = (sorted[(n-1)/2]+sorted[n/2])/2, sorted[0], sorted[n-1]
	}
	return f
}

// Met reports whether the median of a figure reaches its goal.
func (f Figure) Met() bool {
	if f.Better == Higher {
		return f.Median >= f.Goal
	}
	return f.Median <= f.Goal
}

// String formats a figure as "12.3 ms (11.0 to 14.2)".
func (f Figure) String() string {
	text := Number(f.Median)
	if f.Unit != "" {
		text += " " + f.Unit
	}
	if f.Min != f.Max {
		text += fmt.Sprintf(" (%s to %s)", Number(f.Min), Number(f.Max))
	}
	return text
}

// Number formats a value with three significant digits.
func Number(v float64) string {
	switch size := max(v, -v); {
	case size >= 100 || v == float64(int64(v)):
		return fmt.Sprintf("%.0f", v)
	case size >= 10:
		return fmt.Sprintf("%.1f", v)
	case size >= 0.1:
		return fmt.Sprintf("%.2f", v)
	}
	return fmt.Sprintf("%.3g", v)
}

// Add adds a figure.
func (r *Run) Add(f Figure) { r.Figures = append(r.Figures, f) }

// Write writes the record to a file, and replaces an existing one.
func (r *Run) Write(path string) error {
	r.Format = format
	text, err := json.MarshalIndent(r, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(path, append(text, '\n'), 0o644)
}

// Read reads a record. The error is ErrFormat, or that of the file.
func Read(path string) (*Run, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := &Run{}
	if err := json.Unmarshal(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w: %w", path, ErrFormat, err)
	}
	if r.Format != format {
		return nil, fmt.Errorf("%s: %w: format %d", path, ErrFormat, r.Format)
	}
	for i, f := range r.Figures {
		if cmp.Or(f.Group, f.Name) == "" || len(f.Values) == 0 || f.Min > f.Median || f.Median > f.Max {
			return nil, fmt.Errorf("%s: figures[%d]: %w: it has no name, no value, or a median that is not between them", path, i, ErrFormat)
		}
	}
	return r, nil
}
