package server_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestEveryRight makes every kind of request, for every resource, as users with one verb, or with the two
// that a request turns out to need, and compares the changes in the store and the content of the answer with
// their rights.
func TestEveryRight(t *testing.T) {
	c := newCluster(t)
	cells, done := 0, map[string]int{}
	for _, r := range c.stored() {
		m := &matrix{cluster: c, r: r, forms: formsOf(c, r), done: done}
		for _, u := range m.users() {
			for i := range m.forms {
				if f := &m.forms[i]; u.narrow == nil || m.holds(u.wide, f) {
					m.cell(u, f)
					cells++
				}
			}
		}
		if t.Failed() {
			t.Fatalf("%s; other resources are not tried", r.GroupResource())
		}
	}
	// A matrix without a single allowed request shows nothing.
	for _, name := range []string{"create", "create a name", "update", "update to create", "patch", "apply to create", "delete", "delete all", "status", "scale", "binding", "eviction", "bindings", "approval"} {
		if done[name] == 0 {
			t.Errorf("nobody got done: %s", name)
		}
	}
	t.Logf("%d cells, of which these changed something: %v", cells, done)
}

type matrix struct {
	*cluster
	r     *kinds.Resource
	forms []form
	done  map[string]int

	faults int
}

// user holds rights: wide on all there is, or narrow on some names or in a namespace.
type user struct {
	wide, narrow []right
}

func (u *user) has() []right {
	if u.narrow != nil {
		return u.narrow
	}
	return u.wide
}

func (m *matrix) users() (list []user) {
	add := func(rights ...right) {
		list = append(list, user{wide: rights})
		for _, name := range []string{named(m.r, "x"), named(m.r, "new"), "other"} {
			narrow := slices.Clone(rights)
			for i := range narrow {
				narrow[i].names = []string{name}
			}
			list = append(list, user{wide: rights, narrow: narrow})
		}
		for _, namespace := range []string{"a", "b"} {
			narrow := slices.Clone(rights)
			for i := range narrow {
				narrow[i].namespace = namespace
			}
			list = append(list, user{wide: rights, narrow: narrow})
		}
	}
	resources := []string{m.r.Plural}
	for i := range m.r.Subresources {
		resources = append(resources, m.r.Plural+"/"+m.r.Subresources[i].Name)
	}
	if m.r.Plural == "pods" {
		resources = append(resources, "bindings")
	}
	for _, resource := range resources {
		for _, verb := range []string{"get", "list", "watch", "create", "update", "patch", "delete", "deletecollection", "proxy"} {
			add(right{verb: verb, group: m.r.Group, resource: resource})
		}
		for _, pair := range [][2]string{{"patch", "create"}, {"update", "create"}, {"get", "watch"}} {
			add(right{verb: pair[0], group: m.r.Group, resource: resource}, right{verb: pair[1], group: m.r.Group, resource: resource})
		}
	}
	if m.r.Plural == "certificatesigningrequests" {
		for _, verb := range []string{"update", "patch"} {
			list = append(list, user{wide: []right{
				{verb: verb, group: m.r.Group, resource: m.r.Plural + "/approval"}, {verb: "approve", group: m.r.Group, resource: "signers", names: []string{"x.example/y"}},
			}})
		}
	}
	return list
}

func (m *matrix) holds(rights []right, f *form) bool { return m.hold(rights, f, f.needs) }

func (m *matrix) hold(rights []right, f *form, needs []need) bool {
	namespace := namespaceOf(f.path)
	for _, n := range needs {
		if !slices.ContainsFunc(rights, func(r right) bool {
			return (r.namespace == "" || r.namespace == namespace) && r.allows(n.verb, m.r.Group, n.resource, n.name)
		}) {
			return false
		}
	}
	return true
}

