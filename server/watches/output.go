package watches

import (
	"errors"
	"sync"
)

// errGone: the client takes nothing any more.
var errGone = errors.New("client has gone")

// output takes whole frames. What was sent reaches the client with flush at the latest.
// An output is for one goroutine at a time.
type output interface {
	send(frame []byte) error
	flush() error
	// blocked says that something is kept because the client does not take it now. flush
	// waits for it.
	blocked() bool
	// postpones says that a frame is too large to be sent without waiting, and so is not to
	// be sent now.
	postpones(frame []byte) bool
}

// closer is an output that must be closed before the handler returns. complete says that
// nothing is missing from the answer.
type closer interface {
	output
	close(complete bool)
}

// chunkSize is how much of an answer is collected before it is written. While a client
// takes nothing, a chunk and as much again are kept for it alone; large frames, which all
// share, are not copied whole.
const chunkSize = 32 << 10

// chunks lends their memory.
var chunks = sync.Pool{New: func() any {
	b := make([]byte, 0, chunkSize+chunkSize/2)
	return &b
}}

func getChunk() *[]byte {
	b := chunks.Get().(*[]byte)
	*b = (*b)[:0]
	return b
}

func putChunk(b *[]byte) {
	if cap(*b) <= 2*chunkSize {
		chunks.Put(b)
	}
}
