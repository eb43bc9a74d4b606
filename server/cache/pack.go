package cache

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/rowlock/rowlock/server/cache/packing"
)

// packFrom is how many plain bytes a storage has before its objects are packed: less is not
// worth a dictionary.
const packFrom = 1 << 20

// BoundPlain says what objects may take as they are; see Config.PlainBytes. It is for before
// the cache is filled.
func (c *core) BoundPlain(bytes int64) { c.plain.Most = bytes }

// PlainBytes is what objects take as they are, and what was made of them, as of the last
// round of packing and with what has come since; without those resources of which there
// is little.
func (c *core) PlainBytes() int64 { return c.plain.Taken() + c.plain.Messages.Load() }

// Pack packs objects, and drops what was made of them, where not everything fits into
// Config.PlainBytes: those that were not read since the last round, and if what is plain takes
// too much still, others as well. It returns how many bytes less are plain. It rests now and then. One caller at a time.
func (c *core) Pack(ctx context.Context) (less int64) {
	return c.pack(packing.NewPace(ctx, c.plain.Overflows))
}

func (c *core) pack(pace *packing.Pace) (less int64) {
	most := c.plain.Most
	if most < 0 {
		return 0
	}
	c.plain.Grown.Store(0)
	all, total, fits := c.weigh(pace)
	if pace.Ctx.Err() != nil {
		return 0
	}
	c.plain.Total.Store(total)
	most = max(0, most-c.plain.Messages.Load())
	if fits && total <= most {
		return 0
	}
	// What is used right now stays plain in the first pass; in the second nothing does.
	for _, down := range [...]int64{0, most / 8 * 7} {
		for _, w := range all {
			if total-less <= down || pace.Ctx.Err() != nil {
				break
			}
			less += w.resource.pack(pace, total-less-down)
			c.plain.Total.Store(total - less)
		}
		if total-less <= most {
			break
		}
	}
	return less
}

// weight is what a resource has that is plain.
type weight struct {
	resource *resource
	plain    int64
}

// weigh weighs all resources, the heaviest first: those whose objects may be packed, and the
// total of them. fits says that none is packed. Where ctx ends it is less.
func (c *core) weigh(pace *packing.Pace) (all []weight, total int64, fits bool) {
	fits = true
	messages := int64(0)
	c.resources.Range(func(_, v any) bool {
		s := v.(*resource)
		if s.internal {
			return true
		}
		n := int64(0)
		s.state().items.Scan(func(it *Item) bool {
			b := it.body.Load()
			n += int64(b.plainSize())
			messages += int64(b.message().weight())
			fits = fits && !b.packed()
			return pace.Step(0)
		})
		if n >= packFrom {
			all = append(all, weight{s, n})
			total += n
		}
		return pace.Ctx.Err() == nil
	})
	c.plain.Messages.Store(messages)
	slices.SortFunc(all, func(a, b weight) int { return cmp.Compare(b.plain, a.plain) })
	return all, total, fits
}

// pack packs objects of the resource that are not in use, from where the last round ended,
// until so many bytes less are plain.
func (s *resource) pack(pace *packing.Pace, want int64) (less int64) {
	v := s.state()
	n := v.items.Len()
	at := func(i int) *Item { it, _ := v.items.GetAt(i); return it }
	var room packRoom
	from, looked := s.packer.hand, 0
	var last *Item
	one := func(it *Item) bool {
		looked++
		last = it
		room.near.See(it.body.Load().common)
		if it.used.Swap(false) {
			return pace.Step(0)
		}
		room.tried = 0
		if of := s.packer.shapeOf(s.storage.Load(), n, at); of != nil {
			less += int64(s.packer.pack(it, of, &room))
		}
		return pace.Step(room.tried) && less < want
	}
	ascend(v.items, "", from, one)
	if less < want && looked < n && pace.Ctx.Err() == nil {
		last = nil
		ascend(v.items, "", Position{}, func(it *Item) bool { return !from.reached(it) && one(it) })
	}
	s.packer.hand = Position{}
	if last != nil {
		s.packer.hand = After(last.Namespace, last.Name)
	}
	return less
}

// learnFrom is how many objects Load has read of a resource before it packs any.
const learnFrom = 500

// learn finds out what the objects of a resource look like, while they are loaded and there
// is no room for all.
func (s *resource) learn(items []*Item) {
	if !s.internal && len(items) >= learnFrom && !s.plain.Room() && s.packer.known() == nil {
		s.packer.shapeOf(s.storage.Load(), len(items), func(i int) *Item { return items[i] })
	}
}

// Packed counts the live objects that lie packed, the bytes that their JSON has, and those
// that it takes.
func (c *core) Packed() (objects int, plain, packed int64) {
	c.resources.Range(func(_, v any) bool {
		v.(*resource).state().items.Scan(func(it *Item) bool {
			if b := it.body.Load(); b.packed() {
				objects++
				plain += int64(b.size)
				packed += int64(len(b.data))
			}
			return true
		})
		return true
	})
	return objects, plain, packed
}

// packRests is for how long packing rests behind a round, in times that it worked: a round looks at
// all objects, and among a million writers would have one each second.
const packRests = 20

// keepPacked packs what is not read, in rounds, until ctx ends.
func (c *core) keepPacked(ctx context.Context) {
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
