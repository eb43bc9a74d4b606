package conns

import (
	"context"
	"errors"
)

// errEnded: the stream takes nothing any more.
var errEnded = errors.New("the stream has ended")

// search has the token of a stream looked for in what package http2 writes, until
// endSearch is called or the token is found. It says whether the connection's streams can
// be taken over at all.
func (f *flowControl) search(s *http2Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.split || f.most <= initialWindow || f.initial < tokenSize {
		return false
	}
	f.searches[s] = struct{}{}
	f.tokens.Add(1)
	return true
}

// searching says that tokens may be under way.
func (f *flowControl) searching() bool { return f.tokens.Load() > 0 }

func (f *flowControl) endSearch(s *http2Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.forgetSearch(s)
}

func (f *flowControl) forgetSearch(s *http2Stream) {
	if _, ok := f.searches[s]; ok {
		delete(f.searches, s)
		f.tokens.Add(-1)
	}
}

// matchToken says whether a frame's payload is a token, or a part of one. Then it shows
// which stream is whose, and is not for the client; whole is that stream, once all of its
// token has come. A window may have cut the token, but
// hardly so that less than a few bytes are left: then it is not found, which is the
// client's doing.
func (f *flowControl) matchToken(id uint32, payload []byte) (is bool, whole *http2Stream) {
	const few = 4
	f.mu.Lock()
	defer f.mu.Unlock()
	for s := range f.searches {
		if s.id != 0 && s.id != id || !s.token.continues(s.seen, payload) {
			continue
		}
		if len(payload) < few && len(payload) < tokenSize-s.seen {
			s.cut = s.cut || len(payload) > 0
			continue
		}
		s.id, s.seen = id, s.seen+len(payload)
		f.told -= int64(len(payload)) // package http2 thinks that they are sent
		f.pool += int64(len(payload))
		if s.seen == tokenSize {
			f.forgetSearch(s)
			s.window = f.initial + f.unsent[id]
			delete(f.unsent, id)
			delete(f.sending, id)
			f.streams[id] = s
			whole = s
		}
		return true, whole
	}
	return false, nil
}

// grant says how many of n bytes of a stream may be sent now, and counts them.
func (f *flowControl) grant(s *http2Stream, n int) (int, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.ended {
		return 0, errEnded
	}
	n = int(max(0, min(int64(n), s.window, f.pool)))
	s.window -= int64(n)
	f.pool -= int64(n)
	return n, nil
}

// awaitWindow waits until more may be granted, or ctx ends, or the client has taken
// nothing for too long.
func (f *flowControl) awaitWindow(ctx context.Context, s *http2Stream) error {
	if f.beginWait(s) {
		defer f.endWait()
	} else {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, clientPatience)
	defer cancel()
	select {
	case <-s.grown:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// beginWait says whether there is something to wait for.
func (f *flowControl) beginWait(s *http2Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if s.ended || min(s.window, f.pool) > 0 {
		return false
	}
	f.waiting++
	if s.grown == nil {
		s.grown = make(chan struct{}, 1)
	}
	return true
}

func (f *flowControl) endWait() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.waiting--
}

// cutShort says that the token of a stream may have been cut so that it is not found.
func (f *flowControl) cutShort(s *http2Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.cut
}

// seenEnd says that a stream has ended, for whatever reason.
func (f *flowControl) seenEnd(s *http2Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return s.ended
}

// remove forgets a stream whose handler returns.
func (f *flowControl) remove(s *http2Stream) {
	f.mu.Lock()
	defer f.mu.Unlock()
	s.ended = true
	if f.streams[s.id] == s {
		delete(f.streams, s.id)
	}
}
