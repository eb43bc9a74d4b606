package cache

import (
	"errors"
	"math"
)

// Form returns a kept form, or makes it, and keeps it if there is room. It calls make once for a key as long as the form is
// kept; other callers wait for the result. make may call Form for other keys. Packing an item drops its forms; an item with a
// form that cannot be made again at any time is not packed, and each caller tries again to make one that failed. After a change
// of a definition, the first form of a new resource drops those of the former one.
func (it *Item) Form(key FormKey, make func(*Item) (any, error)) (any, error) {
	b := it.body.Load()
	f := find(b.forms(), key)
	if f == nil {
		if key.again() && !it.info().plain.Available() {
			it.use()
			return make(it)
		}
		m := b.keep()
		m.dropOutdated(key)
		f = keep(&m.forms, key)
	}
	ours := false
	f.once.Do(func() {
		defer f.done.Store(true)
		ours, f.err = true, errUnmade
		f.value, f.err = make(it)
		it.info().plain.Grow(f.size())
	})
	if f.err == errUnmade || f.err != nil && !ours && !key.again() {
		return make(it)
	}
	it.use() // last: that make reads the item is not a second use
	return f.value, f.err
}

// errUnmade is the error of a form whose make panicked, as it does if the item cannot be read: each caller makes it for itself.
var errUnmade = errors.New("the form of an object was not made")

// Bytes is Form for a form that is bytes.
func (it *Item) Bytes(key FormKey, make func(*Item) ([]byte, error)) ([]byte, error) {
	if b := it.body.Load(); b.message().is(key) {
		it.use()
		return b.message().unpack(), nil
	}
	v, err := it.Form(key, func(it *Item) (any, error) { return make(it) })
	if err != nil {
		return nil, err
	}
	b, _ := v.([]byte)
	return b, nil
}

// Has reports whether a form is kept, or is being made.
func (it *Item) Has(key FormKey) bool {
	b := it.body.Load()
	return find(b.forms(), key) != nil || b.message().is(key)
}

// Sized returns the number of bytes that NoteSize kept, if any.
func (it *Item) Sized() (n int, ok bool) {
	n = int(it.body.Load().sized.Load())
	return n - 1, n > 0
}

// NoteSize keeps the size of the Protobuf form that is made of the item's bytes in their stored version. The size stays even
// if the form is dropped: a list needs the sizes before it sends the first item.
func (it *Item) NoteSize(n int) {
	if n < math.MaxInt32 {
		it.body.Load().sized.Store(int32(n + 1))
	}
}

// AppendBytes appends a kept form that is bytes, and returns false if there is none.
func (it *Item) AppendBytes(dst []byte, key FormKey) ([]byte, bool) {
	b := it.body.Load()
	if m := b.message(); m.is(key) {
		it.use()
		return m.with.MustUnpack(dst, m.data), true
	}
	if f := find(b.forms(), key); f != nil && f.done.Load() && f.err == nil {
		if raw, ok := f.value.([]byte); ok {
			it.use()
			return append(dst, raw...), true
		}
	}
	return dst, false
}
