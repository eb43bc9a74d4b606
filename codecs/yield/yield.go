// Package yield lets requests continue while a goroutine works on a large object.
//
// runtime.Gosched does not suffice. The runtime polls the network when a processor finds no goroutine to run, and one that yields can
// always be found. While as many goroutines yield as there are processors, the runtime notices a request after ten milliseconds. So
// Now waits until a processor has polled the network.
package yield

import "runtime"

// Now lets other goroutines continue, also those for which something has arrived from the network. Work that takes several
// milliseconds calls it three times a millisecond or so. A call takes some microseconds.
func Now() {
	awaitPoll()
	runtime.Gosched() // the goroutine may have become runnable before those that the same poll found
}

// textBits makes Within yield after each 64 KB, which take less than half a millisecond.
const textBits = 16

// Within calls Now if a part of a text, from one index to another, crosses a limit of 64 KB.
func Within(from, to int) {
	if (from^to)>>textBits != 0 {
		Now()
	}
}

// piece is the number of bytes that Append copies at a time, in less than half a millisecond.
const piece = 512 << 10

// Append appends bytes to dst, and calls Now between the pieces of many. The runtime cannot interrupt the copying of a slice.
func Append(dst, b []byte) []byte {
	for len(b) > piece {
		dst = append(dst, b[:piece]...)
		b = b[piece:]
		Now()
	}
	return append(dst, b...)
}
