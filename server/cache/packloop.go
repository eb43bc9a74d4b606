package cache

import (
	"context"
	"time"

	"github.com/rowlock/rowlock/server/cache/packing"
)

// packRests is for how long packing rests behind a round, in times that it worked: a round looks at
// all objects, and among a million writers would have one each second.
const packRests = 20

// keepPacked packs what is not read, in rounds, until ctx ends.
func (c *Cache) keepPacked(ctx context.Context) {
	pack := time.NewTicker(time.Second)
	defer pack.Stop()
	weigh := time.NewTicker(10 * time.Second)
	defer weigh.Stop()
	var rested time.Time
	if c.plain.Filling() { // by what was loaded first
		c.Pack(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-pack.C:
			if c.plain.Crowded() && (!time.Now().Before(rested) || c.plain.Overflows()) {
				began, pace := time.Now(), packing.NewPace(ctx, c.plain.Overflows)
				c.pack(pace)
				rested = time.Now().Add(packRests * (time.Since(began) - pace.Rested))
			}
		case <-weigh.C:
			if c.plain.Filling() {
				c.Pack(ctx)
			}
		}
	}
}
