package foreign

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// maxHeld bounds the memory of the keys of a source while it is read, in bytes. It is enough for
// two to three million keys of the usual length.
const maxHeld = 512 << 20

// heldBeside is the memory of an entry in the map of Newest in addition to its key.
const heldBeside = 96

// Newest remembers for each live key of a log where its newest value lies, for sources
// that are ordered by revision while their keys are wanted in order. It holds keys and no
// values, and refuses to hold more than a bound. T is small: a revision, a row's number.
type Newest[T any] struct {
	at   map[string]T
	held int64
	most int64 // of held; 0: maxHeld
}

// Set records the position of a key's newest value. If the keys are too many for memory, the error names the
// remedy.
func (n *Newest[T]) Set(key []byte, at T) error {
	if n.at == nil {
		n.at = make(map[string]T)
	}
	if _, known := n.at[string(key)]; !known {
		if n.held += int64(len(key)) + heldBeside; n.held > cmp.Or(n.most, maxHeld) {
			return fmt.Errorf("it has more than %d keys, and at most %d MiB of keys are held in memory", len(n.at), cmp.Or(n.most, maxHeld)>>20)
		}
	}
	n.at[string(key)] = at
	return nil
}

// Delete records that a key was deleted.
func (n *Newest[T]) Delete(key []byte) {
	if _, known := n.at[string(key)]; known {
		n.held -= int64(len(key)) + heldBeside
		delete(n.at, string(key))
	}
}

// Keys returns the live keys in bytewise order.
func (n *Newest[T]) Keys() []string { return slices.Sorted(maps.Keys(n.at)) }

// At returns where the newest value of a live key lies.
func (n *Newest[T]) At(key string) T { return n.at[key] }
