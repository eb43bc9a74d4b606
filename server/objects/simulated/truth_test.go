package simulated_test

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// entry is one revision, as the database committed it.
type entry struct {
	key      sqlstore.Key
	value    string
	deleted  bool
	prev     int64 // the revision that it replaced; 0: none
	created  int64
	revision int64
	expires  time.Time
	written  time.Time
}

// truth is the log of all commits, which no server can change. Revisions that were left out have entries without a key.
type truth struct {
	log    []entry // of revision 1 on
	keys   map[sqlstore.Key][]int64
	ends   []int64 // the newest revision after each commit
	breaks []failover
}

// failover is a change to a standby that lacks the last commits. What came after found is lost, and revisions go on behind
// goesOn.
type failover struct{ found, goesOn int64 }

// lost reports whether a revision is not in the history of another one.
func (t *truth) lost(revision, of int64) bool {
	for _, b := range t.breaks {
		if b.found < revision && revision <= b.goesOn && of >= b.goesOn {
			return true
		}
	}
	return false
}

func (t *truth) head() int64 { return int64(len(t.log)) }

func (t *truth) at(revision int64) *entry {
	if revision < 1 || revision > t.head() {
		return nil
	}
	return &t.log[revision-1]
}

// state returns the live entry of a key at a revision, or nil.
func (t *truth) state(key sqlstore.Key, revision int64) *entry {
	all := t.keys[key]
	i := sort.Search(len(all), func(i int) bool { return all[i] > revision })
	for i > 0 && t.lost(all[i-1], revision) {
		i--
	}
	if i == 0 || t.at(all[i-1]).deleted {
		return nil
	}
	return t.at(all[i-1])
}

// sometime reports whether what holds for the live entry of a key (nil: none) held at a revision from one to another.
func (t *truth) sometime(key sqlstore.Key, from, to int64, holds func(*entry) bool) bool {
	if holds(t.state(key, from)) {
		return true
	}
	for _, r := range t.keys[key] {
		if r > from && r <= to && holds(t.state(key, r)) {
			return true
		}
	}
	for _, b := range t.breaks {
		if b.goesOn > from && b.goesOn <= to && holds(t.state(key, b.goesOn)) {
			return true
		}
	}
	return false
}

// add appends the entries of a commit. It returns an error in them.
func (t *truth) add(m *commit) error {
	for i, txn := range m.batch {
		out := m.out[i]
		if out.Err != nil {
			continue
		}
		for j, op := range txn.Ops {
			e := entry{key: op.Key, value: string(op.Value), deleted: op.Verb == sqlstore.Delete, revision: out.Revisions[j], created: out.Revisions[j], expires: op.ExpiresAt, written: m.now}
			if e.revision != t.head()+1 {
				return fmt.Errorf("the database gave revision %d after %d", e.revision, t.head())
			}
			if old := t.state(op.Key, t.head()); old != nil {
				e.prev, e.created = old.revision, old.created
			}
			t.log = append(t.log, e)
			t.keys[op.Key] = append(t.keys[op.Key], e.revision)
		}
	}
	t.ends = append(t.ends, t.head())
	return nil
}

// wish is the selection of a client.
type wish struct {
	resource  string
	namespace string
	label     string // value of the label app
	node      string // value of spec.nodeName
	name      string // by field selector
}

func (w wish) String() string {
	return strings.TrimRight(fmt.Sprintf("%s ns=%s app=%s node=%s name=%s", w.resource, w.namespace, w.label, w.node, w.name), " ")
}

// object is a decoded value.
type object struct{ namespace, name, app, node string }

// value returns the object as it is stored, in the form in which the cache shows it.
func (o object) value(resource, id, filler string) string {
	kind, rest := "ConfigMap", ""
	if resource == "pods" {
		kind, rest = "Pod", `,"spec":{"containers":null},"status":{}`
		if o.node != "" {
			rest = fmt.Sprintf(`,"spec":{"containers":null,"nodeName":%q},"status":{}`, o.node)
		}
	}
	return fmt.Sprintf(`{"kind":%q,"apiVersion":"v1","metadata":{"name":%q,"namespace":%q,"uid":"u","creationTimestamp":null,"labels":{"app":%q},"annotations":{"filler":%q,"id":%q}}%s}`,
		kind, o.name, o.namespace, o.app, filler, id, rest)
}

