package history_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// TestFields: each entry of a list is a field, which has another value if it is there twice; a number of replicas names the operation that
// set it.
func TestFields(t *testing.T) {
	t.Parallel()
	replicas, err := history.ReplicasOf("opz9")
	if err != nil || history.ReplicasID(replicas) != "opz9" {
		t.Errorf("the operation opz9 sets %d replicas: %v", replicas, err)
	}
	if _, err := history.ReplicasOf("op of nobody"); err == nil {
		t.Error("what is no operation sets a number")
	}
	it, err := history.ParseObject([]byte(`{"apiVersion":"robust.rowlock.dev/v2","metadata":{"name":"a","creationTimestamp":"then"},"spec":{"side":"yes","log":["op1","op2","op1"],"replicas":35,"values":{"v":"op3"}}}`), 7)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{"op1": "op1 twice", "op2": "op2", "replicas": "opz", "v": "op3"}
	if diff := cmp.Diff(want, it.State.Fields); diff != "" || !it.State.Side || it.State.Made != "then" || it.Served != "robust.rowlock.dev/v2" {
		t.Errorf("it is %+v: %s", it, diff)
	}
}

// TestSameInReleases: a row that a server of one release wrote has the hash of what one of another release shows of it.
func TestSameInReleases(t *testing.T) {
	t.Parallel()
	for row, shown := range map[string]string{
		`{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"creationTimestamp":null,"labels":{"a":"b"}}}}}`:    `{"metadata":{"name":"a"},"spec":{"template":{"metadata":{"labels":{"a":"b"}}}}}`,
		`{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True","observedGeneration":2}]}}`: `{"metadata":{"name":"a"},"status":{"conditions":[{"type":"Ready","status":"True"}]}}`,
	} {
		var hashes []string
		for _, text := range []string{row, shown, strings.Replace(shown, `"a"`, `"c"`, 1)} {
			it, err := history.ParseObject([]byte(text), 7)
			if err != nil {
				t.Fatal(err)
			}
			hashes = append(hashes, it.State.Hash)
		}
		if hashes[0] != hashes[1] || hashes[1] == hashes[2] {
			t.Errorf("%s, %s and another object have the hashes %v", row, shown, hashes)
		}
	}
}
