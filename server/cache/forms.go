package cache

import (
	"sync/atomic"

	"github.com/rowlock/rowlock/server/kinds"
)

// Form returns a kept form, or makes it, and keeps it where there is room. make is called once for a
// key as long as the form is kept; others that ask meanwhile wait for it. It may ask for other forms.
// Forms are dropped when the item is packed, but for those that cannot be made again at any time,
// which keep the item from being packed.
func (it *Item) Form(key FormKey, make func(*Item) (any, error)) (any, error) {
	b := it.body.Load()
	f := find(b.forms(), key)
	if f == nil {
		if key.again() && !it.home.plain.Room() {
			it.use()
			return make(it)
		}
		f = keep(&b.keep().forms, key)
	}
	f.once.Do(func() {
		f.value, f.err = make(it)
		f.done.Store(true)
		it.home.plain.Grow(f.size())
	})
	it.use() // last: reading the item to make a form is no second use
	return f.value, f.err
}

// again says that the form can be made at any time, from the item alone: not so where a webhook was
// asked, and where who made it did not say.
func (k FormKey) again() bool {
	if k.Form == FormJSON {
		r, ok := k.For.(*kinds.Resource)
		return ok && !r.LoadMayFail()
	}
	return k.Form != FormOther
}

// Bytes is Form for forms that are bytes.
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

// Has says that a form was made, or is being made.
func (it *Item) Has(key FormKey) bool {
	b := it.body.Load()
	return find(b.forms(), key) != nil || b.message().is(key)
}

// find finds the entry of a key, or nil.
func find[K comparable](list *form[K], key K) *form[K] {
	for f := list; f != nil; f = f.next {
		if f.key == key {
			return f
		}
	}
	return nil
}

// keep finds the entry of a key in a list that only grows at its head, or adds it.
func keep[K comparable](list *atomic.Pointer[form[K]], key K) *form[K] {
	var fresh *form[K]
	for {
		head := list.Load()
		for f := head; f != nil; f = f.next {
			if f.key == key {
				return f
			}
		}
		if fresh == nil {
			fresh = &form[K]{key: key}
		}
		fresh.next = head
		if list.CompareAndSwap(head, fresh) {
			return fresh
		}
	}
}
