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

// A list in Protobuf is one message, whose length stands before its items, so that the size of each
// item must be known before the first byte is sent (docs/design/openapi.md). An item keeps the size once it was
// found out. What it takes to find out those of many that nobody asked for before is bounded by the
// deadline of the request, takes turns with the answers of other users, and holds next to nothing.

const (
	// maxHeld is how many bytes of messages are held that were made to tell their size.
	maxHeld = 2 << 20
	// aside is how many sizes are found out by one goroutine; those of more by as many as there are
	// processors.
	aside = 4096
	// largeList is how many items a list has of whose items nothing is kept: there would be no room.
	largeList = 64 << 10
)

// errSize is that of an item which is larger or smaller than the head of the list has said.
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
	if len(unknown) > aside {
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

// known is the size of an item's message, if it was found out before.
func (f *protobufForm) known(it *cache.Item) (int, bool) {
	if f.metadataOnly() || it.Corrupt != nil || !objects.Clean(f.r, it) {
		return 0, false
	}
	return it.Sized()
}

// turns is the pace of one goroutine of the answer. An answer is long by what it sends, not by this.
func (f *protobufForm) turns() *Pace {
	pace := f.pace
	pace.scope = nil
	return &pace
}

// measure adds the sizes of items. Their messages are held as long as they are few.
func (f *protobufForm) measure(items []*cache.Item, pace *Pace) error {
	defer pace.End()
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
		if err := pace.Next(len(raw)); err != nil {
			return err
		}
	}
	return nil
}

// measureMany is measure by several goroutines, which hold nothing. It waits for them.
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
				if p := recover(); p != nil { // it costs this request, not the server
					panicked.Store(&p)
					next.Store(int64(len(items)))
				}
			}()
			one, pace := &protobufForm{View: f.View, large: f.large, holding: maxHeld}, f.turns()
			for {
				to := int(next.Add(share))
				if from := to - share; from >= len(items) {
					break
				} else if failed[w] = one.measure(items[from:min(to, len(items))], pace); failed[w] != nil {
					next.Store(int64(len(items))) // the others need not go on
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

// take takes an item's message out of those that are held.
func (f *protobufForm) take(it *cache.Item) ([]byte, bool) {
	raw, ok := f.held[it]
	if ok {
		delete(f.held, it)
	}
	return raw, ok
}
