// Package blame finds the writer that last set each field of an object, and the time. It reads the revisions of the object, newest
// first, and holds two of them at a time; beyond the kept history it uses managedFields.
package blame

import (
	"encoding/json"
	"strings"
	"time"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// Origin is the write that last set a field.
type Origin struct {
	Path     string    `json:"path"`
	Manager  string    `json:"manager,omitempty"`
	User     string    `json:"user,omitempty"`
	Time     time.Time `json:"time"`
	Revision string    `json:"revision,omitempty"`
	Change   string    `json:"change,omitempty"` // create or update
	// Before: the value is older than the kept history. Time is then that of the managedFields entry, or of the
	// oldest revision.
	Before bool `json:"before,omitempty"`
}

// Tracer finds origins. Add revisions, newest first, until Add returns false; then call Origins.
type Tracer struct {
	Object  revisions.Object // as of the newest revision
	origins map[string]Origin
	open    map[string]leaf
	newer   *revisions.Revision // the one before
	state   revisions.Object    // its object
	seen    int
}

// Add takes the next older revision, with its content. It returns false if no older revision is needed.
func (t *Tracer) Add(r *revisions.Revision) (more bool, err error) {
	if t.newer != nil && (r.Deleted() || r.Object.UID != t.newer.Object.UID) {
		t.settle(nil) // an object of the same name, which is another one
		return false, nil
	}
	if t.newer != nil && r.Unreadable != "" {
		return false, nil // older revisions cannot be compared
	}
	obj, err := r.Decoded()
	if err != nil {
		return false, err
	}
	t.seen++
	if t.newer == nil {
		t.Object, t.origins = obj, map[string]Origin{}
		t.open = flatten(withoutRecords(obj))
	} else {
		t.settle(flatten(withoutRecords(obj)))
	}
	t.newer, t.state = r, obj
	if r.Change == "create" {
		t.settle(nil)
	}
	return len(t.open) > 0, nil
}

// settle finds the fields that the newer revision set: the older one lacks them or has other values.
func (t *Tracer) settle(older map[string]leaf) {
	for text, l := range t.open {
		if old, had := older[text]; had && old.value == l.value {
			continue
		}
		delete(t.open, text)
		t.origins[text] = Origin{
			Path: text, Manager: t.manager(l.at), User: t.newer.User, Time: t.newer.WrittenAt.Time,
			Revision: t.newer.Revision, Change: t.newer.Change,
		}
	}
}

// manager returns the writer of a revision that owns a field.
func (t *Tracer) manager(p path) string {
	by := t.newer.By()
	if len(by) < 2 {
		return strings.Join(by, "")
	}
	for _, e := range entries(t.state) {
		for _, m := range t.newer.Managers {
			if m.Manager == e.Manager && m.Operation == e.Operation && m.Subresource == e.Subresource && owns(e.fields(), p) {
				return m.Manager
			}
		}
	}
	return strings.Join(by, ", ")
}

// Origins returns the origins of all fields, by path.
func (t *Tracer) Origins() map[string]Origin {
	if t.newer == nil {
		return nil
	}
	records := entries(t.state)
	for text, l := range t.open {
		o := Origin{Path: text, Time: t.newer.WrittenAt.Time, Before: true}
		for _, e := range records {
			if owns(e.fields(), l.at) {
				o.Manager, o.Time = e.Manager, e.Time
				break
			}
		}
		t.origins[text] = o
	}
	t.open = nil
	return t.origins
}

// Oldest returns the oldest revision that was read, and how many were; nil for none.
func (t *Tracer) Oldest() (*revisions.Revision, int) { return t.newer, t.seen }

// entry is an entry of managedFields.
type entry struct {
	Manager     string          `json:"manager"`
	Operation   string          `json:"operation"`
	Subresource string          `json:"subresource"`
	Time        time.Time       `json:"time"`
	FieldsV1    json.RawMessage `json:"fieldsV1"`
	parsed      map[string]any
}

func (e *entry) fields() map[string]any {
	if e.parsed == nil {
		e.parsed = map[string]any{}
		_ = utiljson.Unmarshal(e.FieldsV1, &e.parsed) // unreadable entries own nothing
	}
	return e.parsed
}

func entries(obj revisions.Object) []*entry {
	meta, _ := obj["metadata"].(map[string]any)
	text, err := json.Marshal(meta["managedFields"])
	var list []*entry
	if err != nil || json.Unmarshal(text, &list) != nil {
		return nil // the server's records are inconsistent: no manager is named
	}
	return list
}

// withoutRecords returns an object without managedFields.
func withoutRecords(obj revisions.Object) revisions.Object {
	meta, _ := obj["metadata"].(map[string]any)
	short := make(map[string]any, len(meta))
	for key, value := range meta {
		if key != "managedFields" {
			short[key] = value
		}
	}
	all := make(revisions.Object, len(obj))
	for key, value := range obj {
		all[key] = value
	}
	all["metadata"] = short
	return all
}
