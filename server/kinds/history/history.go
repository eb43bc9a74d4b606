// Package history declares the resources of the group history.rowlock.dev, which show past states of
// objects. The server stores none of them; package verbs/history answers requests for them.
package history

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
)

// Resources of the group.
const (
	Revisions        = "revisions"
	ClusterRevisions = "clusterrevisions"
	Moments          = "moments"
	Diff             = "diff" // a subresource of revisions
)

// described is the schema of a kind of the group: nothing is stored, so nothing is converted.
type described struct{ kinds.AsStored }

// Resources returns the resources of the group. Each call makes new values.
func Resources() []*kinds.Resource {
	revision := func(plural, kind, short string, namespaced bool) *kinds.Resource {
		r := resource(plural, kind, "get", "list")
		r.ShortNames, r.Namespaced, r.OfOne = []string{short}, namespaced, true
		r.Subresources = []kinds.Subresource{{Name: Diff, Kind: "Difference", Verbs: []string{"get"}, NoTable: true}}
		r.Columns = revisionColumns
		return r
	}
	moments := resource(Moments, "Moment", "get")
	moments.Columns = momentColumns
	return []*kinds.Resource{
		revision(ClusterRevisions, "ClusterRevision", "crev", false),
		moments,
		revision(Revisions, "Revision", "rev", true),
	}
}

func resource(plural, kind string, verbs ...string) *kinds.Resource {
	return &kinds.Resource{
		Group: history.GroupVersion.Group, Version: history.GroupVersion.Version, Reserved: true, Schema: described{},
		Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List", Verbs: verbs,
	}
}

var revisionColumns = columns.Of(func(r *history.Revision, now time.Time) []any {
	return []any{
		r.Revision, r.Change, columns.Since(metav1.NewTime(r.WrittenAt.Time), now), managersCell(r), changedCell(r),
		r.Object.Resource + "/" + r.Object.Name, r.User, r.WrittenAt.UTC().Format(time.RFC3339), r.Name,
	}
},
	columns.Text("Revision", "Number of the write."),
	columns.Text("Change", "What the write did: create, update or delete."),
	columns.Text("When", "Time since the write."),
	columns.Text("Managers", "Field managers whose entries the write made or renewed."),
	columns.Text("Changed", "Fields that the write changed."),
	columns.Wide(columns.Text("Object", "What was written.")),
	columns.Wide(columns.Text("User", "Who wrote it, where an annotation tells.")),
	columns.Wide(columns.Text("Written", "Time of the write.")),
	columns.Wide(columns.Name()),
)

var momentColumns = columns.Of(func(m *history.Moment, _ time.Time) []any {
	written := "<unknown>"
	if m.WrittenAt != nil {
		written = m.WrittenAt.UTC().Format(time.RFC3339)
	}
	return []any{m.Name, m.Revision, written, m.Oldest}
},
	columns.Name(),
	columns.Text("Revision", "The newest revision that had been written by then."),
	columns.Text("Written", "When it was written."),
	columns.Text("Oldest", "The first revision at which everything can be read."),
)

// managersCell names each manager once.
func managersCell(r *history.Revision) string {
	var names []string
	seen := map[string]bool{}
	for _, m := range r.Managers {
		name := m.Manager
		if m.Subresource != "" {
			name += "/" + m.Subresource
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	return some(names, false, r)
}

// changedCell names the first fields that changed. A write that made or ended the object
// changed all of it.
func changedCell(r *history.Revision) string {
	if r.Change != history.Updated {
		return "<all>"
	}
	return some(r.ChangedFields, r.MoreChangedFields, r)
}

// maxNamed bounds the names in a cell.
const maxNamed = 3

// some names the first of names; more means that there are others than these.
func some(names []string, more bool, r *history.Revision) string {
	switch {
	case r.Unreadable != "":
		return "<unreadable>"
	case r.Previous == "" && r.Change == history.Updated:
		return "<unknown>"
	case len(names) == 0:
		return "<none>"
	case len(names) <= maxNamed && !more:
		return strings.Join(names, ",")
	}
	shown := names[:min(maxNamed, len(names))]
	rest := len(names) - len(shown)
	if more {
		return fmt.Sprintf("%s + more than %d more", strings.Join(shown, ","), rest)
	}
	return fmt.Sprintf("%s + %d more", strings.Join(shown, ","), rest)
}

// OpenAPI returns the OpenAPI 3 schema of a kind of the group; nil for a kind of others.
func OpenAPI(r *kinds.Resource) json.RawMessage {
	if _, ok := r.Schema.(described); !ok {
		return nil
	}
	text, err := json.Marshal(schemas[r.Kind])
	if err != nil || schemas[r.Kind] == nil {
		return nil
	}
	return text
}
