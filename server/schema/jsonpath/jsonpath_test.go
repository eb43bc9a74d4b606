package jsonpath_test

import (
	"encoding/json"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"
	clientjsonpath "k8s.io/client-go/util/jsonpath"

	"github.com/rowlock/rowlock/server/schema/jsonpath"
)

const sample = `{
	"metadata": {"labels": {"dock.example.org/pier": "p7"}, "name": "n"},
	"spec": {"n": 3, "f": 1.5, "ok": true, "none": null,
		"crew": [{"name": "ann", "role": "captain", "age": 50}, {"name": "bob", "role": "cook", "age": 20}, {"name": "cid", "role": "cook (second)", "age": 30}],
		"map": {"b": 2, "a": 1}, "lists": [[1, 2], [3]], "holes": [[1], [], [2]],
		"ports": [{"n": 1}, {"n": 2, "main": true, "tags": ["a"]}, {"n": 3, "tags": []}]}
}`

func TestFind(t *testing.T) {
	for path, want := range map[string]string{
		`.spec.n`:                `[3]`,
		`spec.n`:                 `error`,
		`$.spec.n`:               `[3]`,
		`.spec.none`:             `[null]`,
		`.spec.none.deeper`:      `null`,
		`.spec.absent.deeper[0]`: `null`,
		`.`:                      `null`,
		`.spec.n.x`:              `null`,
		`.metadata.labels.dock\.example\.org/pier`:    `["p7"]`,
		`.metadata.labels['dock\.example\.org/pier']`: `["p7"]`,
		`.metadata['name']`:                           `["n"]`,
		`.metadata['name','labels']`:                  `["n",{"dock.example.org/pier":"p7"}]`,
		`.spec.crew[0].name`:                          `["ann"]`,
		`.spec.crew[-1].name`:                         `["cid"]`,
		`.spec.crew[1:].name`:                         `["bob","cid"]`,
		`.spec.crew[:-1].name`:                        `["ann","bob"]`,
		`.spec.crew[0,2].name`:                        `["ann","cid"]`,
		`.spec.crew[*].age`:                           `[50,20,30]`,
		`.spec.crew[3].name`:                          `error`,
		`.spec.crew[-9].name`:                         `error`,
		`.spec.crew[2:1]`:                             `error`,
		`.spec.crew[1:1]`:                             `null`,
		`.spec.n[0]`:                                  `error`,
		`.spec.map.*`:                                 `[1,2]`,
		`.spec.map[*]`:                                `error`,
		`.spec.crew[?(@.role=="captain")].name`:       `["ann"]`,
		`.spec.crew[?(@.role=='cook (second)')].name`: `["cid"]`,
		`.spec.crew[?(@.age>=30)].name`:               `["ann","cid"]`,
		`.spec.crew[?(@.age<30)].name`:                `["bob"]`,
		`.spec.crew[?(@.age>1.5)].name`:               `error`,
		`.spec.crew[?(@.name)].age`:                   `[50,20,30]`,
		`.spec.crew[?(@.absent=="x")].name`:           `null`,
		`.spec.crew[?("x"==@.absent)].name`:           `null`,
		`.spec.crew[?(@.role==captain)].name`:         `error`,
		`.spec.ports[?(@.main==true)].n`:              `[2]`,
		`.spec.ports[?(@.tags)].n`:                    `[2,3]`,
		`.spec.ports[?(@.tags[0])].n`:                 `[2,3]`,
		`.spec.ports[?(@.tags[0]=="a")].n`:            `error`,
		`.spec.crew[?(@.*=="cook")].name`:             `error`,
		`.spec.holes[*][*]`:                           `[1]`,
		`.spec.crew[::2].name`:                        `["ann","cid"]`,
		`.spec.crew[0:3:0].name`:                      `error`,
		`.spec.crew[?(@.name=="x)].name`:              `error`,
		`.spec[?(@.name=="x")]`:                       `error`,
		`.spec.lists[*][0]`:                           `[1,3]`,
		`..role`:                                      `["captain","cook","cook (second)"]`,
		`....role`:                                    `error`,
		`.spec.crew[`:                                 `error`,
		`.spec.crew[x]`:                               `error`,
		`.spec.{`:                                     `error`,
		`.spec.ok`:                                    `[true]`,
	} {
		if got := find(t, path); got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
		if got := findByLibrary(t, path); got != want && path != `.spec.map.*` { // whose values have no order there
			t.Errorf("%s: client-go finds %s, want %s", path, got, want)
		}
	}
}

