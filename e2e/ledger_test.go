package e2e

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"unique"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

// change is the state of an object at a version.
type change struct {
	version uint64
	kind    watch.EventType
	name    string
	on      bool // in the selection
	ends    bool // a bookmark behind initial events
	content
}

// content is an object as JSON, whatever its wire form; whole is zero if only the metadata was received. It
// is stored once for all observers.
type content struct{ metadata, whole unique.Handle[string] }

func (a content) partial() bool { return a.whole == unique.Handle[string]{} }

func (a content) equal(b content) bool {
	return a.metadata == b.metadata && (a.whole == b.whole || a.partial() || b.partial())
}

func (a content) String() string {
	if a.partial() {
		return a.metadata.Value()
	}
	return a.whole.Value()
}

func (c *change) String() string { return fmt.Sprintf("%s %s at %d", c.kind, c.name, c.version) }

func newChange(kind watch.EventType, obj any) (*change, error) {
	acc, err := meta.Accessor(obj)
	if err != nil {
		return nil, err
	}
	c := &change{kind: kind, name: acc.GetName(), on: acc.GetLabels()["on"] == "yes", ends: acc.GetAnnotations()[metav1.InitialEventsAnnotationKey] == "true"}
	if c.version, err = strconv.ParseUint(acc.GetResourceVersion(), 10, 64); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	text, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	var tree map[string]any
	if err := json.Unmarshal(text, &tree); err != nil {
		return nil, err
	}
	metadata, err := json.Marshal(tree["metadata"])
	if err != nil {
		return nil, err
	}
	c.metadata = unique.Make(string(metadata))
	if _, partial := obj.(*metav1.PartialObjectMetadata); !partial {
		delete(tree, "kind") // items of typed lists have none
		delete(tree, "apiVersion")
		text, err = json.Marshal(tree)
		c.whole = unique.Make(string(text))
	}
	return c, err
}

// ledger is all that happened from one version to another without a gap, as the mirrors
// without a selector have it together.
type ledger struct {
	from, to uint64
	changes  []*change
	history  map[string][]*change // by name, with the state at the beginning
}

// newLedgers puts the spans of mirrors together. They must not contradict one another,
// and what happens to an object must follow from what happened before.
func newLedgers(mirrors []*mirror) (ledgers []*ledger, errs []error) {
	var spans []*span
	all := map[uint64]*change{}
	for _, m := range mirrors {
		for _, s := range m.spans {
			spans = append(spans, s)
			for _, c := range s.changes {
				if known := all[c.version]; known == nil || known.partial() {
					all[c.version] = c
				}
			}
		}
	}
	slices.SortFunc(spans, func(a, b *span) int { return cmp.Compare(a.from, b.from) })
	for _, s := range spans {
		if n := len(ledgers); n > 0 && s.from <= ledgers[n-1].to {
			ledgers[n-1].to = max(ledgers[n-1].to, s.to)
			continue
		}
		l := &ledger{from: s.from, to: s.to, history: map[string][]*change{}}
		for name, c := range s.state {
			l.history[name] = []*change{c}
		}
		ledgers = append(ledgers, l)
	}
	for _, v := range slices.Sorted(maps.Keys(all)) {
		for _, l := range ledgers {
			if v <= l.from || v > l.to {
				continue
			}
			c := all[v]
			if there := l.at(c.name, v) != nil; there == (c.kind == watch.Added) {
				errs = append(errs, fmt.Errorf("%s, but there before: %v", c, there))
			}
			l.changes = append(l.changes, c)
			l.history[c.name] = append(l.history[c.name], c)
		}
	}
	return ledgers, errs
}

// at returns the object as it is at a version, nil where it is not there.
func (l *ledger) at(name string, version uint64) *change {
	h := l.history[name]
	i, found := slices.BinarySearchFunc(h, version, func(c *change, v uint64) int { return cmp.Compare(c.version, v) })
	if !found {
		i-- // the one before
	}
	if i < 0 || h[i].kind == watch.Deleted {
		return nil
	}
	return h[i]
}

// expected returns the event that a selection sees of a change; "": none.
func (l *ledger) expected(c *change, selector string) watch.EventType {
	before := l.at(c.name, c.version-1)
	was, is := before != nil && selects(selector, before), c.kind != watch.Deleted && selects(selector, c)
	switch {
	case was && is:
		return watch.Modified
	case was:
		return watch.Deleted
	case is:
		return watch.Added
	}
	return ""
}

func selects(selector string, c *change) bool {
	return selector == "" || selector == "on=yes" && c.on
}

// check compares a mirror with the ledger: its lists are states of the ledger, and it saw every change in its
// spans, correctly, and nothing else. It counts the comparisons.
func (l *ledger) check(m *mirror) (compared int, err error) {
	var errs []error
	for _, s := range m.spans {
		if s.from >= l.from && s.from <= l.to {
			errs = append(errs, l.checkState(m, s))
		}
		seen := map[uint64]*change{}
		for _, c := range s.changes {
			if c.version > l.from && c.version <= l.to {
				seen[c.version] = c
			}
		}
		for _, c := range l.changes {
			if c.version <= s.from || c.version > s.to {
				continue
			}
			kind, got := l.expected(c, m.selector), seen[c.version]
			delete(seen, c.version)
			left := kind == watch.Deleted && c.kind != watch.Deleted // the last state that was selected, in a new version
			switch {
			case kind == "" && got == nil:
			case kind == "" || got == nil || got.kind != kind || got.name != c.name || !left && !got.equal(c.content):
				errs = append(errs, fmt.Errorf("%s: want %q, got %v", c, kind, got))
			default:
				compared++
			}
		}
		for _, c := range seen {
			errs = append(errs, fmt.Errorf("%s: nobody else saw it", c))
		}
	}
	return compared, joinFirst(errs)
}

