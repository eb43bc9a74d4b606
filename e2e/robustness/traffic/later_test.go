//go:build unix

package traffic

import (
	"encoding/json"
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

func parsed(t *testing.T, text string) (o object) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &o); err != nil {
		t.Fatal(err)
	}
	return o
}

// TestLater: each client of later releases has a release that servers can be, and a name of its own.
func TestLater(t *testing.T) {
	t.Parallel()
	names := map[string]bool{}
	for _, l := range later {
		if l.since < cluster.Oldest || l.since > cluster.Newest || names[l.name] || l.run == nil {
			t.Errorf("%+v", l)
		}
		names[l.name] = true
	}
	for _, r := range laterRules {
		if r.since <= cluster.Oldest || r.since > cluster.Newest || r.code < 400 {
			t.Errorf("%s: since %s, refused with %d", r.what, r.since, r.code)
		}
	}
}

// TestSized: a resize changes the requested processor, the generation and the version of a Pod, and nothing else that sized has.
func TestSized(t *testing.T) {
	t.Parallel()
	const pod = `{"metadata":{"resourceVersion":"7","generation":2},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"101m"}}}]}}`
	want := sized{cpu: "101m", image: "i", version: "7", generation: 2}
	if wrong := want.differs(parsed(t, pod)); wrong != "" {
		t.Error(wrong)
	}
	if want.differs(nil) != "it is gone" {
		t.Error("a Pod that is gone is as it was")
	}
	for _, other := range []string{
		`{"metadata":{"resourceVersion":"7","generation":1},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"101m"}}}]}}`,
		`{"metadata":{"resourceVersion":"6","generation":2},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"101m"}}}]}}`,
		`{"metadata":{"resourceVersion":"7","generation":2,"labels":{"stolen":"yes"}},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"101m"}}}]}}`,
		`{"metadata":{"resourceVersion":"7","generation":2},"spec":{"containers":[{"name":"c","image":"stolen","resources":{"requests":{"cpu":"101m"}}}]}}`,
		`{"metadata":{"resourceVersion":"7","generation":2},"spec":{"containers":[{"name":"c","image":"i","resources":{"requests":{"cpu":"102m"}}}]}}`,
		`{"metadata":{"resourceVersion":"7","generation":2},"spec":{"containers":[]}}`,
	} {
		if want.differs(parsed(t, other)) == "" {
			t.Errorf("%s is %s", other, pod)
		}
	}
	if wrong := going(parsed(t, pod)); wrong != "it is not marked" {
		t.Errorf("an object that is not marked for deletion: %q", wrong)
	}
	if wrong := going(parsed(t, `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z"}}`)); wrong != "" {
		t.Error(wrong)
	}
}
