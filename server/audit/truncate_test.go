package audit_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/audit"
)

// TestTruncate: an event that is too large loses its bodies, and is marked; one that is
// too large without them has shorter texts.
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
		{"too large without bodies", event("Request", long, body), marked(event("Request", long[:256]+"...", ""))},
		{"too large, with none to leave out", event("Metadata", long, ""), marked(event("Metadata", long[:256]+"...", ""))},
		{"no event", "[" + long, ""},
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

// TestNoClientEscapesTheLog: whatever part of a request is long, the event is in the log, with the verb, the user and the code.
func TestNoClientEscapesTheLog(t *testing.T) {
	const limit = 16 << 10
	long, many := strings.Repeat("x<", 100_000), slices.Repeat([]string{"group"}, 50_000)
	extra, notes := map[string]authenticationv1.ExtraValue{"many": many}, map[string]string{}
	for i := range 10_000 {
		extra[fmt.Sprint("extra", i)], notes[fmt.Sprint("note", i)] = []string{"a"}, "a"
	}
	for name, change := range map[string]func(*audit.Event){
		"query":       func(e *audit.Event) { e.RequestURI += "?labelSelector=" + long },
		"name":        func(e *audit.Event) { e.ObjectRef.Name, e.RequestURI = long, "/"+long },
		"subresource": func(e *audit.Event) { e.ObjectRef.Subresource = long },
		"message":     func(e *audit.Event) { e.ResponseStatus.Message = long },
		"causes": func(e *audit.Event) {
			e.ResponseStatus.Details = &metav1.StatusDetails{Causes: []metav1.StatusCause{{Message: long}}}
		},
		"groups": func(e *audit.Event) { e.User.Groups = many },
		"extra":  func(e *audit.Event) { e.User.Extra = extra },
		"impersonated": func(e *audit.Event) {
			e.ImpersonatedUser = &authenticationv1.UserInfo{Username: long, Groups: []string{long}, Extra: extra}
		},
		"annotation": func(e *audit.Event) {
			e.Annotations = map[string]string{"pod-security.kubernetes.io/audit-violations": long}
		},
		"annotations": func(e *audit.Event) { e.Annotations = notes },
		"all with body": func(e *audit.Event) {
			e.RequestURI, e.UserAgent, e.ObjectRef.Namespace, e.User.UID, e.User.Groups, e.User.Extra, e.Annotations = long, long, long, long, many, extra, notes
			e.Level, e.RequestObject = audit.Request, []byte(`"`+long+`"`)
		},
	} {
		e := &audit.Event{
			Kind: "Event", APIVersion: "audit.k8s.io/v1", Level: audit.Metadata, AuditID: "i", Stage: audit.ResponseComplete, RequestURI: "/api/v1/pods", Verb: "delete",
			ObjectRef: &audit.ObjectReference{Resource: "pods"}, ResponseStatus: &metav1.Status{Code: 403},
		}
		e.User.Username = "eve"
		change(e)
		line, err := json.Marshal(e)
		if err != nil {
			t.Fatal(err)
		}
		m := audit.NewMetrics()
		var out lines
		if err := (&audit.Truncate{Sink: &out, Metrics: m, MaxEvent: limit}).Take(line); err != nil {
			t.Fatal(err)
		}
		if len(out) != 1 || lost(t, m) > 0 || len(out[0]) > limit {
			t.Errorf("%s: %d events, %v lost", name, len(out), lost(t, m))
			continue
		}
		var got audit.Event
		if err := json.Unmarshal([]byte(out[0]), &got); err != nil {
			t.Fatal(err)
		}
		if got.Verb != "delete" || got.User.Username != "eve" || got.ResponseStatus.Code != 403 || got.ObjectRef.Resource != "pods" || got.Annotations["audit.k8s.io/truncated"] != "true" {
			t.Errorf("%s: %.500s", name, out[0])
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
