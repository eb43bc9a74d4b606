package conns

import (
	"context"
	"encoding/binary"
	"errors"
	"sync"
	"sync/atomic"
)

// What a client says of its windows (RFC 9113, 6.5.2, 6.9).
const (
	initialWindow = 65535 // bytes, of a stream and of a connection
	largestWindow = 1<<31 - 1

	// Package http2 knows of no more of a connection's window than this, and than a
	// part of it. Where that is no more than every client begins with, nothing is
	// written beside package http2.
	mostKnown  = 4 << 20
	knownShare = 16
)

// errEnded: the stream takes nothing any more.
var errEnded = errors.New("the stream has ended")

// windows are those of a client of HTTP/2, as far as frames beside those of package
// http2 fill them. Of a connection's window package http2 knows a little only, and is
// told of more as it needs it: so nothing of it is set aside for either.
type windows struct {
	wake func() // has next called

	mu      sync.Mutex
	initial int64                // of streams
	pool    int64                // of the connection's window, what package http2 does not know of
	known   int64                // and what it knows of
	most    int64                // that known may be
	asked   bool                 // wake was called
	newest  uint32               // stream
	young   map[uint32]int64     // streams that nothing was sent to, and by how much their windows have grown
	claims  map[*framed]struct{} // that look for their streams
	framed  map[uint32]*framed
	waiting int  // of framed
	ignored int  // streams that were begun after the connection had been told to end
	shrunk  bool // initial was more once

	youngest int          // how many young streams there may be
	searched atomic.Int32 // how many claims there are
	left     atomic.Bool  // the client has been told to go away
	earned   atomic.Int64 // frames that the client may send for what it was sent
}

// newWindows makes those of a connection with so many streams at once. Package http2
// refuses more with a reset for each, of which it queues so many only; some leave is
// given to clients that begin before they know how many they may.
func newWindows(streams uint32, wake func()) *windows {
	return &windows{
		youngest: 4*int(streams) + 1024,
		wake:     wake, initial: initialWindow, known: initialWindow, most: initialWindow,
		young: map[uint32]int64{}, claims: map[*framed]struct{}{}, framed: map[uint32]*framed{},
	}
}

// searches says that tokens may be under way.
func (w *windows) searches() bool { return w.searched.Load() > 0 }

// opened is told of a stream's first frame. Those that package http2 will take no
// notice of are not kept. Errors: errFlood.
func (w *windows) opened(id uint32) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id <= w.newest {
		return nil
	}
	w.newest = id
	if w.left.Load() {
		if w.ignored++; w.ignored > ignoredMax {
			return errFlood
		}
		return nil
	}
	if len(w.young) >= w.youngest {
		return errFlood // they pile up: nothing gets out to this client
	}
	w.young[id] = 0
	return nil
}

// mayBlock says whether an answer of n bytes may have to wait for the client to take
// something, however many others are under way.
func (w *windows) mayBlock(n int64) bool {
	const others = 128
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.shrunk || n > w.initial || n > w.known/others
}

// updated is told that a window has grown by n bytes, and returns how much of it
// package http2 is to know.
func (w *windows) updated(id uint32, n int64) int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if id == 0 {
		w.pool = min(w.pool+n, largestWindow)
		w.most = max(w.most, min((w.pool+w.known)/knownShare, mostKnown))
		w.signal()
		return w.tell()
	}
	if s := w.framed[id]; s != nil {
		s.window = min(s.window+n, largestWindow)
		s.signal()
		return 0
	}
	if have, ok := w.young[id]; ok {
		w.young[id] = min(have+n, largestWindow)
	}
	return n
}

// signal tells those that wait for the connection's window. w.mu is held, as for tell.
func (w *windows) signal() {
	if w.waiting > 0 {
		for _, s := range w.framed {
			s.signal()
		}
	}
}

