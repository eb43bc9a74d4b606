package garbage

import (
	"testing"
	"time"
)

func TestAllowance(t *testing.T) {
	now := time.Unix(1000, 0)
	a := allowance{most: 3, perSecond: 2}
	for i, c := range []struct {
		after time.Duration
		n     int
		want  bool
	}{{0, 2, true}, {0, 2, false}, {0, 1, true}, {0, 1, false}, {time.Second, 2, true}, {0, 1, false}, {time.Hour, 4, false}, {0, 3, true}, {-time.Hour, 1, false}} {
		if now = now.Add(c.after); a.take(c.n, now) != c.want {
			t.Errorf("step %d: %v", i, !c.want)
		}
	}
}
