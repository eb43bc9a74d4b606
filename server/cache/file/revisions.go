package file

import (
	"slices"
	"sync/atomic"
)

// Revisions is a set of revisions of which each can be taken once. Those of live objects mostly lie close together, so it
// has a bit for each, in words of 64 that are found by a map: a fraction of what a sorted list takes, and of its misses.
type Revisions struct {
	at    map[int64]int32 // where the word of 64 revisions lies, by the first of them
	words []uint64
}

// Add puts revisions into the set. One caller at a time, and none of Take meanwhile.
func (r *Revisions) Add(some []int64) {
	if r.at == nil {
		r.at = map[int64]int32{}
	}
	for _, revision := range some {
		n, known := r.at[revision&^63]
		if !known {
			n = int32(len(r.words))
			r.at[revision&^63] = n
			r.words = append(r.words, 0)
		}
		r.words[n] |= 1 << (revision & 63)
	}
}

// Take takes a revision out of the set, and says whether it was there. Several may call it at once.
func (r *Revisions) Take(revision int64) bool {
	n, known := r.at[revision&^63]
	if !known {
		return false
	}
	bit := uint64(1) << (revision & 63)
	return atomic.AndUint64(&r.words[n], ^bit)&bit != 0
}

// Left are those that nobody took, in order.
func (r *Revisions) Left() (rest []int64) {
	for first, n := range r.at {
		for word, i := r.words[n], int64(0); word != 0; word, i = word>>1, i+1 {
			if word&1 != 0 {
				rest = append(rest, first+i)
			}
		}
	}
	slices.Sort(rest)
	return rest
}
