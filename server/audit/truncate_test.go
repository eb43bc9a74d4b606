package audit_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/audit"
)

// TestTruncate: an event that is too large loses its bodies, and is marked; one that is
// too large without them is lost.
func TestTruncate(t *testing.T) {
	body := `"requestObject":{"data":"` + strings.Repeat("x", 2000) + `"},`
	event := func(level, agent, body string) string {
		return `{"kind":"Event","apiVersion":"audit.k8s.io/v1","level":"` + level + `","auditID":"i","stage":"ResponseComplete","requestURI":"/a","verb":"get","user":{"username":"u"},"userAgent":"` + agent + `",` +
			body + `"requestReceivedTimestamp":"1970-01-01T00:00:01.000005Z","stageTimestamp":"1970-01-01T00:00:01.000005Z","annotations":{"a":"b"}}`
	}
	marked := func(e string) string {
		return strings.Replace(e, `{"a":"b"}`, `{"a":"b","audit.k8s.io/truncated":"true"}`, 1)
	}
	long := strings.Repeat("y", 2000)
	for _, tc := range []struct{ name, event, want string }{
		{"small", event("Request", "me", ""), event("Request", "me", "")},
		{"large", event("RequestResponse", "me", body), marked(event("RequestResponse", "me", ""))},
		{"too large without bodies", event("Request", long, body), ""},
		{"too large, with none to leave out", event("Metadata", long, ""), ""},
	} {
		m := audit.NewMetrics()
		var out lines
		sink := &audit.Truncate{Sink: &out, Metrics: m, MaxEvent: 1000}
		if err := sink.Take([]byte(tc.event)); err != nil {
			t.Errorf("%s: %v", tc.name, err)
		}
		if got := strings.Join(out, "\n"); got != tc.want || (lost(t, m) == 1) != (tc.want == "") {
			t.Errorf("%s:\n%s\nwant\n%s\nlost %v", tc.name, got, tc.want, lost(t, m))
		}
	}
}

// sizes notes how large its batches are.
type sizes struct{ batches [][]string }

func (*sizes) Name() string { return "sizes" }
func (s *sizes) Send(_ context.Context, events [][]byte) error {
	var batch []string
	for _, e := range events {
		batch = append(batch, string(e))
	}
	s.batches = append(s.batches, batch)
	return nil
}

func TestBatchesAreCut(t *testing.T) {
	s := &sizes{}
	b := &audit.Batch{Sender: s, Metrics: audit.NewMetrics(), MaxSize: 10, MaxBytes: 5}
	b.Start(10)
	for _, e := range []string{"1", "22", "333", "1", "1", "too long", "1"} {
		_ = b.Take([]byte(e))
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Run(ended); err != nil { // sends the rest
		t.Fatal(err)
	}
	got, _ := json.Marshal(s.batches)
	if want := `[["1","22"],["333","1","1"],["too long"],["1"]]`; string(got) != want {
		t.Errorf("%s, want %s", got, want)
	}
}
