package file

import (
	"slices"
	"sync/atomic"
)

// Revisions is a set of revisions, each of which can be taken once. Revisions of live objects are mostly close together, so the
// set has a map of words with a bit for each: a fraction of the memory and of the cache misses of a sorted list.
type Revisions struct {
	at    map[int64]int32 // index of the word of 64 revisions, by the first of them
	words []uint64
}

// Add adds revisions. It may run neither twice nor with Take at the same time.
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

// Take removes a revision, and reports whether it was in the set. Goroutines may call it at the same time.
func (r *Revisions) Take(revision int64) bool {
	n, known := r.at[revision&^63]
	if !known {
		return false
	}
	bit := uint64(1) << (revision & 63)
	return atomic.AndUint64(&r.words[n], ^bit)&bit != 0
}

// Left returns the revisions that were not taken, in order.
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
