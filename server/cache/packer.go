package cache

import (
	"bytes"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/kinds"
)

// plainBytes is what the plain objects and forms of a cache take, and may take.
type plainBytes struct {
	most  int64        // what does not fit is packed; negative: nothing is
	total atomic.Int64 // as of the last round
	grown atomic.Int64 // since

	messages atomic.Int64 // packed Protobuf forms, as of the last round and since
}

// taken is how much there is by now, or a little less.
func (p *plainBytes) taken() int64 { return p.total.Load() + p.grown.Load() }

// keeps says whether so many bytes more of packed messages may be kept: they have half of the room at most.
func (p *plainBytes) keeps(n int) bool {
	return p == nil || p.most < 0 || p.messages.Load()+int64(n) <= p.most/2
}

// crammed says that packed messages have taken nearly all that they may.
func (p *plainBytes) crammed() bool {
	return p != nil && p.most >= 0 && p.messages.Load() > p.most/16*7
}

// crowded says whether a round of packing is due: much has come since the last.
func (p *plainBytes) crowded() bool {
	return p.most >= 0 && p.taken()+p.messages.Load() >= p.most && p.grown.Load() > p.most/16
}

// overflows says that a round is due that cannot wait: twice as much is plain as may be.
func (p *plainBytes) overflows() bool {
	return p.most >= 0 && p.taken()+p.messages.Load() >= 2*p.most
}

// filling says whether a round would find something, where most is not read any more.
func (p *plainBytes) filling() bool { return p.most >= 0 && p.taken() > p.most/4 }

// room says whether more may stay as it is, and grow that it does.
func (p *plainBytes) room() bool {
	return p == nil || p.most < 0 || p.taken()+p.messages.Load() < p.most
}
func (p *plainBytes) grow(n int) {
	if p != nil {
		p.grown.Add(int64(n))
	}
}

// packer packs the objects of one storage.
type packer struct {
	mu       sync.Mutex
	shape    *shape
	shapes   uint32 // how many there were
	objects  learned
	messages learned
	hand     Position // where the next round begins
	samples  [][]byte // Protobuf forms of which a dictionary will be made
	seen     int      // of how many they were taken
}

// learned is how the bytes of one form are packed: by what dictionary, and how well.
type learned struct {
	with  *packing
	first yield // of the first objects
	since yield // of those after them
}

// yield is what packing some objects gave.
type yield struct{ objects, plain, packed int }

func (y *yield) add(plain, packed int) {
	y.objects++
	y.plain += plain
	y.packed += packed
}

// Bounds of a dictionary.
const (
	packSamples = 16   // of how many objects one is made, at most
	packJudged  = 1000 // by how many it is judged
	sampleEach  = 8    // of how many Protobuf forms that come by one is a sample
	packStale   = 1.5  // where they take so many times what the first took, another is made
)

// note takes down what packing an object gave. When the objects have come to look
// different, the dictionary is forgotten.
func (l *learned) note(plain, packed int) {
	if l.first.objects < packJudged {
		l.first.add(plain, packed)
		return
	}
	if l.since.add(plain, packed); l.since.objects < packJudged {
		return
	}
	was, is := float64(l.first.packed)/float64(l.first.plain), float64(l.since.packed)/float64(l.since.plain)
	if l.since = (yield{}); is > was*packStale {
		*l = learned{}
	}
}

// learn makes a dictionary if there is none. get gives the bytes of an object, or nil.
func (l *learned) learn(n int, get func(i int) []byte) *packing {
	if l.with != nil {
		return l.with
	}
	samples := make([][]byte, 0, packSamples)
	for i := range packSamples {
		if sample := get(i * n / packSamples); sample != nil {
			samples = append(samples, sample)
		}
	}
	if d := dictionary.New(samples); d != nil {
		*l = learned{with: &packing{d}}
	}
	return l.with
}

