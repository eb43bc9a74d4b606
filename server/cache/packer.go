package cache

import (
	"bytes"
	"slices"
	"sync"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
)

// packer packs the objects of one storage.
type packer struct {
	home     *storageInfo // of the storage
	mu       sync.Mutex
	shape    *shape
	shapes   uint32 // number of shapes so far
	objects  packing.Trainer
	messages packing.Trainer
	hand     Position // where the next round begins
	samples  [][]byte // Protobuf forms for a dictionary
	seen     int      // number of forms that samples were taken of
}

// shapeOf returns the shape for objects of a storage, for which it takes samples of n items. It returns nil if these do not
// suffice.
func (p *packer) shapeOf(storage *kinds.Storage, n int, at func(i int) *Item) *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	with := p.objects.Train(n, func(i int) []byte {
		it := at(i)
		if it.Err() != nil {
			return nil
		}
		b, err := it.tryPeek()
		if err != nil {
			return nil
		}
		return b
	})
	if with == nil {
		return nil
	}
	if p.shape == nil || p.shape.objects != with || p.shape.storage != storage {
		p.shapes++
		p.shape = (&shape{info: p.home, number: p.shapes, storage: storage, objects: with}).ready()
	}
	return p.shape
}

// known returns the current shape, or nil.
func (p *packer) known() *shape {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.shape
}

// messagesLike returns the codec for Protobuf forms, or nil as long as there are too few samples.
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
	return p.messages.Train(len(samples), func(i int) []byte { return samples[i] })
}

// note reports to a learner how well an object or message was packed.
func (p *packer) note(l *packing.Trainer, plain, packed int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	l.Measure(plain, packed)
}

// pack packs an item and its Protobuf form, and drops its other forms. It returns by how many bytes less are plain then: 0 if
// it did nothing.
func (p *packer) pack(it *Item, of *shape, room *packBuffers) (less int) {
	b, home := it.body.Load(), it.info()
	form, ok := b.droppable()
	stays := b.packed() || b.inFile() == nil && of != nil && b.hard() == of.number
	message := b.message()
	drop := message != nil && home.plain.MessagesNearLimit()
	if !ok || it.Err() != nil || b.bare() || stays && b.forms() == nil && !drop {
		return 0
	}
	was := message.weight()
	if drop {
		message = nil
	}
	made := b.again()
	if filed := b.inFile(); !b.packed() && filed != nil && filed.with().storage == home.storage.Load() {
		made = filed.again()
	} else if !stays && !p.packBody(made, it.metaOf(b), b.line(), of, room) {
		if of != nil {
			b.keep().hard.Store(of.number)
		}
		if b.forms() == nil {
			return 0
		}
	}
	if form != nil {
		raw, _ := form.value.([]byte)
		with := p.messagesLike(raw)
		if with == nil {
			return 0 // it may be a sample; another round packs it
		}
		if m := p.packMessage(form.key, raw, with, room); m != nil && home.plain.HasMessageSpace(m.weight()) {
			message = m
		}
	}
	made.like(b, message, nil)
	if !made.packed() { // its forms are dropped all the same
		if hard := b.hard(); hard != 0 {
			made.keep().hard.Store(hard)
		}
		if m := b.scanned(); m != nil {
			made.keep().meta.Store(m)
		}
	}
	if !it.body.CompareAndSwap(b, made) {
		return 0 // another goroutine was faster
	}
	if home.plain != nil {
		home.plain.Messages.Add(int64(message.weight() - was))
	}
	return b.plainSize() - made.plainSize()
}

// packBody packs a line and its metadata.
func (p *packer) packBody(made *body, m *metadata.Meta, line []byte, of *shape, room *packBuffers) bool {
	if of == nil || m.Storage != of.storage {
		return false
	}
	packed := of.objects.Pack(room.grow(len(line)), line)
	if packed == nil {
		return false
	}
	p.note(&p.objects, len(line), len(packed))
	text := room.about(made, m, line)
	made.data, made.size = packedData(text, packed), int32(len(line)-1)
	made.derived.Store(&of.none)
	return true
}

// about sets made.common, which neighbors with equal labels and owners share. It returns the packed metadata of a line, valid
// until the next call.
func (r *packBuffers) about(made *body, m *metadata.Meta, line []byte) []byte {
	text := packing.AppendLabels(r.text[:0], m.Labels)
	end := len(text)
	text, kept := m.AppendCommonOwners(text, line)
	made.common = r.near.Common(text[:end], text[end:])
	r.text = m.AppendPacked(text[:0], !kept)
	return r.text
}

// packMessage packs a Protobuf form. It returns nil if that saves nothing.
func (p *packer) packMessage(key FormKey, raw []byte, with *packing.Codec, room *packBuffers) *message {
	packed := with.Pack(room.grow(len(raw)), raw)
	if packed == nil {
		return nil
	}
	p.note(&p.messages, len(raw), len(packed))
	return &message{key: key, with: with, size: len(raw), data: bytes.Clone(packed)}
}

// packBuffers is memory for packing one object after the other.
type packBuffers struct {
	packed, text []byte
	near         packing.Interner
	tried        int // bytes that were compressed since the caller has set it to 0
}

// grow returns room for packing n bytes.
func (r *packBuffers) grow(size int) []byte {
	r.tried += size
	n := dictionary.BufferSize(size)
	r.packed = slices.Grow(r.packed[:0], n)[:n]
	return r.packed
}
