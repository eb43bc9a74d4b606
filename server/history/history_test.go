package history_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	smd "sigs.k8s.io/structured-merge-diff/v6/schema"
	"sigs.k8s.io/structured-merge-diff/v6/typed"

	"github.com/rowlock/rowlock/server/history"
	"github.com/rowlock/rowlock/server/schema/merging"
)

func TestParseName(t *testing.T) {
	noon := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	name := func(group, resource, name string, revision int64, at time.Time) history.Name {
		return history.Name{Resource: schema.GroupResource{Group: group, Resource: resource}, Name: name, State: history.State{Revision: revision, Time: at}}
	}
	for text, want := range map[string]history.Name{
		"pods:web:7":                                 name("", "pods", "web", 7, time.Time{}),
		"deployments.apps:web:1234":                  name("apps", "deployments", "web", 1234, time.Time{}),
		"things.a.example:x:at-2026-01-31T12:00:00Z": name("a.example", "things", "x", 0, noon),
		"roles.g:a:b:9":                              name("g", "roles", "a:b", 9, time.Time{}),
		"roles.g:a:at-home:9":                        name("g", "roles", "a:at-home", 9, time.Time{}),
		"roles.g:a:at-2026-01-31T12:00:00Z:9":        name("g", "roles", "a:at-2026-01-31T12:00:00Z", 9, time.Time{}),
		"roles.g:at-x:at-2026-01-31T12:00:00Z":       name("g", "roles", "at-x", 0, noon),
	} {
		got, err := history.ParseName(text)
		if err != nil || got != want || got.String() != text {
			t.Errorf("%s: %+v (%s) %v, want %+v", text, got, got, err, want)
		}
	}
	for _, text := range []string{
		"", ":", "::", "pods", "pods:web", "pods:web:", "pods::7", "pods:web:07", "pods:web:x", "pods:web:0", "pods:web:-7", "pods:web:at-", "pods:web:at-noon",
		":web:7", "*:web:7", "pods/log:web:7", "Pods:web:7", "pods.:web:7", "pods.*:web:7", "~x:web:7", "pods:.:7", "pods:..:7", "pods:a%b:7", "pods:a/b:7",
	} {
		if got, err := history.ParseName(text); !errors.Is(err, history.ErrName) {
			t.Errorf("%q: %+v %v", text, got, err)
		}
	}
}

// FuzzParseName: a name that is parsed and printed parses to the same.
func FuzzParseName(f *testing.F) {
	f.Add("deployments.apps:a:at-b:at-2026-01-31T12:00:00+02:00")
	f.Add("pods:a:1")
	f.Fuzz(func(t *testing.T, text string) {
		n, err := history.ParseName(text)
		if err != nil {
			return
		}
		again, err := history.ParseName(n.String())
		if err != nil || again.Resource != n.Resource || again.Name != n.Name || again.Revision != n.Revision || !again.Time.Equal(n.Time) {
			t.Errorf("%q: %+v, then %+v %v", text, n, again, err)
		}
	})
}

