package json_test

import (
	stdjson "encoding/json"
	"reflect"
	"testing"

	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// FuzzPartial: the partial form of an object has its metadata, and nothing else of it, and is an object
// again.
func FuzzPartial(f *testing.F) {
	for _, s := range []string{
		`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"a","labels":{"x":"}"}},"spec":{"metadata":1}}`,
		`{"metadata":null}`, `{"spec":{"metadata":{"name":"b"}}}`, `{"kind":"x"}`, `{"kind":"","apiVersion":"","a":1}`, `{"apiVersion":"v1","kind":"x"}`,
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		var object map[string]stdjson.RawMessage
		if stdjson.Unmarshal(data, &object) != nil || object == nil || data[0] != '{' {
			return
		}
		var partial map[string]stdjson.RawMessage
		out := json.AppendPartial(nil, "v1", data)
		if err := stdjson.Unmarshal(out, &partial); err != nil || len(partial) != 3 {
			t.Fatalf("%q gives %q: %v", data, out, err)
		}
		var want, got any
		if m, ok := object["metadata"]; ok && stdjson.Unmarshal(m, &want) == nil && stdjson.Unmarshal(partial["metadata"], &got) == nil {
			// Which of several fields of one name counts is undefined; stored objects have one.
			if count(data, "metadata") == 1 && !reflect.DeepEqual(want, got) {
				t.Fatalf("%q gives %q", data, out)
			}
		}
	})
}

// count returns how often a name occurs in an object.
func count(data []byte, want string) (n int) {
	scan.Loose.Members(data, scan.Space(data, 0), func(name scan.Name, at int) (int, bool) {
		if string(name.In(data)) == want {
			n++
		}
		return scan.Skip(data, at), true
	})
	return n
}
