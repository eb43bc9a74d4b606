package watches

import (
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/rowlock/rowlock/server/wire"
)

// writeTimeout is for how long a client may read nothing before its watch ends.
const writeTimeout = 30 * time.Second

// errGone: the client has disconnected.
var errGone = errors.New("client has gone")

// output takes whole frames. flush brings everything to the client that was sent before. An output is for one goroutine at a
// time.
type output interface {
	send(frame []byte) error
	flush() error
	// blocked means that the output keeps bytes that the client does not read now. flush waits for the client.
	blocked() bool
	// postpones means that a frame of n bytes is too large to be sent without waiting, so the caller must not send it now.
	postpones(size int) bool
	// splits means that a frame may be sent in several pieces.
	splits() bool
}

// closer is an output that must be closed before the handler returns. complete means that the answer is whole.
type closer interface {
	output
	close(complete bool)
}

// chunkSize is the size of the buffer for frames before a write. A client that reads nothing makes the server hold at
// most two chunks; large frames, which all watches share, are not copied whole.
const chunkSize = 32 << 10

// chunks lends their memory.
var chunks = sync.Pool{New: func() any {
	return new(make([]byte, 0, chunkSize+chunkSize/2))
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

// directOutput writes to a wire.Stream.
type directOutput struct {
	stream  wire.Stream
	w       http.ResponseWriter // of the request
	counter counter             // counts the bytes written; nil until slim has found it
	chunk   *[]byte             // collected frames; nil: none
	noWait  bool                // the writer is a goroutine of the cache
	kept    bool                // stream keeps bytes that the client did not read
	bytes   int64               // written to stream
}

// send adds a frame to the next chunk, or writes several.
func (o *directOutput) send(frame []byte) error {
	for len(frame) > chunkSize {
		if err := o.add(frame[:chunkSize]); err != nil {
			return err
		}
		frame = frame[chunkSize:]
	}
	return o.add(frame)
}

func (o *directOutput) add(part []byte) error {
	if o.chunk == nil {
		o.chunk = getChunk()
		*o.chunk = append(*o.chunk, make([]byte, wire.Headroom)...)
	}
	*o.chunk = append(*o.chunk, part...)
	if len(*o.chunk) < chunkSize {
		return nil
	}
	return o.flush()
}

// flush writes the collected chunk. It waits for the client unless noWait is set.
func (o *directOutput) flush() (err error) {
	switch {
	case o.chunk != nil:
		o.bytes += int64(len(*o.chunk) - wire.Headroom)
		if o.noWait {
			var blocked bool
			blocked, err = o.stream.TryWrite(o.chunk)
			o.kept = o.kept || blocked
		} else {
			o.kept, err = false, o.stream.Write(o.chunk)
		}
		putChunk(o.chunk)
		o.chunk = nil
	case o.kept && !o.noWait:
		o.kept, err = false, o.stream.Flush()
	}
	if err != nil {
		return errGone
	}
	return nil
}

func (o *directOutput) blocked() bool { return o.kept }

// postpones leaves a large frame to work, which sends it in parts and waits: otherwise the server would hold the unread rest for
// this client alone.
func (o *directOutput) postpones(size int) bool {
	if o.noWait && size > 2*chunkSize {
		o.kept = true
		return true
	}
	return false
}

func (o *directOutput) splits() bool { return true }

func (o *directOutput) close(complete bool) {
	o.stream.Close(complete)
	if o.counter == nil {
		o.counter = counterOf(o.w)
	}
	if o.counter != nil {
		o.counter.Count(o.bytes)
	}
}

// counter is the filter's writer that counts the bytes which the direct output wrote past it.
type counter interface{ Count(bytes int64) }

func counterOf(w http.ResponseWriter) counter {
	for w != nil {
		if c, ok := w.(counter); ok {
			return c
		}
		u, ok := w.(interface{ Unwrap() http.ResponseWriter })
		if !ok {
			return nil
		}
		w = u.Unwrap()
	}
	return nil
}
