package cache

import (
	"context"
	"sort"
	"time"

	"github.com/rowlock/rowlock/server/cache/packing"
)

// packFrom is the least plain bytes of a storage whose objects are packed: fewer are not worth a dictionary.
const packFrom = 1 << 20

// BoundPlain sets Config.PlainBytes.
func (c *core) BoundPlain(bytes int64) { c.plain.Limit.Store(bytes) }

// PlainBytes returns the size of plain objects and forms, as of the last round of packing, plus what has been added since. Storages
// with few bytes do not count.
func (c *core) PlainBytes() int64 { return c.plain.Used() + c.plain.Messages.Load() }

// Pack packs objects and drops their forms if not everything fits into Config.PlainBytes: first those that were not read since
// the last round, and then others. It returns by how many bytes less are plain. It pauses now and then; other callers wait for
// the end of a round.
func (c *core) Pack(ctx context.Context) (less int64) {
	return c.pack(packing.NewThrottle(ctx, c.plain.RoundUrgent))
}

func (c *core) pack(throttle *packing.Throttle) (less int64) {
	c.rounds.Lock()
	defer c.rounds.Unlock()
	most := c.plain.Limit.Load()
	if most < 0 {
		return 0
	}
	c.plain.Grown.Store(0)
	all, total, fits := c.weigh(throttle)
	if throttle.Ctx.Err() != nil {
		return 0
	}
	c.plain.Total.Store(total)
	most = max(0, most-c.plain.Messages.Load())
	if fits && total <= most {
		return 0
	}
	// Objects in use stay plain in the first pass, but not in the second.
	for _, down := range [...]int64{0, most / 8 * 7} {
		for _, w := range all {
			if total-less <= down || throttle.Ctx.Err() != nil {
				break
			}
			less += w.resource.pack(throttle, total-less-down)
			c.plain.Total.Store(total - less)
		}
		if total-less <= most {
			break
		}
	}
	return less
}

// weight is the plain bytes of a resource.
type weight struct {
	resource *resource
	plain    int64
}

// weigh returns the resources whose objects may be packed, the heaviest first, and their total. fits means that no object is
// packed. If the context ends, the result is incomplete.
func (c *core) weigh(throttle *packing.Throttle) (all []weight, total int64, fits bool) {
	fits = true
	messages := int64(0)
	for s := range c.all() {
		if s.internal {
			continue
		}
		n := int64(0)
		s.state().items.Scan(func(it *Item) bool {
			b := it.body.Load()
			n += int64(b.plainSize())
			messages += int64(b.message().weight())
			fits = fits && !b.packed()
			return throttle.Step(0)
		})
		if n >= packFrom {
			all = append(all, weight{s, n})
			total += n
		}
		if throttle.Ctx.Err() != nil {
			break
		}
	}
	c.plain.Messages.Store(messages)
	sort.Slice(all, func(i, j int) bool { return all[i].plain > all[j].plain })
	return all, total, fits
}

// pack packs objects of the resource that are not in use, from where the last round ended, until want bytes less are plain.
func (s *resource) pack(throttle *packing.Throttle, want int64) (less int64) {
	v := s.state()
	n := v.items.Len()
	at := func(i int) *Item { it, _ := v.items.GetAt(i); return it }
	var room packBuffers
	from, looked := s.packer.hand, 0
	var last *Item
	one := func(it *Item) bool {
		looked++
		last = it
		room.near.Add(it.body.Load().common)
		if it.bits.Load()&flagUsed != 0 {
			it.bits.And(^uint32(flagUsed))
			return throttle.Step(0)
		}
		room.tried = 0
		if of := s.packer.shapeOf(s.storage.Load(), n, at); of != nil {
			less += int64(s.packer.pack(it, of, &room))
		}
		return throttle.Step(room.tried) && less < want
	}
	ascend(v.items, "", from, one)
	if less < want && looked < n && throttle.Ctx.Err() == nil {
		last = nil
		ascend(v.items, "", Position{}, func(it *Item) bool { return !from.reached(it) && one(it) })
	}
	s.packer.hand = Position{}
	if last != nil {
		s.packer.hand = After(last.Namespace, last.Name)
	}
	return less
}

// trainFrom is the number of objects of a resource that Load reads before it packs any.
const trainFrom = 500

// train makes a shape while objects are loaded for which there is no room.
func (s *resource) train(items []*Item) {
	if !s.internal && len(items) >= trainFrom && !s.plain.Available() && s.packer.known() == nil {
		s.packer.shapeOf(s.storage.Load(), len(items), func(i int) *Item { return items[i] })
	}
}

// Packed returns the number of packed live objects, the size of their JSON, and their packed size.
func (c *core) Packed() (objects int, plain, packed int64) {
	for s := range c.all() {
		s.state().items.Scan(func(it *Item) bool {
			if b := it.body.Load(); b.packed() {
				objects++
				plain += int64(b.size)
				packed += int64(b.weight())
			}
			return true
		})
	}
	return objects, plain, packed
}

// packPauses is the time that packing pauses after a round, in multiples of the round: a round visits all objects, and with a
// million of them, steady writes would cause one each second.
const packPauses = 20

// keepPacked packs in rounds until ctx ends.
func (c *core) keepPacked(ctx context.Context) {
	pack := time.NewTicker(time.Second)
	defer pack.Stop()
	weigh := time.NewTicker(10 * time.Second)
	defer weigh.Stop()
	var rested time.Time
	if c.plain.AboveLowWatermark() { // after a load
		c.Pack(ctx)
	}
	for {
		select {
		case <-ctx.Done():
			return
		case <-pack.C:
			if c.plain.RoundDue() && (!time.Now().Before(rested) || c.plain.RoundUrgent()) {
				began, throttle := time.Now(), packing.NewThrottle(ctx, c.plain.RoundUrgent)
				c.pack(throttle)
				rested = time.Now().Add(packPauses * (time.Since(began) - throttle.Paused))
			}
		case <-weigh.C:
			if c.plain.AboveLowWatermark() {
				c.Pack(ctx)
			}
		}
	}
}
