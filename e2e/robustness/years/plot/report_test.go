package plot_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/robustness/years/flat"
	"github.com/rowlock/rowlock/e2e/robustness/years/plot"
)

func points(n int, value func(i int) float64) (list []flat.Point) {
	for i := range n {
		list = append(list, flat.Point{At: float64(i), Value: value(i)})
	}
	return list
}

// TestReport: the report names what grows after the server has settled, and nothing else.
func TestReport(t *testing.T) {
	r := &plot.Report{
		Command: "go run <it>", Store: "sqlite", Took: 100 * time.Second, Settle: 25, Requests: map[string]int{"lease": 7, "pod": 9},
		Turnover: []plot.Turnover{{What: "time", Month: 43200, Run: 1.5}, {What: "watches", Run: 12}},
		Measures: []*plot.Measure{
			{Name: "memory", Unit: plot.Bytes, Tolerance: flat.Tolerance{Share: 0.1}, Points: points(100, func(i int) float64 { return 1 << 20 * float64(100+i) })},
			{Name: "files", Unit: plot.Count, Tolerance: flat.Tolerance{Share: 0.1}, Points: points(100, func(i int) float64 { return float64(min(i, 20)) })},
			{Name: "nothing", Unit: plot.Seconds, Points: points(100, func(int) float64 { return 0 })},
			{Name: "rare", Unit: plot.Seconds, Points: points(4, func(int) float64 { return 0.1 })},
		},
	}
	r.Judge()
	if r.Faults() != 1 || len(r.Growing()) != 1 || r.Growing()[0].Name != "memory" {
		t.Errorf("%d faults, growing: %v", r.Faults(), r.Growing())
	}
	const growth = "memory grew from 137.00 MB to 187.00 MB (medians of the first and the last third), and may grow by 13.70 MB; it goes on by 60.00 MB a minute"
	if s := r.Summary(); !strings.Contains(s, "GROWS: "+growth) || strings.Contains(s, "nothing grows") || !strings.Contains(s, "3 of 4 measures judged") {
		t.Errorf("the summary is\n%s", s)
	}
	var html, text bytes.Buffer
	if err := r.WriteHTML(&html); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{growth, "go run &lt;it&gt;", "not judged: too few samples", "<td>time, minutes</td><td class=\"n\">43200</td>"} {
		if !strings.Contains(html.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(html.String(), "<polyline"); n != 4 || strings.Contains(html.String(), "NaN") || strings.Contains(html.String(), "Inf") {
		t.Errorf("the page has %d plots:\n%s", n, html.String())
	}
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var again plot.Report
	if err := json.Unmarshal(text.Bytes(), &again); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(*r, again); diff != "" {
		t.Errorf("the JSON is another report (-want +got):\n%s", diff)
	}
	r.Measures = r.Measures[1:]
	if r.Wrong = []string{"an answer"}; r.Faults() != 1 || !strings.Contains(r.Summary(), "WRONG: an answer") {
		t.Errorf("%d faults\n%s", r.Faults(), r.Summary())
	}
	if r.Wrong = nil; r.Faults() != 0 || !strings.Contains(r.Summary(), "nothing grows") {
		t.Errorf("%d faults\n%s", r.Faults(), r.Summary())
	}
}