func between(s, from, to string) string {
	_, s, _ = strings.Cut(s, from)
	s, _, _ = strings.Cut(s, to)
	return s
}

// wants reports whether the client selects the object of an entry.
func (w wish) wants(e *entry) bool {
	return e != nil && e.key.Resource == w.resource && (w.namespace == "" || w.namespace == e.key.Namespace) && (w.name == "" || w.name == e.key.Name) &&
		(w.label == "" || w.label == between(e.value, `"app":"`, `"`)) && (w.node == "" || w.node == between(e.value, `"nodeName":"`, `"`))
}

func (w wish) filter() *cache.Filter {
	var sel labels.Selector
	if w.label != "" {
		sel = labels.SelectorFromSet(labels.Set{"app": w.label})
	}
	var terms []cache.FieldTerm
	if w.node != "" {
		terms = append(terms, cache.FieldTerm{Index: 0, Value: w.node})
	}
	if w.name != "" {
		terms = append(terms, cache.FieldTerm{Index: cache.FieldName, Value: w.name})
	}
	return cache.NewFilter(sel, terms)
}

func (w wish) fields() fields.Selector {
	set := fields.Set{}
	if w.node != "" {
		set["spec.nodeName"] = w.node
	}
	if w.name != "" {
		set["metadata.name"] = w.name
	}
	return fields.SelectorFromSet(set)
}

// shown is an event as a client of a wish is to see it.
type shown struct {
	kind  cache.EventType
	value string
	entry *entry
}

// next returns the first event after a revision that a client of a wish is to see, nil if there is none up to another one.
func (t *truth) next(w wish, after, to int64) *shown {
	for r := after + 1; r <= to; r++ {
		e := t.at(r)
		if e.key.Resource == "" {
			continue
		}
		old := t.at(e.prev)
		was, is := w.wants(old), !e.deleted && w.wants(e)
		switch {
		case was && is:
			return &shown{cache.Modified, e.value, e}
		case is:
			return &shown{cache.Added, e.value, e}
		case was && e.deleted:
			return &shown{cache.Deleted, e.value, e}
		case was:
			return &shown{cache.Deleted, old.value, e}
		}
	}
	return nil
}

// list returns the objects of a list of a wish at a revision, in order.
func (t *truth) list(w wish, revision int64) (all []*entry) {
	for key := range t.keys {
		if e := t.state(key, revision); w.wants(e) {
			all = append(all, e)
		}
	}
	slices.SortFunc(all, func(a, b *entry) int { return a.key.Compare(b.key) })
	return all
}

// same reports whether an item is a value at a revision.
func same(it *cache.Item, revision int64, value string) bool {
	return it.Revision == revision && it.Err() == nil && strings.Replace(string(it.JSON()), fmt.Sprintf(`"resourceVersion":"%d",`, revision), "", 1) == value
}

// differs returns how a list differs from the state at a revision; "" if it does not.
func (t *truth) differs(w wish, items []*cache.Item, revision int64) string {
	want := t.list(w, revision)
	for i := range max(len(items), len(want)) {
		switch {
		case i >= len(items):
			return fmt.Sprintf("%s of revision %d is missing", want[i].key, want[i].revision)
		case i >= len(want):
			return fmt.Sprintf("%s/%s of revision %d was not there", items[i].Namespace, items[i].Name, items[i].Revision)
		case items[i].Namespace != want[i].key.Namespace || items[i].Name != want[i].key.Name || !same(items[i], want[i].revision, want[i].value):
			return fmt.Sprintf("%s/%s of revision %d is in the place of %s of revision %d", items[i].Namespace, items[i].Name, items[i].Revision, want[i].key, want[i].revision)
		}
	}
	return ""
}

// age is for how long a write with an expiry lives.
const age = 3 * time.Second
