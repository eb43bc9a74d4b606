package postgres

import (
	"io"
	"log/slog"
	"testing"
)

// TestAnotherServerFoundThePromotion: a server that connects to a promoted synchronous standby before another server
// has written the row of the database, and reads it after, goes on without a gap like that one, unless it has shown
// more than the standby had.
func TestAnotherServerFoundThePromotion(t *testing.T) {
	before := identity{"1", 1, "5", "9"}
	after := identity{"1", 2, "5", "9"}
	for name, c := range map[string]struct {
		early bool  // it connects before the row is written
		shown int64 // the newest revision that it has met
		want  relation
	}{
		"afterwards":                      {false, 100, newer},
		"before":                          {true, 100, newer},
		"afterwards, and has shown more":  {false, 101, another},
		"before, and has shown more":      {true, 101, another},
		"before, and has shown much less": {true, 7, newer},
	} {
		t.Run(name, func(t *testing.T) {
			l := &lineage{}
			l.begin(func() int64 { return c.shown }, slog.New(slog.NewTextHandler(io.Discard, nil)))
			if err := l.meet(place{identity: before, number: 3, in: before}); err != nil {
				t.Fatal(err)
			}
			if c.early {
				if err := l.meet(place{identity: after, number: 3, in: before}); err != nil || !l.suspect.Load() {
					t.Fatalf("the standby is met with %v, and suspected %t", err, l.suspect.Load())
				}
			}
			if got := l.compare(&place{identity: after, number: 4, in: after, from: 100, to: 100}); got != c.want {
				t.Errorf("it stands as %d, want %d", got, c.want)
			}
		})
	}
}