// tell is what package http2 is to be told of now.
func (w *windows) tell() int64 {
	n := max(0, min(w.pool, w.most-w.known))
	w.pool -= n
	w.known += n
	return n
}

// next is what package http2 is to be told of after wake was called.
func (w *windows) next() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.asked {
		return 0
	}
	w.asked = false
	return w.tell()
}

// set is told of a frame of settings, of which package http2 judges.
func (w *windows) set(settings []byte) {
	const setting, windowSize = 6, 4
	w.mu.Lock()
	defer w.mu.Unlock()
	for ; len(settings) >= setting; settings = settings[setting:] {
		value := int64(binary.BigEndian.Uint32(settings[2:]))
		if binary.BigEndian.Uint16(settings) != windowSize || value > largestWindow {
			continue
		}
		for _, s := range w.framed {
			s.window += value - w.initial
			s.signal()
		}
		w.shrunk = w.shrunk || value < w.initial
		w.initial = value
	}
}

// sent is told that package http2 sends n bytes of a stream's body, or its end.
func (w *windows) sent(id uint32, n int, end bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.young, id)
	if w.known -= int64(n); w.known < w.most/2 && w.pool > 0 && !w.asked {
		w.asked = true
		w.wake()
	}
	if end {
		w.ended(id)
	}
}

// reset is told that a client wants no more of a stream.
func (w *windows) reset(id uint32) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.young, id)
	w.ended(id)
}

func (w *windows) ended(id uint32) {
	if s := w.framed[id]; s != nil {
		delete(w.framed, id)
		s.ended = true
		s.signal()
	}
}

// claim has a stream looked for.
func (w *windows) claim(s *framed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.most <= initialWindow || w.initial < tokenSize {
		return false
	}
	w.claims[s] = struct{}{}
	w.searched.Add(1)
	return true
}

// unclaim gives up.
func (w *windows) unclaim(s *framed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.forget(s)
}

func (w *windows) forget(s *framed) {
	if _, ok := w.claims[s]; ok {
		delete(w.claims, s)
		w.searched.Add(-1)
	}
}

// found says whether a frame's payload is a token, or a part of one, that says
// which stream is whose. Then it is not for the client. A window may have cut it, but
// hardly so that less than a few bytes are left.
func (w *windows) found(id uint32, payload []byte) bool {
	const few = 4
	w.mu.Lock()
	defer w.mu.Unlock()
	for s := range w.claims {
		if s.id != 0 && s.id != id || !s.token.continues(s.seen, payload) || len(payload) < few && len(payload) < tokenSize-s.seen {
			continue
		}
		s.id, s.seen = id, s.seen+len(payload)
		w.known -= int64(len(payload)) // it thinks them sent
		w.pool += int64(len(payload))
		if s.seen == tokenSize {
			w.forget(s)
			s.window = w.initial + w.young[id]
			delete(w.young, id)
			w.framed[id] = s
			close(s.found)
		}
		return true
	}
	return false
}

// grant says how many of n bytes may be sent now, and counts them.
func (w *windows) grant(s *framed, n int) (int, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if s.ended {
		return 0, errEnded
	}
	n = int(max(0, min(int64(n), s.window, w.pool)))
	s.window -= int64(n)
	w.pool -= int64(n)
	return n, nil
}

// wait waits until more may be granted, or the context or the client's time has ended.
func (w *windows) wait(ctx context.Context, s *framed) error {
	w.mu.Lock()
	w.waiting++
	may := s.ended || min(s.window, w.pool) > 0
	w.mu.Unlock()
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.waiting--
	}()
	if may {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	select {
	case <-s.grown:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// over says that a stream has ended, for whatever reason.
func (w *windows) over(s *framed) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return s.ended
}

// leave forgets a stream.
func (w *windows) leave(s *framed) {
	w.mu.Lock()
	defer w.mu.Unlock()
	s.ended = true
	if w.framed[s.id] == s {
		delete(w.framed, s.id)
	}
}