// shapeOf is what objects of a storage are packed with: some of n items tell what they
// look like. It is nil if they tell nothing.
func (p *packer) shapeOf(storage *kinds.Storage, n int, at func(i int) *Item) *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	with := p.objects.learn(n, func(i int) []byte {
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
func (p *packer) messagesLike(raw []byte) *packing {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.messages.with != nil {
		return p.messages.with
	}
	if p.seen++; p.seen%sampleEach == 1 {
		p.samples = append(p.samples, raw)
	}
	if len(p.samples) < packSamples {
		return nil
	}
	samples := p.samples
	p.samples, p.seen = nil, 0
	return p.messages.learn(len(samples), func(i int) []byte { return samples[i] })
}

// note is learned.note for objects, or for messages.
func (p *packer) note(l *learned, plain, packed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.note(plain, packed)
}

// pack packs an item with what was made of it, unless somebody needs it as it is. It returns
// how many bytes less are plain now.
func (p *packer) pack(it *Item, of *shape, room *packRoom) (less int) {
	b := it.body.Load()
	form, ok := b.droppable()
	stays := b.packed() || of != nil && b.hard.Load() == of.number
	message := b.message()
	drop := message != nil && it.home.plain.crammed()
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
		if m := p.packMessage(form.key, raw, with, room); m != nil && it.home.plain.keeps(m.weight()) {
			message = m
		}
	}
	made.like(b, message, nil)
	if !made.packed() { // what was made of it goes all the same
		made.hard.Store(b.hard.Load())
		if m := b.meta(); m != nil {
			made.keep().meta.Store(m)
		}
	}
	if !it.body.CompareAndSwap(b, made) {
		return 0 // somebody else was faster
	}
	if plain := it.home.plain; plain != nil {
		plain.messages.Add(int64(message.weight() - was))
	}
	return b.plainSize() - made.plainSize()
}

// packBody packs a line and its metadata.
func (p *packer) packBody(made *body, m *Meta, line []byte, of *shape, room *packRoom) bool {
	if of == nil || m.storage != of.storage {
		return false
	}
	packed := of.objects.Pack(room.lend(len(line)), line)
	if packed == nil {
		return false
	}
	p.note(&p.objects, len(line), len(packed))
	text := appendLabels(room.text[:0], m.Labels)
	end := len(text)
	text, kept := appendKeptOwners(text, m.owners.of(line))
	made.common = room.near.common(text[:end], text[end:])
	text = appendMeta(text[:0], m, !kept)
	made.data = append(append(make([]byte, 0, len(text)+len(packed)), text...), packed...)
	made.with, made.size, made.split = of, int32(len(line)-1), int32(len(text))
	room.text = text
	return true
}

// packMessage packs a Protobuf form; nil if that does not pay.
func (p *packer) packMessage(key FormKey, raw []byte, with *packing, room *packRoom) *message {
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
	near         near
	tried        int // bytes that were to be packed, since somebody set it to none
}

// lend is room for packing so many bytes.
func (r *packRoom) lend(size int) []byte {
	r.tried += size
	n := dictionary.Room(size)
	r.packed = slices.Grow(r.packed[:0], n)[:n]
	return r.packed
}

// droppable says whether all forms can be made again from the bytes alone, and finds the one
// to pack instead.
func (b *body) droppable() (message *form[FormKey], ok bool) {
	for f := b.forms(); f != nil; f = f.next {
		if !f.done.Load() || !f.key.again() {
			return nil, false
		}
		if f.key.Form == FormProtobuf && f.err == nil {
			message = f
		}
	}
	return message, true
}

// otherForm is about what a form that is no bytes takes.
const otherForm = 512

// plainSize is how many bytes the body takes besides what is packed.
func (b *body) plainSize() (n int) {
	if !b.packed() {
		n = len(b.data)
	}
	for f := b.forms(); f != nil; f = f.next {
		if f.done.Load() {
			n += f.size()
		}
	}
	return n
}

// size is about what a form takes that is done.
func (f *form[K]) size() int {
	if raw, ok := f.value.([]byte); ok {
		return len(raw)
	}
	return otherForm
}
