package fieldset_test

import (
	"bytes"
	"encoding/json"
	"testing"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/rowlock/rowlock/server/apply/ownership/fieldset"
)

// FuzzSet: Parse reads the same set as the library, and Append writes it back.
func FuzzSet(f *testing.F) {
	f.Add([]byte(`{"f:spec":{".":{},"f:a":{},"k:{\"name\":\"x\"}":{".":{}}}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		memory := fieldset.NewMemory()
		defer memory.Release()
		set, err := fieldset.Parse(raw, memory)
		if err != nil {
			return
		}
		var want fieldpath.Set
		if json.Valid(raw) && want.FromJSON(bytes.NewReader(raw)) == nil && !set.Empty() {
			again := set.Append(nil)
			var got fieldpath.Set
			if err := got.FromJSON(bytes.NewReader(again)); err != nil || !got.Equals(&want) {
				t.Errorf("%s became %s (%v)", raw, again, err)
			}
		}
	})
}
