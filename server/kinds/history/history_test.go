package history_test

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/kinds"
	kindshistory "github.com/rowlock/rowlock/server/kinds/history"
)

func resource(t *testing.T, plural string) *kinds.Resource {
	t.Helper()
	all := kindshistory.Resources()
	i := slices.IndexFunc(all, func(r *kinds.Resource) bool { return r.Plural == plural })
	if i < 0 {
		t.Fatalf("there are no %s", plural)
	}
	return all[i]
}

// TestRevisionCells: a row describes a write in few words, and marks unknown values.
func TestRevisionCells(t *testing.T) {
	now := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	managers := func(names ...string) (out []history.Manager) {
		for _, n := range names {
			out = append(out, history.Manager{Manager: n})
		}
		return out
	}
	for name, c := range map[string]struct {
		revision          history.Revision
		managers, changed string
	}{
		"create":     {history.Revision{Change: history.Created, Managers: managers("kubectl")}, "kubectl", "<all>"},
		"delete":     {history.Revision{Change: history.Deleted, Previous: "3"}, "<none>", "<all>"},
		"update":     {history.Revision{Change: history.Updated, Previous: "3", ChangedFields: []string{"spec.a", "spec.b"}, Managers: managers("a", "b", "a")}, "a,b", "spec.a,spec.b"},
		"status":     {history.Revision{Change: history.Updated, Previous: "3", Managers: []history.Manager{{Manager: "kubelet", Subresource: "status"}}}, "kubelet/status", "<none>"},
		"first kept": {history.Revision{Change: history.Updated, ChangedFields: []string{"x"}}, "<unknown>", "<unknown>"},
		"unreadable": {history.Revision{Change: history.Updated, Previous: "3", Unreadable: "no key"}, "<unreadable>", "<unreadable>"},
		"many": {history.Revision{Change: history.Updated, Previous: "3", ChangedFields: []string{"a", "b", "c", "d", "e"}, Managers: managers("1", "2", "3", "4")},
			"1,2,3 + 1 more", "a,b,c + 2 more"},
		"more than told": {history.Revision{Change: history.Updated, Previous: "3", ChangedFields: []string{"a", "b"}, MoreChangedFields: true, Managers: managers("m")},
			"m", "a,b + more than 0 more"},
	} {
		r := c.revision
		r.Name, r.Revision, r.User = "deployments.apps:web:7", "7", "jane"
		r.WrittenAt = metav1.NewMicroTime(now.Add(-90 * time.Second))
		r.Object = history.Reference{Resource: "deployments", Group: "apps", Name: "web"}
		want := []any{"7", r.Change, "90s", c.managers, c.changed, "deployments/web", "jane", "2026-03-01T11:58:30Z", r.Name}
		got := resource(t, kindshistory.Revisions).Columns.Cells(&r, now)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
}

func TestMomentCells(t *testing.T) {
	written := metav1.NewMicroTime(time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	m := &history.Moment{Revision: "9", Oldest: "4"}
	m.Name = "now"
	cells := resource(t, kindshistory.Moments).Columns.Cells
	if diff := cmp.Diff([]any{"now", "9", "<unknown>", "4"}, cells(m, time.Time{})); diff != "" {
		t.Error(diff)
	}
	m.WrittenAt = &written
	if diff := cmp.Diff([]any{"now", "9", "2026-03-01T12:00:00Z", "4"}, cells(m, time.Time{})); diff != "" {
		t.Error(diff)
	}
}

// TestOpenAPI: the documents describe each field that the types have, and no other.
func TestOpenAPI(t *testing.T) {
	types := map[string]reflect.Type{
		"Revision": reflect.TypeFor[history.Revision](), "ClusterRevision": reflect.TypeFor[history.Revision](), "Moment": reflect.TypeFor[history.Moment](),
	}
	for _, r := range kindshistory.Resources() {
		var schema struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if err := json.Unmarshal(kindshistory.OpenAPI(r), &schema); err != nil {
			t.Fatalf("%s: %v", r.Kind, err)
		}
		want := map[string]bool{"apiVersion": true, "kind": true}
		for i := range types[r.Kind].NumField() {
			if name, _, _ := strings.Cut(types[r.Kind].Field(i).Tag.Get("json"), ","); name != "" {
				want[name] = true
			}
		}
		if diff := cmp.Diff(slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(schema.Properties))); diff != "" {
			t.Errorf("%s: %s", r.Kind, diff)
		}
	}
	if text := kindshistory.OpenAPI(&kinds.Resource{Kind: "Revision"}); text != nil {
		t.Errorf("a kind of others is described as %s", text)
	}
}
