package jsonpatch

import "slices"

// list is a list of nodes in blocks, so that putting one in or taking one out moves a
// block's worth of the others at most, and steps over the blocks before it.
type list struct {
	blocks [][]*node
	n      int
}

// block is the capacity of a new block of a list.
const block = 1024

// push adds a node at the end.
func (l *list) push(n *node) {
	if last := len(l.blocks) - 1; last >= 0 && len(l.blocks[last]) < block {
		l.blocks[last] = append(l.blocks[last], n)
	} else {
		l.blocks = append(l.blocks, []*node{n})
	}
	l.n++
}

// find returns the place of the element of an index; right behind the last one there is none.
func (l *list) find(i int) (b, at int) {
	for b = range l.blocks {
		if i < len(l.blocks[b]) {
			return b, i
		}
		i -= len(l.blocks[b])
	}
	return len(l.blocks), 0
}

func (l *list) get(i int) *node {
	b, at := l.find(i)
	return l.blocks[b][at]
}

func (l *list) set(i int, n *node) {
	b, at := l.find(i)
	l.blocks[b][at] = n
}

func (l *list) insert(i int, n *node) {
	if i == l.n {
		l.push(n)
		return
	}
	b, at := l.find(i)
	l.blocks[b] = slices.Insert(l.blocks[b], at, n)
	l.n++
	if full := l.blocks[b]; len(full) >= 2*block {
		l.blocks[b] = full[:block:block]
		l.blocks = slices.Insert(l.blocks, b+1, slices.Clone(full[block:]))
	}
}

func (l *list) remove(i int) {
	b, at := l.find(i)
	l.blocks[b] = slices.Delete(l.blocks[b], at, at+1)
	l.n--
	if len(l.blocks[b]) == 0 {
		l.blocks = slices.Delete(l.blocks, b, b+1)
	}
}

// all calls f for each element until it fails.
func (l *list) all(f func(i int, n *node) error) error {
	i := 0
	for _, b := range l.blocks {
		for _, n := range b {
			if err := f(i, n); err != nil {
				return err
			}
			i++
		}
	}
	return nil
}
