package answers

import (
	"bytes"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
)

// A list in Protobuf is one message, whose length precedes its items, so the size of each item must be known
// before the first byte is sent (docs/design/openapi.md). An item caches its size. Determining the sizes of
// many new items is bounded by the deadline of the request, takes turns with the answers of other users, and
// holds little memory.

const (
	// maxHeld bounds the messages in held, in bytes.
	maxHeld = 2 << 20
	// sizesAtOnce is the number of sizes that one goroutine determines; more are divided among as many
	// goroutines as there are processors.
	sizesAtOnce = 4096
	// largeList is the number of items from which on messages are not cached: there would be no room.
	largeList = 64 << 10
)

// errSize is the error for an item whose size has changed since the head of the list was written.
var errSize = errors.New("an item of the list is not as large as it was")

// Prepare implements Form.
func (f *protobufForm) Prepare(p *objects.Page) (int, error) {
	p.Gather()
	f.size, f.held, f.holding, f.large = 0, map[*cache.Item][]byte{}, 0, len(p.Items) > largeList
	var unknown []*cache.Item
	for _, it := range p.Items {
		if n, ok := f.known(it); ok {
			f.size += f.codec().ItemSize(n)
		} else {
			unknown = append(unknown, it)
		}
	}
	var err error
	if len(unknown) > sizesAtOnce {
		err = f.measureMany(unknown)
	} else {
		err = f.measure(unknown, f.turns())
	}
	if err != nil {
		return 0, err
	}
	buf := getBuffer()
	defer putBuffer(buf)
	head, err := f.ListHead((*buf)[:0], p)
	if err != nil {
		return 0, err
	}
	*buf = f.ListTail(head, p)
	return len(*buf) + f.size, nil
}

// known returns the cached size of an item's message.
func (f *protobufForm) known(it *cache.Item) (int, bool) {
	if f.metadataOnly() || it.Err() != nil || !objects.Clean(f.r, it) {
		return 0, false
	}
	return it.Sized()
}

// turns returns the Turn of one goroutine that determines sizes; that does not make the answer a long one.
func (f *protobufForm) turns() *Turn {
	turn := f.turn
	turn.scope = nil
	return &turn
}

// measure adds the sizes of items. It keeps their messages in held while they are few.
func (f *protobufForm) measure(items []*cache.Item, turn *Turn) error {
	defer turn.End()
	var raw []byte
	for i, it := range items {
		if i%256 == 0 && f.ctx.Err() != nil {
			return f.ctx.Err()
		}
		var err error
		if raw, err = f.appendMessage(raw[:0], it); err != nil {
			return err
		}
		f.size += f.codec().ItemSize(len(raw))
		if f.holding+len(raw) < maxHeld {
			f.held[it], f.holding = bytes.Clone(raw), f.holding+len(raw)
		}
		if err := turn.Next(len(raw)); err != nil {
			return err
		}
	}
	return nil
}

// measureMany is measure in several goroutines, without held. It waits for them.
func (f *protobufForm) measureMany(items []*cache.Item) error {
	const share = 512
	var next, size atomic.Int64
	workers := runtime.GOMAXPROCS(0)
	failed := make([]error, workers)
	var panicked atomic.Pointer[any]
	var all sync.WaitGroup
	for w := range workers {
		all.Go(func() {
			defer func() {
				if p := recover(); p != nil { // it fails this request, and not the server
					panicked.Store(&p)
					next.Store(int64(len(items)))
				}
			}()
			one, turn := &protobufForm{View: f.View, large: f.large, holding: maxHeld}, f.turns()
			for {
				to := int(next.Add(share))
				if from := to - share; from >= len(items) {
					break
				} else if failed[w] = one.measure(items[from:min(to, len(items))], turn); failed[w] != nil {
					next.Store(int64(len(items))) // stop the other goroutines
					break
				}
			}
			size.Add(int64(one.size))
		})
	}
	all.Wait()
	if p := panicked.Load(); p != nil {
		panic(*p)
	}
	f.size += int(size.Load())
	return errors.Join(failed...)
}

// take removes an item's message from held.
func (f *protobufForm) take(it *cache.Item) ([]byte, bool) {
	raw, ok := f.held[it]
	if ok {
		delete(f.held, it)
	}
	return raw, ok
}