// TestIdentifier: a word in the place of a value is an error of the evaluation, and not of the path.
func TestIdentifier(t *testing.T) {
	for _, path := range []string{`.spec.crew[?(@.role==captain)]`, `spec.n`} {
		if _, err := jsonpath.Parse(path); err != nil {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func find(t *testing.T, path string) string {
	t.Helper()
	p, err := jsonpath.Parse(path)
	if err != nil {
		return "error"
	}
	left := jsonpath.Budget(1_000)
	found, err := p.Find(sampleTree(t), &left)
	if err != nil {
		return "error"
	}
	return text(t, found)
}

// findByLibrary evaluates a path as the columns of a stock server do.
func findByLibrary(t *testing.T, path string) string {
	t.Helper()
	p := clientjsonpath.New("test").AllowMissingKeys(true)
	if p.Parse("{"+path+"}") != nil {
		return "error"
	}
	found, err := p.FindResults(sampleTree(t))
	if err != nil {
		return "error"
	}
	var values []any
	if len(found) > 0 {
		for _, v := range found[0] {
			values = append(values, v.Interface())
		}
	}
	return text(t, values)
}

func sampleTree(t *testing.T) (tree map[string]any) {
	t.Helper()
	if err := utiljson.Unmarshal([]byte(sample), &tree); err != nil {
		t.Fatal(err)
	}
	return tree
}

func text(t *testing.T, values []any) string {
	t.Helper()
	data, err := json.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestBudget: the number of values that a path visits is bounded.
func TestBudget(t *testing.T) {
	var tree any = "end"
	for range 50 {
		tree = map[string]any{"a": []any{tree}}
	}
	for _, path := range []string{"..[*]..[*]..[*]..a", ".." + strings.Repeat(".a..", 3), "[" + strings.Repeat("'a',", 1_000) + "'a']", `..a[?(@..a)]`} {
		p, err := jsonpath.Parse(path)
		if err != nil {
			t.Fatalf("%.40s: %v", path, err)
		}
		left := jsonpath.Budget(1_000)
		if found, err := p.Find(tree, &left); err == nil {
			t.Errorf("%.40s leads to %d values", path, len(found))
		}
	}
	p, err := jsonpath.Parse("..a[0]")
	if err != nil {
		t.Fatal(err)
	}
	left := jsonpath.Budget(1_000)
	if found, err := p.Find(tree, &left); len(found) != 50 || err != nil || left < 500 {
		t.Errorf("%d values, %v, %d left", len(found), err, left)
	}
}

// FuzzParse compares what paths lead to with the library. It leaves out what the library alone supports (braces, loops,
// the bytes of strings), and what has no order there.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		`.spec.crew[?(@.role=="captain")].name`, `..x[1:2,'a']`, `.a\.b[-1:]`, `.[?(@.a=='b)]`, `.a[0:1:2]`, `"\u00e9"`, `.spec.ports[?(@.main)].tags[0]`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, path string) {
		ours := find(t, path)
		if strings.ContainsAny(path, "{}*") || strings.Contains(path, "..") || strings.Contains(path, "range") || strings.Contains(path, "end") {
			return
		}
		if theirs := findByLibrary(t, path); ours != theirs {
			t.Errorf("%q: %s, and %s by client-go", path, ours, theirs)
		}
	})
}