func tree(t testing.TB, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := utiljson.Unmarshal([]byte(text), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// lists knows of one list whose items have keys, and of one that is a set.
func lists(t testing.TB) history.Schema {
	t.Helper()
	text := smd.Scalar("string")
	item := smd.Atom{Map: &smd.Map{ElementType: smd.TypeRef{Inlined: smd.Atom{Scalar: &text}}}}
	types := typed.ParseableType{Schema: &smd.Schema{}, TypeRef: smd.TypeRef{Inlined: smd.Atom{Map: &smd.Map{Fields: []smd.StructField{
		{Name: "keyed", Type: smd.TypeRef{Inlined: smd.Atom{List: &smd.List{ElementType: smd.TypeRef{Inlined: item}, ElementRelationship: smd.Associative, Keys: []string{"name"}}}}},
		{Name: "set", Type: smd.TypeRef{Inlined: smd.Atom{List: &smd.List{ElementType: smd.TypeRef{Inlined: smd.Atom{Scalar: &text}}, ElementRelationship: smd.Associative}}}},
	}}}}}
	v, err := types.FromUnstructured(map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	return merging.SchemaOf(v)
}

func TestCompare(t *testing.T) {
	known := lists(t)
	for _, c := range []struct{ name, from, to, want string }{
		{"the same", `{"a":{"b":[1,"x",null,true,1.5]}}`, `{"a":{"b":[1,"x",null,true,1.5]}}`, ""},
		{"noise", `{"metadata":{"resourceVersion":"1","generation":1,"managedFields":[]}}`, `{"metadata":{"resourceVersion":"2","generation":2,"name":"x"}}`, "add metadata.name"},
		{"noise elsewhere", `{"spec":{"generation":1}}`, `{"spec":{"generation":2}}`, "replace spec.generation"},
		{"values", `{"a":1,"b":"x","c":1}`, `{"a":2,"b":"y","d":1}`, "replace a, replace b, remove c, add d"},
		{"kinds", `{"a":1,"b":{},"c":[]}`, `{"a":{},"b":[],"c":null}`, "replace a, replace b, replace c"},
		{"names", `{"metadata":{"labels":{"a.b/c":"1","d":"1"}}}`, `{"metadata":{"labels":{"a.b/c":"2","d":"2"}}}`, `replace metadata.labels["a.b/c"], replace metadata.labels.d`},
		{"places", `{"l":[1,2,3]}`, `{"l":[1,3]}`, "replace l[1], remove l[2]"},
		{"keys", `{"keyed":[{"name":"a","v":"1"},{"name":"b","v":"1"}]}`, `{"keyed":[{"name":"c"},{"name":"b","v":"2"}]}`, `remove keyed[name="a"], replace keyed[name="b"].v, add keyed[name="c"]`},
		{"keys in another order", `{"keyed":[{"name":"a"},{"name":"b"}]}`, `{"keyed":[{"name":"b"},{"name":"a"}]}`, ""},
		{"a key twice", `{"keyed":[{"name":"a"},{"name":"a"}]}`, `{"keyed":[{"name":"a"}]}`, "remove keyed[1]"},
		{"no key", `{"keyed":[{"v":"1"}]}`, `{"keyed":[{"v":"2"}]}`, "replace keyed[0].v"},
		{"a set", `{"set":["a","b"]}`, `{"set":["b","c"]}`, `remove set[="a"], add set[="c"]`},
	} {
		fields, more, err := history.Compare(t.Context(), known, tree(t, c.from), tree(t, c.to), 100)
		var got []string
		for i := range fields {
			got = append(got, fields[i].Op+" "+fields[i].Text())
		}
		if err != nil || more || strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %s %v %v, want %s", c.name, strings.Join(got, ", "), more, err, c.want)
		}
	}
}

// TestCompareEnds: it finds no more than requested, and stops with the request.
func TestCompareEnds(t *testing.T) {
	from, to := map[string]any{}, map[string]any{}
	for i := range 20000 {
		from[fmt.Sprint(i)], to[fmt.Sprint(i)] = int64(i), int64(i+1)
	}
	fields, more, err := history.Compare(t.Context(), history.Schema{}, from, to, 5)
	if err != nil || !more || len(fields) != 5 {
		t.Errorf("%d fields, %v, %v", len(fields), more, err)
	}
	if _, more, err := history.Compare(t.Context(), history.Schema{}, from, to, 20000); err != nil || more {
		t.Errorf("exactly as many as there are: %v, %v", more, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := history.Compare(ctx, history.Schema{}, from, to, 20000); !errors.Is(err, context.Canceled) {
		t.Errorf("after the end: %v", err)
	}
	long := map[string]any{strings.Repeat("x", 5000): int64(1)}
	fields, _, _ = history.Compare(t.Context(), history.Schema{}, nil, long, 1)
	if text := fields[0].Text(); len(text) > 600 {
		t.Errorf("a path of %d characters", len(text))
	}
}

// entry returns an entry of managedFields, as JSON.
func entry(manager, sub, at, fields string) string {
	return fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":"v1","subresource":%q,"time":%q,"fieldsType":"FieldsV1","fieldsV1":%s}`, manager, sub, at, fields)
}

func managed(t testing.TB, data string, entries ...string) map[string]any {
	return tree(t, `{"metadata":{"managedFields":[`+strings.Join(entries, ",")+`]},"data":`+data+`}`)
}

func TestWrote(t *testing.T) {
	const early, late = "2026-01-31T12:00:00Z", "2026-01-31T12:00:05Z"
	a, ab := `{"f:data":{"f:a":{}}}`, `{"f:data":{"f:a":{},"f:b":{}}}`
	for _, c := range []struct {
		name          string
		before, after map[string]any
		want          string
	}{
		{"new", managed(t, `{}`), managed(t, `{"a":1}`, entry("x", "", early, a)), "x"},
		{"renewed", managed(t, `{"a":1}`, entry("x", "", early, a), entry("y", "", early, ab)), managed(t, `{"a":2}`, entry("x", "", late, a), entry("y", "", early, ab)), "x"},
		{"another subresource", managed(t, `{}`, entry("x", "", early, a)), managed(t, `{}`, entry("x", "", early, a), entry("x", "status", late, a)), "x/status"},
		{"took from another", managed(t, `{"a":1}`, entry("x", "", early, a)), managed(t, `{"a":2}`, entry("x", "", early, `{}`), entry("y", "", late, a)), "y"},
		{"in the same second", managed(t, `{"a":1}`, entry("x", "", late, a), entry("y", "", early, `{}`)), managed(t, `{"a":2}`, entry("x", "", late, a), entry("y", "", early, `{}`)), "x"},
		{"in the same second, another field", managed(t, `{"a":1}`, entry("x", "", late, a)), managed(t, `{"a":1,"b":1}`, entry("x", "", late, ab)), "x"},
		{"nothing", managed(t, `{"a":1}`, entry("x", "", early, a)), managed(t, `{"a":1}`, entry("x", "", early, a)), ""},
		{"nobody", managed(t, `{"a":1}`), managed(t, `{"a":2}`), ""},
	} {
		fields, _, err := history.Compare(t.Context(), history.Schema{}, c.before, c.after, 10)
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, m := range history.Wrote(history.Entries(c.before), history.Entries(c.after), fields) {
			name := m.Manager
			if m.Subresource != "" {
				name += "/" + m.Subresource
			}
			got = append(got, name)
		}
		if strings.Join(got, ",") != c.want {
			t.Errorf("%s: %q, want %q", c.name, got, c.want)
		}
	}
}

func TestOwners(t *testing.T) {
	const early, late = "2026-01-31T12:00:00Z", "2026-01-31T12:00:05Z"
	owned := managed(t, `{}`, entry("whole", "", late, `{"f:data":{}}`), entry("one", "", early, `{"f:data":{"f:a":{}}}`), entry("deep", "", late, `{"f:spec":{"f:l":{"k:{\"name\":\"x\"}":{".":{},"f:v":{}}}}}`), `{"manager":"broken","fieldsV1":{"f:data":3}}`, `"none"`)
	o := history.NewOwners(history.Entries(owned))
	for _, c := range []struct{ from, to, want string }{
		{`{"data":{"a":1}}`, `{"data":{"a":2}}`, "one"},
		{`{"data":{"b":1}}`, `{"data":{"b":2}}`, "whole"},
		{`{}`, `{"spec":{}}`, "deep"},
		{`{}`, `{"status":{}}`, ""},
	} {
		fields, _, err := history.Compare(t.Context(), history.Schema{}, tree(t, c.from), tree(t, c.to), 1)
		if err != nil || len(fields) != 1 {
			t.Fatal(fields, err)
		}
		if got := o.Of(fields[0].Path); got != c.want {
			t.Errorf("%s: %q, want %q", fields[0].Text(), got, c.want)
		}
	}
}

// TestEntriesAreBounded: of entries without end the newest are looked at.
func TestEntriesAreBounded(t *testing.T) {
	var many []string
	for i := range 500 {
		many = append(many, entry(fmt.Sprint(i), "", time.Unix(int64(i), 0).UTC().Format(time.RFC3339), `{}`))
	}
	got := history.Entries(managed(t, `{}`, many...))
	if len(got) != 100 || got[0].Manager != "499" {
		t.Errorf("%d entries, the first of %s", len(got), got[0].Manager)
	}
}

// TestCopies: copies are equal, and share no list.
func TestCopies(t *testing.T) {
	l := &history.RevisionList{Items: []history.Revision{{Revision: "1", ChangedFields: []string{"a"}, Managers: []history.Manager{{Manager: "m"}}}}}
	l.Continue = "x"
	c := l.DeepCopyObject().(*history.RevisionList)
	one, _ := json.Marshal(l)
	two, _ := json.Marshal(c)
	c.Items[0].ChangedFields[0], c.Items[0].Managers[0].Manager = "b", "n"
	if string(one) != string(two) || l.Items[0].ChangedFields[0] != "a" || l.Items[0].Managers[0].Manager != "m" {
		t.Errorf("%s, then %s; the first is now %+v", one, two, l)
	}
}

// TestDeepPaths: a thousand fields far down in an object do not each keep the whole way there.
func TestDeepPaths(t *testing.T) {
	nest := func(value any) map[string]any {
		leaf := map[string]any{}
		for i := range 1000 {
			leaf[fmt.Sprint(i)] = value
		}
		for range 5000 {
			leaf = map[string]any{"a": leaf}
		}
		return leaf
	}
	fields, more, err := history.Compare(t.Context(), history.Schema{}, nest("x"), nest("y"), 1000)
	if err != nil || more || len(fields) != 1000 {
		t.Fatalf("%d fields, %v, %v", len(fields), more, err)
	}
	for i := range fields {
		if n := len(fields[i].Path); n > 512 {
			t.Fatalf("a path of %d elements", n)
		}
	}
}

// TestLongNames: a thousand fields below one long name, of a field or of an item, do not each take
// the time to word all of it.
func TestLongNames(t *testing.T) {
	long := strings.Repeat("x/", 1<<19)
	for name, hold := range map[string]func(v any) map[string]any{
		"a field": func(v any) map[string]any { return map[string]any{long: v} },
		"an item": func(v any) map[string]any {
			return map[string]any{"keyed": []any{map[string]any{"name": long, "v": v}}}
		},
	} {
		fill := func(value string) map[string]any {
			fields := map[string]any{}
			for i := range 1000 {
				fields[fmt.Sprint(i)] = value
			}
			return hold(fields)
		}
		fields, _, err := history.Compare(t.Context(), lists(t), fill("x"), fill("y"), 1000)
		if err != nil || len(fields) != 1000 {
			t.Fatalf("%s: %d fields, %v", name, len(fields), err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for i := range fields {
			if n := len(fields[i].Text()); n > 600 {
				t.Fatalf("%s: a path of %d characters", name, n)
			}
		}
		runtime.ReadMemStats(&after)
		if took := after.TotalAlloc - before.TotalAlloc; took > 64<<20 {
			t.Errorf("%s: the paths took %d MiB to word", name, took>>20)
		}
	}
}

// TestOwnersAreBounded: the search for owners of deep fields is bounded.
func TestOwnersAreBounded(t *testing.T) {
	deep := `{".":{}}`
	path := map[string]any{"leaf": int64(1)}
	for range 400 {
		deep, path = `{"f:a":`+deep+`}`, map[string]any{"a": path}
	}
	var many []string
	for i := range 100 {
		many = append(many, entry(fmt.Sprint(i), "", time.Unix(int64(i), 0).UTC().Format(time.RFC3339), deep))
	}
	o := history.NewOwners(history.Entries(managed(t, `{}`, many...)))
	fields, _, err := history.Compare(t.Context(), history.Schema{}, map[string]any{}, path, 1)
	if err != nil || len(fields) != 1 {
		t.Fatal(fields, err)
	}
	other := fields[0].Path.Copy()
	for range 398 {
		other = append(other, other[0])
	}
	for i := range 1000 {
		if owner := o.Of(other); owner == "" {
			if i < 5 {
				t.Errorf("the owner of field %d is not looked for", i)
			}
			return
		}
	}
	t.Error("a thousand deep fields were looked up among a hundred managers")
}
