package watches

import (
	"net/http"

	"github.com/rowlock/rowlock/server/wire"
)

// directOutput writes to a wire.Stream.
type directOutput struct {
	stream  wire.Stream
	w       http.ResponseWriter // of the request
	counter counter             // is told how much was written; nil until slim has found it
	chunk   *[]byte             // collected frames; nil: none
	noWait  bool                // the writer is a goroutine of the cache
	kept    bool                // stream keeps something that the client did not take
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

// flush writes the chunk that has been collected. It waits for the client unless noWait
// is set.
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

// postpones: what a slow client does not take of a large frame would be kept for it alone.
// The handler sends that frame in parts, and waits.
func (o *directOutput) postpones(frame []byte) bool {
	if o.noWait && len(frame) > 2*chunkSize {
		o.kept = true
		return true
	}
	return false
}

func (o *directOutput) close(complete bool) {
	o.stream.Close(complete)
	if o.counter == nil {
		o.counter = counterOf(o.w)
	}
	if o.counter != nil {
		o.counter.Count(o.bytes)
	}
}

// counter is the one of the writers around the request's own that is told what was written
// past them.
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
