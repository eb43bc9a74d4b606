package networks

import (
	"testing"
	"time"
)

// TestGraceLeft: a clock that is wrong by hours does not put off the next look for hours.
func TestGraceLeft(t *testing.T) {
	t.Parallel()
	now := time.Now()
	for _, c := range []struct{ ago, want time.Duration }{
		{cidrGrace, 0}, {cidrGrace - 2*time.Second, 2 * time.Second}, {0, cidrGrace}, {-5 * time.Hour, cidrGrace}, {-time.Second, cidrGrace},
	} {
		if left := graceLeft(now.Add(-c.ago), now); left != c.want {
			t.Errorf("deleted %s ago: %s, want %s", c.ago, left, c.want)
		}
	}
	if left := graceLeft(now.Add(-5*time.Hour), now); left > 0 {
		t.Errorf("deleted 5 hours ago: %s", left)
	}
}
