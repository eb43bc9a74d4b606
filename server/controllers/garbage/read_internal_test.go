package garbage

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
)

func TestRead(t *testing.T) {
	first := `{"apiVersion":"v1","kind":"A","name":"a","uid":"1"}`
	second := `{"uid":"2","name":"\u0062","kind":"B","apiVersion":"g/v1","blockOwnerDeletion":true,"controller":false}`
	for text, want := range map[string]metadata{
		``:                                  {},
		`{}`:                                {},
		`{"metadata":null}`:                 {},
		`{"metadata":{"uid":"u"}}`:          {uid: "u"},
		`{"metadata":{"uid":null}}`:         {},
		`{"spec":{"metadata":{"uid":"x"}}}`: {},
		`{"apiVersion":"v1","metadata":{"labels":{"uid":"x"},"uid":"u","deletionTimestamp":null,"finalizers":null,"ownerReferences":null},"spec":{}}`: {uid: "u", finalizers: []byte("null")},
		`{ "metadata" : { "deletionTimestamp" : "2026-01-01T00:00:00Z" , "finalizers" : [ "x" , "orphan" ] , "uid" : "u" } }`: {
			uid: "u", deleting: true, orphan: true, finalizers: []byte(`[ "x" , "orphan" ]`),
		},
		`{"metadata":{"finalizers":["foregroundDeletion"],"uid":"u"}}`: {uid: "u", foreground: true, finalizers: []byte(`["foregroundDeletion"]`)},
		`{"metadata":{"ownerReferences":[` + first + `,` + second + `]}}`: {refs: []reference{
			{apiVersion: "v1", kind: "A", name: "a", uid: "1", json: []byte(first)},
			{apiVersion: "g/v1", kind: "B", name: "b", uid: "2", blocks: true, json: []byte(second)},
		}},
		`{"metadata":{"ownerReferences":[{"blockOwnerDeletion":false}]}}`: {refs: []reference{{json: []byte(`{"blockOwnerDeletion":false}`)}}},
	} {
		if d := cmp.Diff(want, read([]byte(text), nil), cmp.AllowUnexported(metadata{}, reference{}), cmp.Transformer("text", func(b []byte) string { return string(b) }),
			cmp.Comparer(func(a, b []reference) bool {
				return len(a) == 0 && len(b) == 0 || cmp.Equal(a, b, cmp.AllowUnexported(reference{}), cmp.Transformer("text", func(b []byte) string { return string(b) }))
			})); d != "" {
			t.Errorf("%s: %s", text, d)
		}
	}
}

func TestState(t *testing.T) {
	for want, list := range map[graph.State][]metadata{
		0:                {{}, {foreground: true}, {orphan: true}, {deleting: true}},
		graph.Foreground: {{deleting: true, foreground: true}},
		graph.Orphaning:  {{deleting: true, orphan: true}, {deleting: true, foreground: true, orphan: true}},
	} {
		for _, m := range list {
			if got := m.state(); got != want {
				t.Errorf("%+v is %v, want %v", m, got, want)
			}
		}
	}
}

func FuzzRead(f *testing.F) {
	f.Add([]byte(`{"metadata":{"uid":"u","finalizers":["x"],"ownerReferences":[{"uid":"o","blockOwnerDeletion":true}]}}`))
	f.Add([]byte(`{"metadata":{"ownerReferences":[[{}],"x",1,null,{"uid":{}}]}}`))
	f.Fuzz(func(_ *testing.T, text []byte) { read(text, nil) })
}
