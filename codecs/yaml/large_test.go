package yaml_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	sigsyaml "sigs.k8s.io/yaml"

	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/yaml"
)

// TestLargeDocuments: a document that is written in parts means the same as its JSON, alone and as an item of
// a list.
func TestLargeDocuments(t *testing.T) {
	nodes := &strings.Builder{}
	for i := range 200 {
		fmt.Fprintf(nodes, `"n-%d":{"name":"step(%d)","text":"first\n\n   second \\ line %s","list":[1,2.5,null,[],{},[["x"]]],"empty":"","true":"yes"},`, i, i, strings.Repeat("word ", 40))
	}
	big := fmt.Sprintf(`"b":%q,`, strings.Repeat("a plain text of one line ", 30_000)) // in both lists and maps
	long := strings.Repeat("k", 200)
	data := fmt.Sprintf(`{"apiVersion":"v1","kind":"X","metadata":{"name":"x"},"data":%q,"status":{"nodes":{%s"z":1},"lists":[[%s],{"%s":{%s"y":[]}}]}}`,
		strings.Repeat("long text\n\tof lines: ", 20_000), nodes.String()+big, strings.Repeat(big[4:], 2)+`"last"`, long, nodes.String()+big)
	codec := yaml.Codec{JSON: jsoncodec.New(jsoncodec.Settings{})}
	for name, document := range map[string]func() ([]byte, error){
		"object": func() ([]byte, error) { return codec.FromJSON(nil, []byte(data)) },
		"item": func() ([]byte, error) {
			list, err := codec.NewList([]byte(`{"apiVersion":"v1","items":[],"kind":"List"}`), "items")
			if err != nil {
				return nil, err
			}
			out, err := list.AppendItem(list.Head, []byte(data))
			return append(out, list.Tail...), err
		},
	} {
		text, err := document()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if text[0] == '{' {
			t.Fatalf("%s: it is JSON", name)
		}
		got, err := sigsyaml.YAMLToJSON(text)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		want := data
		if name == "item" {
			want = `{"apiVersion":"v1","items":[` + data + `],"kind":"List"}`
		}
		wanted, err := sigsyaml.YAMLToJSON([]byte(want))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != string(wanted) {
			t.Errorf("%s: it reads as something else: %s", name, cmp.Diff(string(wanted[:200]), string(got[:200])))
		}
	}
}
