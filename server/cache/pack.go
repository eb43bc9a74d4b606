package cache

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

// packFrom is how many plain bytes a storage has before its objects are packed: less is not
// worth a dictionary.
const packFrom = 1 << 20

// BoundPlain says what objects may take as they are; see Config.PlainBytes. It is for before
// the cache is filled.
func (c *Cache) BoundPlain(bytes int64) { c.plain.Most = bytes }

// PlainBytes is what objects take as they are, and what was made of them, as of the last
// round of packing and with what has come since; without those resources of which there
// is little.
func (c *Cache) PlainBytes() int64 { return c.plain.Taken() + c.plain.Messages.Load() }

// Pack packs objects, and drops what was made of them, where not everything fits into
// Config.PlainBytes: those that were not read since the last round, and if what is plain takes
// too much still, others as well. It returns how many bytes less are plain. It rests now and then. One caller at a time.
func (c *Cache) Pack(ctx context.Context) (less int64) {
	return c.pack(packing.NewPace(ctx, c.plain.Overflows))
}

func (c *Cache) pack(pace *packing.Pace) (less int64) {
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
func (c *Cache) weigh(pace *packing.Pace) (all []weight, total int64, fits bool) {
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
	snapshot := &Snapshot{resource: s, v: v}
	snapshot.ascend("", from, one)
	if less < want && looked < n && pace.Ctx.Err() == nil {
		last = nil
		snapshot.ascend("", Position{}, func(it *Item) bool { return !from.reached(it) && one(it) })
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
func (c *Cache) Packed() (objects int, plain, packed int64) {
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

// packer packs the objects of one storage.
type packer struct {
	mu       sync.Mutex
	shape    *shape
	shapes   uint32 // how many there were
	objects  packing.Learner
	messages packing.Learner
	hand     Position // where the next round begins
	samples  [][]byte // Protobuf forms of which a dictionary will be made
	seen     int      // of how many they were taken
}

// shapeOf is what objects of a storage are packed with: some of n items tell what they
// look like. It is nil if they tell nothing.
func (p *packer) shapeOf(storage *kinds.Storage, n int, at func(i int) *Item) *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	with := p.objects.Learn(n, func(i int) []byte {
		if it := at(i); it.Corrupt == nil {
			return it.AppendJSON(nil)
		}
		return nil
	})
	if with == nil {
		return nil
	}
	if p.shape == nil || p.shape.objects != with || p.shape.storage != storage {
		p.shapes++
		p.shape = &shape{number: p.shapes, storage: storage, objects: with}
	}
	return p.shape
}

// known is what objects are packed with by now, or nil.
func (p *packer) known() *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shape
}

// messagesLike is what Protobuf forms are packed with; nil until as many samples of them were
// seen as it is made of.
func (p *packer) messagesLike(raw []byte) *packing.Codec {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.messages.With != nil {
		return p.messages.With
	}
	if p.seen++; p.seen%packing.SampleEach == 1 {
		p.samples = append(p.samples, raw)
	}
	if len(p.samples) < packing.Samples {
		return nil
	}
	samples := p.samples
	p.samples, p.seen = nil, 0
	return p.messages.Learn(len(samples), func(i int) []byte { return samples[i] })
}

// note is learned.note for objects, or for messages.
func (p *packer) note(l *packing.Learner, plain, packed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.Note(plain, packed)
}

// pack packs an item with what was made of it, unless somebody needs it as it is. It returns
// how many bytes less are plain now.
func (p *packer) pack(it *Item, of *shape, room *packRoom) (less int) {
	b := it.body.Load()
	form, ok := b.droppable()
	stays := b.packed() || of != nil && b.hard.Load() == of.number
	message := b.message()
	drop := message != nil && it.home.plain.Crammed()
	if !ok || it.Corrupt != nil || b.bare() || stays && b.forms() == nil && !drop {
		return 0
	}
	was := message.weight()
	if drop {
		message = nil
	}
	made := &body{with: b.with, data: b.data, size: b.size, split: b.split, common: b.common}
	if !stays && !p.packBody(made, it.metaOf(b), b.data, of, room) {
		if of != nil {
			b.hard.Store(of.number)
		}
		if b.forms() == nil {
			return 0
		}
	}
	if form != nil {
		raw, _ := form.value.([]byte)
		with := p.messagesLike(raw)
		if with == nil {
			return 0 // it may be a sample, and is packed in another round
		}
		if m := p.packMessage(form.key, raw, with, room); m != nil && it.home.plain.Keeps(m.weight()) {
			message = m
		}
	}
	made.like(b, message, nil)
	if !made.packed() { // what was made of it goes all the same
		made.hard.Store(b.hard.Load())
		if m := b.scanned(); m != nil {
			made.keep().meta.Store(m)
		}
	}
	if !it.body.CompareAndSwap(b, made) {
		return 0 // somebody else was faster
	}
	if plain := it.home.plain; plain != nil {
		plain.Messages.Add(int64(message.weight() - was))
	}
	return b.plainSize() - made.plainSize()
}

// packBody packs a line and its metadata.
func (p *packer) packBody(made *body, m *metadata.Meta, line []byte, of *shape, room *packRoom) bool {
	if of == nil || m.Storage != of.storage {
		return false
	}
	packed := of.objects.Pack(room.lend(len(line)), line)
	if packed == nil {
		return false
	}
	p.note(&p.objects, len(line), len(packed))
	text := packing.AppendLabels(room.text[:0], m.Labels)
	end := len(text)
	text, kept := m.AppendCommonOwners(text, line)
	made.common = room.near.Common(text[:end], text[end:])
	text = m.AppendPacked(text[:0], !kept)
	made.data = append(append(make([]byte, 0, len(text)+len(packed)), text...), packed...)
	made.with, made.size, made.split = of, int32(len(line)-1), int32(len(text))
	room.text = text
	return true
}

// packMessage packs a Protobuf form; nil if that does not pay.
func (p *packer) packMessage(key FormKey, raw []byte, with *packing.Codec, room *packRoom) *message {
	packed := with.Pack(room.lend(len(raw)), raw)
	if packed == nil {
		return nil
	}
	p.note(&p.messages, len(raw), len(packed))
	return &message{key: key, with: with, size: len(raw), data: bytes.Clone(packed)}
}

// packRoom is what packing one object after the other needs, and remembers.
type packRoom struct {
	packed, text []byte
	near         packing.Neighbors
	tried        int // bytes that were to be packed, since somebody set it to none
}

// lend is room for packing so many bytes.
func (r *packRoom) lend(size int) []byte {
	r.tried += size
	n := dictionary.Room(size)
	r.packed = slices.Grow(r.packed[:0], n)[:n]
	return r.packed
}

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
