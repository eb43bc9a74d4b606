package access_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server/access"
)

func TestInParallel(t *testing.T) {
	failure := errors.New("failed")
	for name, test := range map[string]struct {
		things, failing int // the one that fails, from 1
		ended           bool
		want            error
	}{
		"nothing":          {},
		"fewer than hands": {things: 2},
		"more than hands":  {things: 50},
		"the first fails":  {things: 50, failing: 1, want: failure},
		"the last fails":   {things: 50, failing: 50, want: failure},
		"it was ended":     {things: 50, ended: true, want: context.Canceled},
	} {
		ctx, cancel := context.WithCancel(t.Context())
		if test.ended {
			cancel()
		}
		var done, now, most atomic.Int64
		var list []func(context.Context) error
		for i := range test.things {
			list = append(list, func(context.Context) error {
				defer now.Add(-1)
				for n := now.Add(1); ; {
					if old := most.Load(); n <= old || most.CompareAndSwap(old, n) {
						break
					}
				}
				done.Add(1)
				if i+1 == test.failing {
					return failure
				}
				return nil
			})
		}
		if err := access.InParallel(ctx, 3, list); !errors.Is(err, test.want) || (err != nil) != (test.want != nil) {
			t.Errorf("%s: %v, want %v", name, err, test.want)
		}
		if n := done.Load(); test.want == nil && n != int64(test.things) || test.ended && n > 0 {
			t.Errorf("%s: %d of %d were done", name, n, test.things)
		}
		if n := most.Load(); n > 3 {
			t.Errorf("%s: %d at once", name, n)
		}
		cancel()
	}
}
