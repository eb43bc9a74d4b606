package rowlocktest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/sqlstore"
)

// Version is a state of an object between two writes.
type Version struct {
	Revision int64 // its resourceVersion
	Deleted  bool  // the write took it away; Object is how it was last
	At       time.Time
	Object   *unstructured.Unstructured // in the version of its API that is stored
	// Changed are the changes of the write, as in a Request.
	Changed []string
}

// History is all that an object was, the oldest version first. Objects that had the same
// name one after another are in it with a deletion in between.
type History []Version

// History reads the versions of an object from the store: every write, of every client, as far back as
// Retention. With an empty name it contains all objects of the namespace.
func (s *Server) History(gvr schema.GroupVersionResource, namespace, name string) History {
	s.t.Helper()
	h, _, err := s.history(s.key(gvr, namespace, name), 0)
	if err != nil {
		s.t.Fatalf("rowlocktest: the history of %s %s/%s: %v", gvr.Resource, namespace, name, err)
	}
	return h
}

// key returns where an object is stored.
func (s *Server) key(gvr schema.GroupVersionResource, namespace, name string) sqlstore.Key {
	s.t.Helper()
	s.plane.Server.Custom.Follow()
	res := s.plane.Server.Config().Catalogue.Lookup(gvr.Group, gvr.Version, gvr.Resource)
	if res == nil || res.Storage == nil {
		s.t.Fatalf("rowlocktest: nothing is stored of %s", gvr)
	}
	return sqlstore.Key{Resource: res.Storage.Key, Namespace: namespace, Name: name}
}

// history reads the states of a key after a revision, and returns the last revision read.
func (s *Server) history(key sqlstore.Key, after int64) (h History, upTo int64, err error) {
	err = s.changes(max(after, s.plane.Store.Floor()), func(c *sqlstore.Change) error {
		upTo = c.Revision
		if c.Key.Resource != key.Resource || c.Key.Namespace != key.Namespace || key.Name != "" && c.Key.Name != key.Name {
			return nil
		}
		obj := &unstructured.Unstructured{}
		if err := json.Unmarshal(c.Value, &obj.Object); err != nil {
			return fmt.Errorf("revision %d: %w", c.Revision, err)
		}
		obj.SetResourceVersion(strconv.FormatInt(c.Revision, 10))
		h = append(h, Version{Revision: c.Revision, Deleted: c.Deleted, At: c.WrittenAt, Object: obj, Changed: differences(c)})
		return nil
	})
	return h, max(upTo, after), err
}

// changes reads the log after a revision.
func (s *Server) changes(after int64, each func(*sqlstore.Change) error) error {
	const page = 500
	for {
		list, err := s.plane.Store.Changes(s.t.Context(), after, page, true)
		if err != nil || len(list) == 0 {
			return err
		}
		for i := range list {
			if err := each(&list[i]); err != nil {
				return err
			}
			after = list[i].Revision
		}
	}
}

// Transitions returns the values that a field went through, each once in a row, as text; "" is
// none. A path names fields, and elements of lists by their field type, name or key, or by
// their number:
//
//	h.Transitions("status", "conditions", "Ready", "status") // "", "False", "True"
func (h History) Transitions(path ...string) (values []string) {
	for _, v := range h {
		text := ""
		if !v.Deleted {
			text = field(v.Object.Object, path)
		}
		if len(values) == 0 || values[len(values)-1] != text {
			values = append(values, text)
		}
	}
	return values
}

// String returns the history as a table, a line for each write.
func (h History) String() string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "REVISION\tOBJECT\tCHANGED")
	for _, v := range h {
		object := strings.TrimPrefix(v.Object.GetNamespace()+"/"+v.Object.GetName(), "/")
		fmt.Fprintf(w, "%d\t%s\t%s\n", v.Revision, object, cut(strings.Join(v.Changed, ", "), maxShown))
	}
	_ = w.Flush() // a strings.Builder takes everything
	return b.String()
}

// Since returns the versions after a revision.
func (h History) Since(revision int64) History {
	for i, v := range h {
		if v.Revision > revision {
			return h[i:]
		}
	}
	return nil
}

// field returns the text of the value at a path; "" if there is none.
func field(v any, path []string) string {
	for _, step := range path {
		switch in := v.(type) {
		case map[string]any:
			v = in[step]
		case []any:
			v = element(in, step)
		default:
			return ""
		}
	}
	return text(v)
}

func element(list []any, name string) any {
	for _, one := range list {
		if label(one) == name {
			return one
		}
	}
	if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(list) {
		return list[i]
	}
	return nil
}

// label identifies an element of a list.
func label(v any) string {
	m, _ := v.(map[string]any)
	for _, key := range []string{"type", "name", "key", "uid"} {
		if s, ok := m[key].(string); ok {
			return s
		}
	}
	return ""
}

// text returns how a value is shown.
func text(v any) string {
	switch v := v.(type) {
	case nil:
		return ""
	case string:
		return v
	}
	data, err := json.Marshal(v)
	if err != nil {
		return fmt.Sprint(v)
	}
	return string(data)
}

// Revision returns the newest revision.
func (s *Server) Revision() int64 { return s.plane.Store.Applied() }
