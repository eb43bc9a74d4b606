// Package yield lets requests continue while a goroutine works on a large object.
//
// runtime.Gosched does not suffice. The runtime polls the network when a processor finds no goroutine to run, but it always finds a
// goroutine that yields. So while as many goroutines yield as there are processors, it notices a new request only after ten milliseconds.
// Therefore Now waits until a processor has polled the network.
package yield

import "runtime"

// Now lets other goroutines run, also those that wait for input that has arrived from the network. Call it about three times a millisecond
// in work that takes several milliseconds. A call takes some microseconds.
func Now() {
	awaitPoll()
	runtime.Gosched() // the same poll may have made this goroutine runnable before others
}

// textBits makes Within yield after each 64 KB of text, that is within half a millisecond.
const textBits = 16

// Within calls Now if the part of a text between two indexes crosses a multiple of 64 KB.
func Within(from, to int) {
	if (from^to)>>textBits != 0 {
		Now()
	}
}

// piece is the number of bytes that Append copies at a time, which takes less than half a millisecond.
const piece = 512 << 10

// Append appends b to dst. It copies a large b in pieces, and calls Now between them: the runtime cannot interrupt the copying of a slice.
func Append(dst, b []byte) []byte {
	for len(b) > piece {
		dst = append(dst, b[:piece]...)
		b = b[piece:]
		Now()
	}
	return append(dst, b...)
}
