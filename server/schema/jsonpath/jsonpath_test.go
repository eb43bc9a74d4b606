package jsonpath_test

import (
	"encoding/json"
	"strings"
	"testing"

	utiljson "k8s.io/apimachinery/pkg/util/json"

	"github.com/rowlock/rowlock/server/schema/jsonpath"
)

const sample = `{
	"metadata": {"labels": {"dock.example.org/pier": "p7"}, "name": "n"},
	"spec": {"n": 3, "f": 1.5, "ok": true, "none": null,
		"crew": [{"name": "ann", "role": "captain", "age": 50}, {"name": "bob", "role": "cook", "age": 20}, {"name": "cid", "role": "cook (second)", "age": 30}],
		"map": {"b": 2, "a": 1}, "lists": [[1, 2], [3]]}
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
		`.spec.crew[?(@.absent=="x")].name`:           `error`,
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
		got := find(t, path)
		if got != want {
			t.Errorf("%s: %s, want %s", path, got, want)
		}
	}
}

func find(t *testing.T, path string) string {
	t.Helper()
	p, err := jsonpath.Parse(path)
	if err != nil {
		return "error"
	}
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(sample), &tree); err != nil {
		t.Fatal(err)
	}
	left := jsonpath.Budget(1_000)
	found, err := p.Find(tree, &left)
	if err != nil {
		return "error"
	}
	data, err := json.Marshal(found)
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

func FuzzParse(f *testing.F) {
	for _, seed := range []string{`.spec.crew[?(@.role=="captain")].name`, `..x[1:2,'a']`, `.a\.b[-1:]`, `.[?(@.a=='b)]`, `.a[0:1:2]`, `"\u00e9"`} {
		f.Add(seed)
	}
	var tree map[string]any
	if err := utiljson.Unmarshal([]byte(sample), &tree); err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, path string) {
		if p, err := jsonpath.Parse(path); err == nil {
			left := jsonpath.Budget(10_000)
			_, _ = p.Find(tree, &left)
		}
	})
}