// namespaceOf returns the namespace that a path is about: "" for all, and for cluster scope.
func namespaceOf(path string) string {
	_, rest, _ := strings.Cut(path, "/namespaces/")
	name, _, _ := strings.Cut(rest, "/")
	name, _, _ = strings.Cut(name, "?")
	return name
}

// cell is one request by one user.
func (m *matrix) cell(u user, f *form) {
	m.t.Helper()
	allowed := m.holds(u.has(), f)
	before := m.s.Cache.Revision()
	body := ""
	for _, n := range f.needs { // creating one takes time, and for a user without rights none is needed
		if m.hold(u.has(), f, []need{n}) {
			body = f.body()
			break
		}
	}
	ctx := context.Background()
	if f.stream && allowed {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, 100*time.Millisecond)
		defer cancel()
	}
	m.may(u.has()...)
	w := m.do(ctx, f.method, f.path, f.as, body, "Accept", f.accept)
	changes := m.changes(before)
	answer := w.Body.String()
	problem := func(format string, args ...any) {
		m.t.Helper()
		if m.faults++; m.faults > 5 {
			return
		}
		m.t.Errorf("%s (%s) %s as %q with %+v: %s\n%d %.400s", f.method, f.name, f.path, f.as, u.has(), fmt.Sprintf(format, args...), w.Code, answer)
	}
	var shown []string
	for _, found := range markers.FindAllStringSubmatch(answer, -1) {
		shown = append(shown, strings.TrimPrefix(found[1], m.r.Storage.Key+"/"))
	}
	shown = append(shown, m.withUIDs(answer)...)
	switch {
	case !allowed:
		if w.Code != 403 {
			problem("it is not refused")
		}
		if len(changes) > 0 {
			problem("it changed %v", describe(changes))
		}
		if len(shown) > 0 {
			problem("it shows %v", shown)
		}
	default:
		if full := m.hold(u.has(), f, f.further); w.Code == 403 && full || !full && len(changes) > 0 {
			problem("it is refused, or does more than it may")
		}
		if w.Code >= 500 && w.Code != 503 && len(f.does) > 0 {
			problem("it fails")
		}
		if f.must && len(changes) == 0 {
			problem("nothing became of it")
		}
		for _, at := range shown {
			if !slices.Contains(f.shows, at) {
				problem("it shows %s", at)
			}
		}
		for _, what := range describe(changes) {
			what = strings.Replace(what, " "+m.r.Storage.Key+":", " ", 1)
			if !slices.ContainsFunc(f.does, func(may string) bool {
				return may == what || strings.HasSuffix(may, "/") && strings.HasPrefix(what, may)
			}) {
				problem("it did %s", what)
			}
		}
		if len(changes) > 0 {
			m.done[f.name]++
		}
	}
	m.undo(changes)
}

// withUIDs returns the objects of the resource whose UID is in an answer.
func (m *matrix) withUIDs(answer string) (list []string) {
	for _, at := range []string{"a/x", "a/y", "b/x"} {
		namespace, short, _ := strings.Cut(at, "/")
		if !m.r.Namespaced {
			namespace = ""
		}
		item := m.s.Cache.Get(m.r.Storage.Key, namespace, named(m.r, short))
		if item != nil && strings.Contains(answer, item.Meta().UID) {
			list = append(list, namespace+"/"+item.Name)
		}
	}
	return list
}

// describe lists changes of objects; rows that belong to one (claims, the endpoints of a
// service) are omitted.
func describe(changes []sqlstore.Change) (list []string) {
	for i := range changes {
		ch := &changes[i]
		if strings.HasPrefix(ch.Key.Resource, "~") || ch.Key.Resource == "endpoints" && i > 0 && changes[i-1].Key.Resource == "services" {
			continue
		}
		verb := "update "
		switch {
		case ch.Deleted:
			verb = "delete "
		case ch.PrevRevision == 0:
			verb = "create "
		}
		list = append(list, verb+ch.Key.Resource+":"+ch.Key.Namespace+"/"+ch.Key.Name)
	}
	return list
}
