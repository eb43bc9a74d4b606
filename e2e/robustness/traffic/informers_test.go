//go:build unix

package traffic

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestUnchanged: something that changes after the program has stood still has not settled before.
func TestUnchanged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks, last := 0, uint64(0)
		unchanged(t.Context(), func() uint64 {
			looks++
			if looks == 2 {
				time.Sleep(2 * time.Second) // the program stands still
			}
			if last = 1; looks > 2 {
				last = 2
			}
			return last
		})
		if last != 2 || looks != 3+sameLooks {
			t.Errorf("after %d looks it is %d", looks, last)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if unchanged(ctx, func() uint64 { looks++; return uint64(looks) }); looks > 4+sameLooks {
			t.Errorf("it goes on after the end of its context")
		}
	})
}
