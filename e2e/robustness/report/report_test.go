package report_test

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
	"github.com/rowlock/rowlock/e2e/robustness/report"
)

// TestReport makes a page and JSON of a round with a violation.
func TestReport(t *testing.T) {
	t.Parallel()
	r := report.New("go run ./e2e/robustness -seed 7", 7, "sqlite", 1, "v1")
	round := &history.Round{
		Ops: []*history.Op{
			{Kind: history.Get, Outcome: history.OK, Return: 1500 * time.Millisecond},
			{Kind: history.Set, Outcome: history.Unknown, Return: 2500 * time.Millisecond},
			{Kind: history.Set, Outcome: history.Refused, Code: 503, Return: 2600 * time.Millisecond},
			{Kind: history.Set, Outcome: history.Refused, Return: 2700 * time.Millisecond}, // found no connection
		},
		Lists:    []*history.List{{Outcome: history.OK, Return: time.Second, Pages: make([]history.Page, 3)}},
		Streams:  []*history.Stream{{From: 5, Events: []history.Event{{Type: "ADDED", At: 2 * time.Second}, {Type: "BOOKMARK"}}}},
		Accesses: []*history.Access{{Code: 403}},
		Faults:   []*history.Fault{{Name: "kill", What: "server 0 is <killed>", Begin: time.Second, End: 3 * time.Second}, {Name: "descriptors", NotMade: "no such file"}},
		Segments: []*history.Segment{{Rows: make([]history.Row, 4)}},
	}
	r.Add(round, judge.Verdict{
		Violations: []judge.Violation{{Property: "reads", Round: 1, What: "a read is stale", History: []string{"get a -> 5"}}},
		Judged:     map[string]int{"reads": 12}, Open: map[string]int{"reads of what was compacted": 2},
		Stalls:  []history.Stall{{Server: -1, Begin: time.Second, End: 2 * time.Second}, {Server: 3, Begin: 2 * time.Second, End: 4500 * time.Millisecond}},
		Program: judge.Stalls{Times: 1, Total: time.Second}, Servers: judge.Stalls{Times: 1, Total: 2500 * time.Millisecond},
	})
	r.Took = time.Minute
	if r.Operations != 8 || r.Unsent != 1 || r.Watches != 1 || r.Events != 1 || r.Bookmarks != 1 || r.Revisions != 4 || r.Faults["kill"] != 1 || len(r.Faults) != 1 || r.NotMade["descriptors: no such file"] != 1 || r.Seconds[2] != (report.Second{Refused: 2, Unknown: 1, Events: 1}) {
		t.Errorf("%+v", r)
	}
	var text, page bytes.Buffer
	if err := r.WriteJSON(&text); err != nil {
		t.Fatal(err)
	}
	var back report.Run
	if err := json.Unmarshal(text.Bytes(), &back); err != nil || back.Stalls.Program.Total != time.Second || back.Stalls.Servers.Times != 1 || len(back.Stalls.Times) != 2 || back.Operations != 8 || len(back.Violations) != 1 || back.Seed != 7 {
		t.Errorf("%v: %s", err, text.String())
	}
	if err := r.WriteHTML(&page); err != nil {
		t.Fatal(err)
	}
	const stalled = "stood still, and bounds of time are longer by that: the program 1 times, for 1s; servers 1 times, for 2.5s"
	for _, want := range []string{"1 violations", "a read is stale", "get a -&gt; 5", "server 0 is &lt;killed&gt;", "go run ./e2e/robustness -seed 7", `class="fault"`, `class="unknown"`, "What this does not prove", "watch-bookmarkable", "not made: descriptors: no such file", "2</td><td>reads of what was compacted", stalled, `class="stall"`, "2.0 s to 4.5 s: 2.000s..4.500s server 3 stands still", "stood still (2)"} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page does not have %q", want)
		}
	}
	for _, outside := range []string{"<script", "http://", "https://", "src=", "@import", "<link"} {
		if strings.Contains(page.String(), outside) {
			t.Errorf("the page loads something: %q", outside)
		}
	}
	if all := r.Summary(); !strings.Contains(all, "\nnothing was held against: revisions, compaction,") || strings.Contains(all, " reads,") {
		t.Error(all)
	}
	if !strings.Contains(r.Summary(), "1 violations") || !strings.Contains(r.Summary(), stalled+"\n") || !strings.Contains(r.Summary(), "not made: 1 faults descriptors: no such file") {
		t.Error(r.Summary())
	}
}
