package discovery

import (
	"testing"
	"time"
)

// TestFresh: documents of many resources are served for as long as making them justifies, and
// never for long, however long that took.
func TestFresh(t *testing.T) {
	for _, c := range []struct {
		took, age time.Duration
		want      bool
	}{
		{time.Millisecond, 9 * time.Millisecond, true},
		{time.Millisecond, 10 * time.Millisecond, false},
		{time.Minute, 499 * time.Millisecond, true},
		{time.Minute, 500 * time.Millisecond, false},
	} {
		if got := (&documents{took: c.took}).fresh(c.age); got != c.want {
			t.Errorf("made in %v, after %v: %v", c.took, c.age, got)
		}
	}
}
