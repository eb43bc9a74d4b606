package faults_test

import (
	"slices"
	"testing"

	"github.com/rowlock/rowlock/e2e/robustness/faults"
)

// TestDeck: the deck has each fault of a store as often as its Often, in an order that the seed determines and that begins with one of
// each, and then again.
func TestDeck(t *testing.T) {
	for _, store := range []string{"sqlite", "postgres"} {
		chosen, err := faults.Choose("all", store)
		if err != nil {
			t.Fatal(err)
		}
		draw := func(seed uint64) (names []string) {
			deck, cards := faults.NewDeck(chosen, seed), 0
			for _, f := range chosen {
				cards += f.Often
			}
			for range 2 * cards {
				names = append(names, deck.Draw().Name)
			}
			return names
		}
		names := draw(1)
		for _, half := range [][]string{names[:len(names)/2], names[len(names)/2:]} {
			for i, f := range chosen {
				if name := half[i]; slices.Contains(half[:i], name) {
					t.Errorf("%s: %s was drawn twice before each fault was", store, name)
				}
				n := 0
				for _, name := range half {
					if name == f.Name {
						n++
					}
				}
				if n != f.Often {
					t.Errorf("%s: %s was drawn %d times, want %d", store, f.Name, n, f.Often)
				}
			}
		}
		if !slices.Equal(names, draw(1)) || slices.Equal(names, draw(2)) {
			t.Errorf("%s: the seed does not determine the order", store)
		}
	}
}
