package graph

import "hash/maphash"

// ID represents a UID in less memory than its text.
type ID uint64

// seed is random because clients choose the UIDs of owners.
var seed = maphash.MakeSeed()

// IDOf returns the ID of a UID, a hash. Two UIDs may have the same ID (two of a million with a probability of
// 3 in 100 million), so the caller compares the texts before it acts upon an object.
func IDOf(uid string) ID { return ID(maphash.String(seed, uid)) }
