package server_test

import (
	"context"
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// TestPartsAreParts: a user that may write a subresource changes only that part of the object. The request
// lacks the rest, which stays as it was.
func TestPartsAreParts(t *testing.T) {
	c := newCluster(t)
	tree := func(data []byte) map[string]any {
		var obj map[string]any
		if err := json.Unmarshal(data, &obj); err != nil {
			t.Fatal(err)
		}
		return obj
	}
	written := map[string]int{}
	for _, r := range c.stored() {
		path := collection(r, "a") + "/" + named(r, "x")
		for i := range r.Subresources {
			s := &r.Subresources[i]
			if s.Update == nil || s.Name == "finalize" { // the finalizers are in the spec
				continue
			}
			before, sent := tree(c.must("GET", path, "")), map[string]any{}
			for _, key := range []string{"apiVersion", "kind", "metadata", "status"} {
				if value, ok := before[key]; ok {
					sent[key] = value
				}
			}
			body, err := json.Marshal(sent)
			if err != nil {
				t.Fatal(err)
			}
			since := c.s.Cache.Revision()
			w := c.do(context.Background(), "PUT", path+"/"+s.Name, inJSON, string(body), "Master", "yes")
			after := tree(c.must("GET", path, ""))
			for _, obj := range []map[string]any{before, after} {
				delete(obj, "metadata")
				delete(obj, "status")
			}
			if d := cmp.Diff(before, after); d != "" {
				t.Errorf("%s of %s (%d): %s", s.Name, r.GVR(), w.Code, d)
			}
			if w.Code == 200 {
				written[s.Name]++
			}
			c.undo(c.changes(since))
		}
	}
	if written["status"] < 15 || written["approval"] == 0 {
		t.Errorf("hardly anything was written: %v", written)
	}
}
