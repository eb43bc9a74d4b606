package yaml_test

import (
	"bytes"
	stdjson "encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/yaml"
)

// items are objects whose YAML is not obvious: long text that is folded by its column,
// blocks, words that look like others.
var items = []string{
	`{"a":"` + strings.Repeat("some words ", 20) + `","b":"x\ny\n","c":{"d":[1,-2,1.5,1e30,{"e":null}],"f":{}},"g":[]}`,
	`{"true":"yes","n":"010","time":"2020-01-01T00:00:00Z","k: v":"- x","é":"\u0000\u2028","big":9007199254740993}`,
	`{"text":"` + strings.Repeat("'quoted' text: ", 20) + `\n","last":"` + strings.Repeat("x", 200) + `"}`,
	`{}`,
}

// write makes a document item by item.
func write(t *testing.T, frame string, items ...string) []byte {
	t.Helper()
	list, err := yaml.Codec{}.NewList([]byte(frame), "items")
	if err != nil {
		t.Fatal(err)
	}
	out := list.Head
	for _, item := range items {
		if out, err = list.AppendItem(out, []byte(item)); err != nil {
			t.Fatal(err)
		}
	}
	return append(out, list.Tail...)
}

// TestList: a document that is written item by item equals the one that is made as a whole.
func TestList(t *testing.T) {
	frame := `{"kind":"X","apiVersion":"v1","metadata":{"resourceVersion":"5"},"items":[]}`
	out := write(t, frame, items...)
	want, err := sigsyaml.JSONToYAML([]byte(strings.Replace(frame, "[]", "["+strings.Join(items, ",")+"]", 1)))
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), string(out)); diff != "" {
		t.Error(diff)
	}
	for _, item := range items {
		want, err := sigsyaml.JSONToYAML([]byte(item))
		if err != nil {
			t.Fatal(err)
		}
		if got, err := (yaml.Codec{}).FromJSON(nil, []byte(item)); err != nil || !bytes.Equal(got, want) {
			t.Errorf("%q, not %q, %v", got, want, err)
		}
	}
}

// TestDeep: YAML does not grow with the square of an object's depth, and has the same content.
func TestDeep(t *testing.T) {
	const depth = 2000
	object := strings.Repeat(`{"a":`, depth) + `[1,"x"]` + strings.Repeat(`}`, depth)
	out := write(t, `{"items":[],"kind":"X"}`, object, object)
	if limit := 2*len(object)*(2*json.MaxIndent+2) + 100; len(out) > limit {
		t.Errorf("%d bytes, the limit is %d", len(out), limit)
	}
	back, err := yaml.ToJSON(out)
	if err != nil {
		t.Fatal(err)
	}
	var got, want any
	if err := stdjson.Unmarshal(back, &got); err != nil {
		t.Fatal(err)
	}
	if err := stdjson.Unmarshal([]byte(`{"items":[`+object+`,`+object+`],"kind":"X"}`), &want); err != nil {
		t.Fatal(err)
	}
	if !cmp.Equal(got, want) {
		t.Error("another document")
	}
}
