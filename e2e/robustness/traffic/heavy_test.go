//go:build unix

package traffic

import (
	"errors"
	"net/http"
	"testing"
)

// TestSortTries: a write that was done comes before one without an answer, and that before one that was refused.
func TestSortTries(t *testing.T) {
	t.Parallel()
	done, open, refused := heavyTry{id: "done", code: http.StatusOK}, heavyTry{id: "open", err: errors.New("cut")}, heavyTry{id: "refused", code: http.StatusConflict}
	for _, tries := range [][]heavyTry{{refused, open}, {open, done}, {refused, done}, {done, open}, {open, refused}} {
		first, second := tries[0].id, tries[1].id
		sortTries(tries)
		order := map[string]int{"done": 0, "open": 1, "refused": 2}
		if order[tries[0].id] > order[tries[1].id] {
			t.Errorf("%s, %s are sorted as %s, %s", first, second, tries[0].id, tries[1].id)
		}
	}
}
