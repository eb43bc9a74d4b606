package answers_test

import (
	"net/http"
	"slices"
	"testing"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// early records the known sizes when the answer begins.
type early struct {
	http.ResponseWriter
	last *cache.Item
	key  cache.FormKey

	began, made bool
}

func (w *early) Write(b []byte) (int, error) {
	if !w.began {
		w.began, w.made = true, w.last.Has(w.key)
	}
	return w.ResponseWriter.Write(b)
}

// TestRowsAreMadeAsTheyAreWritten: a table of a million objects of a built-in kind begins before
// their rows were made.
func TestRowsAreMadeAsTheyAreWritten(t *testing.T) {
	for _, k := range allKinds(t) {
		if k.custom() || len(k.items) < 2 || !objects.Clean(k.r, k.items[1]) {
			continue
		}
		q, recorder := k.request("")
		w := &early{ResponseWriter: recorder, last: k.items[1], key: cache.FormKey{Form: cache.FormTableRow, For: k.r}}
		q.W = w
		page := &objects.Page{Items: append(slices.Repeat(k.items[:1], 2000), k.items[1]), Remaining: -1}
		if err := k.answers().Page(q, codecs.Form{Type: codecs.JSON, As: asTable}, page); err != nil {
			t.Fatal(err)
		}
		if recorder.Body.Len() <= 2*answers.Chunk {
			t.Fatalf("%s: %d bytes are no long answer", k.name, recorder.Body.Len())
		}
		if w.made || !w.last.Has(w.key) {
			t.Errorf("%s: the last row was made before the answer began: %v, at all: %v", k.name, w.made, w.last.Has(w.key))
		}
		return
	}
	t.Fatal("no kind to test with")
}
