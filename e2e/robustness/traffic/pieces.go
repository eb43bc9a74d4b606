//go:build unix

package traffic

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	piecesTime  = 20 * time.Second // within which pieces are deleted that no row needs any more, not counting faults
	piecesRests = 8                // between looks at the tables
)

// pieces looks at the tables in which SQLite has large values: each value belongs to a row, and the pieces of one that does not are deleted
// soon.
func (c *client) pieces(ctx context.Context) {
	for c.c.Postgres() == nil && ctx.Err() == nil {
		for range piecesRests {
			c.rest(ctx)
		}
		call := c.rec.Now()
		dropped, wrong, err := c.c.Pieces(ctx)
		if err != nil {
			continue // the file may be away
		}
		c.rec.Add(&history.Check{Property: "compaction", What: "the pieces of large values", Server: -1, Call: call, Return: c.rec.Now(), Wrong: wrong})
		if len(dropped) == 0 {
			continue
		}
		due := &history.Due{Property: "compaction", What: fmt.Sprintf("the end of the pieces of the large value %d, which no row has", dropped[0]), Server: -1, Within: piecesTime, Cause: call}
		c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
			for range piecesRests {
				c.rest(ctx)
			}
			left, _, err := c.c.Pieces(ctx)
			return err == nil && !slices.Contains(left, dropped[0]), false
		})
	}
}