func (l *ledger) checkState(m *mirror, s *span) error {
	for name := range l.history {
		want, got := l.at(name, s.from), s.state[name]
		if want != nil && !selects(m.selector, want) {
			want = nil
		}
		if (want == nil) != (got == nil) || want != nil && (want.version != got.version || !want.equal(got.content)) {
			return fmt.Errorf("a list at %d: want %v, got %v", s.from, want, got)
		}
	}
	for name, c := range s.state {
		if l.history[name] == nil {
			return fmt.Errorf("a list at %d has %v", s.from, c)
		}
	}
	return nil
}

// acknowledged holds what writers were answered against the ledger.
func (l *ledger) acknowledged(writes []*change) (compared int, err error) {
	var errs []error
	for _, w := range writes {
		if w.version <= l.from || w.version > l.to {
			continue
		}
		compared++
		i, found := slices.BinarySearchFunc(l.changes, w.version, func(c *change, v uint64) int { return cmp.Compare(c.version, v) })
		if !found || l.changes[i].name != w.name || !l.changes[i].equal(w.content) {
			errs = append(errs, fmt.Errorf("written, but not seen: %s", w))
		}
	}
	return compared, joinFirst(errs)
}

// joinFirst joins the first errors of many.
func joinFirst(errs []error) error {
	errs = slices.DeleteFunc(errs, func(err error) bool { return err == nil })
	if n := len(errs); n > 5 {
		errs = append(errs[:5], errors.New("and "+strconv.Itoa(n-5)+" more"))
	}
	if len(errs) == 0 {
		return nil
	}
	var texts []string
	for _, err := range errs {
		texts = append(texts, err.Error())
	}
	return errors.New(strings.Join(texts, "; "))
}

// TestLedger has one of several mirrors that agree return something else.
func TestLedger(t *testing.T) {
	t.Parallel()
	object := func(name, version, on string) *corev1.ConfigMap {
		return &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: name, ResourceVersion: version, Labels: map[string]string{"on": on}}}
	}
	story := func(selector string) *mirror {
		m := &mirror{Store: cache.NewStore(cache.MetaNamespaceKeyFunc), selector: selector}
		_ = m.Replace([]any{object("a", "5", "yes")}, "10")
		for _, err := range []error{m.Add(object("b", "11", "yes")), m.Update(object("a", "13", "yes")), m.Delete(object("b", "15", "yes"))} {
			if err != nil {
				t.Fatal(err)
			}
		}
		m.UpdateResourceVersion("20")
		return m
	}
	for name, tc := range map[string]struct {
		do   func(*mirror)
		want string
	}{
		"nothing":          {func(*mirror) {}, ""},
		"an event missed":  {func(m *mirror) { s := m.spans[0]; s.changes = append(s.changes[:1:1], s.changes[2:]...) }, `MODIFIED a at 13: want "MODIFIED", got <nil>`},
		"another kind":     {func(m *mirror) { c := *m.spans[0].changes[1]; c.kind = watch.Added; m.spans[0].changes[1] = &c }, `MODIFIED a at 13: want "MODIFIED", got ADDED a at 13`},
		"another content":  {func(m *mirror) { m.spans[0].changes[1].content = content{} }, `MODIFIED a at 13: want "MODIFIED", got MODIFIED a at 13`},
		"one too many":     {func(m *mirror) { _ = m.Add(object("c", "30", "yes")); m.spans[0].changes[3].version = 17 }, "ADDED c at 17: nobody else saw it"},
		"a list too small": {func(m *mirror) { delete(m.spans[0].state, "a") }, "a list at 10: want ADDED a at 5, got <nil>"},
		"a list too large": {func(m *mirror) { m.spans[0].state["b"] = &change{version: 7, name: "b", kind: watch.Added} }, "a list at 10: want <nil>, got ADDED b at 7"},
		"gone back":        {func(m *mirror) { _ = m.Update(object("a", "19", "yes")) }, "MODIFIED a at 19 came after 20"},
		"back to life":     {func(m *mirror) { _ = m.Update(object("b", "21", "yes")) }, "MODIFIED b at 21, but there before: false"},
		"an old list":      {func(m *mirror) { _ = m.Replace(nil, "19") }, "a list at 19 after 20"},
		"an old bookmark":  {func(m *mirror) { m.UpdateResourceVersion("19") }, `a bookmark at "19" after 20`},
	} {
		for _, selector := range []string{"", "on=yes"} {
			t.Run(name+" "+selector, func(t *testing.T) {
				m := story(selector)
				tc.do(m)
				ledgers, errs := newLedgers([]*mirror{story(""), story("")})
				if len(ledgers) != 1 || errs != nil {
					t.Fatal(ledgers, errs)
				}
				compared, err := ledgers[0].check(m)
				err = joinFirst([]error{err, m.failure()})
				if got := fmt.Sprint(err); tc.want == "" && err != nil || !strings.Contains(got, tc.want) || tc.want == "" && compared != 3 {
					t.Errorf("%d compared, %v, want %s", compared, err, tc.want)
				}
			})
		}
	}
	whole := []*mirror{story("")}
	ledgers, _ := newLedgers(whole)
	lost, _ := newChange("", object("a", "14", "yes"))
	if n, err := ledgers[0].acknowledged([]*change{whole[0].spans[0].changes[1], lost}); n != 2 || err == nil || err.Error() != "written, but not seen:  a at 14" {
		t.Error(n, err)
	}
}
