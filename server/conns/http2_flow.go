package conns

import (
	"encoding/binary"
	"sync"
	"sync/atomic"
)

// What a client says of its flow-control windows (RFC 9113, 6.5.2, 6.9).
const (
	initialWindow = 65535 // bytes, of a stream and of a connection
	largestWindow = 1<<31 - 1

	// Package http2 is told of no more of a connection's window than this, and than a
	// part of it. Where that is no more than every client begins with, no stream of the
	// connection is taken over.
	toldMax   = 4 << 20
	toldShare = 16
)

// flowControl divides the windows of a client between package http2 and the streams that
// were taken over. Package http2 is told of a part of the connection's window, and of
// more as it uses it, so that nothing of the window is reserved for either.
type flowControl struct {
	split bool   // false: package http2 is told everything, and no stream is taken over
	wake  func() // has pendingUpdate called

	mu       sync.Mutex
	initial  int64                     // window of new streams
	pool     int64                     // of the connection's window: what package http2 was not told of
	told     int64                     // and what it was told of, and has not used
	most     int64                     // that told may be
	pending  bool                      // wake was called
	newest   uint32                    // stream
	taken    uint32                    // the newest that package http2 was not told of
	unsent   map[uint32]int64          // streams that nothing was sent to, and by how much their windows have grown
	sending  map[uint32]struct{}       // streams that package http2 has sent something to, and not the end
	searches map[*http2Stream]struct{} // streams whose tokens are under way
	streams  map[uint32]*http2Stream   // that were taken over
	unended  map[uint32]bool           // that go on although package http2 is to end them; whether it is about to
	waiting  int                       // of streams, for a window
	ignored  int                       // streams that were begun after the connection had been told to go away
	shrunk   bool                      // the client has made initial less once
	small    bool                      // the client has made its table of headers smaller once
	said     []setting                 // by the client, the last of each
	rests    bool                      // package http2 is told of nothing
	ends     bool                      // wake is called when unended becomes empty

	unsentMax int          // how many unsent streams there may be
	tokens    atomic.Int32 // how many searches there are, and how many streams are about to be ended unseen
	goneAway  atomic.Bool  // the client has been told to go away
	allowance atomic.Int64 // frames that the client may send because of what it was sent
}

// init makes the windows of a connection with at most so many streams at once. Package
// http2 refuses more with a reset for each, of which it queues so many only; clients that
// begin streams before they know how many they may are given some leave.
func (f *flowControl) init(streams uint32, split bool, wake func()) {
	f.split, f.wake = split, wake
	f.initial, f.told, f.most = initialWindow, initialWindow, initialWindow
	f.unsentMax = 4*int(streams) + 1024
	f.unsent, f.streams = map[uint32]int64{}, map[uint32]*http2Stream{}
	f.makeMaps()
}

func (f *flowControl) makeMaps() {
	f.searches, f.sending = map[*http2Stream]struct{}{}, map[uint32]struct{}{}
}

// allow counts bytes that the client is sent; see frameLimiter.
func (f *flowControl) allow(bytes int) { f.allowance.Add(2 + int64(bytes/bytesOfFrame)) }

// opened is told of a stream's first frame. Streams that package http2 will take no notice
// of are not kept. Errors: errFlood.
func (f *flowControl) opened(id uint32) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id <= f.newest {
		return nil
	}
	f.newest = id
	if f.goneAway.Load() {
		if f.ignored++; f.ignored > ignoredMax {
			return errFlood
		}
		return nil
	}
	if len(f.unsent) >= f.unsentMax {
		return errFlood // they pile up: nothing gets out to this client
	}
	f.unsent[id] = 0
	return nil
}

// crowded says whether a stream that is begun now is one too many for a client that may have so
// many: whoever serves them, they count together. No stream is counted any more of which the
// client may know the end.
func (f *flowControl) crowded(most int) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !f.goneAway.Load() && len(f.unsent)+len(f.sending)+len(f.streams) >= most
}

// skip begins a stream that nobody serves.
func (f *flowControl) skip(id uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.newest, f.taken = id, id
}

// latest is the newest stream that was begun.
func (f *flowControl) latest() uint32 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.newest
}

// take begins a stream that package http2 is not told of. It is false where no stream can be
// taken over, or the client has been told to go away.
func (f *flowControl) take(s *http2Stream) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.split || f.most <= initialWindow || f.small || f.goneAway.Load() || s.id <= f.newest {
		return false
	}
	f.newest, f.taken = s.id, s.id
	s.window = f.initial
	f.streams[s.id] = s
	return true
}

// goAway is told that the client is told to go away, and that nothing is done about streams
// after last, as far as package http2 knows. It returns up to which something is, and of those
// before which are not served nevertheless: package http2 was given them too late.
func (f *flowControl) goAway(last uint32) (served uint32, but []uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.goneAway.Store(true)
	for id := range f.unsent {
		if id > last && id < f.taken {
			but = append(but, id)
			delete(f.unsent, id)
		}
	}
	return max(last, f.taken), but
}

// overflows says whether a window that package http2 does not know of would become larger than
// one may be if it grew by n bytes.
func (f *flowControl) overflows(id uint32, n int64) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == 0 {
		return f.split && f.pool+f.told+n > largestWindow
	}
	s := f.streams[id]
	return s != nil && s.found == nil && s.window+n > largestWindow
}

// mayBlock says whether an answer of n bytes may have to wait for the client to take
// something, however many others are under way.
func (f *flowControl) mayBlock(n int64) bool {
	const others = 128
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.shrunk || n > f.initial || n > f.told/others
}

// updated is told that a window has grown by n bytes. It returns how much of that
// package http2 is to be told of.
func (f *flowControl) updated(id uint32, n int64) int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if id == 0 {
		if !f.split {
			f.told = min(f.told+n, largestWindow)
			return n
		}
		f.pool = min(f.pool+n, largestWindow)
		f.most = max(f.most, min((f.pool+f.told)/toldShare, toldMax))
		f.signal()
		return f.tell()
	}
	if s := f.streams[id]; s != nil {
		s.window = min(s.window+n, largestWindow)
		s.signal()
		return 0
	}
	if have, ok := f.unsent[id]; ok {
		f.unsent[id] = min(have+n, largestWindow)
	}
	return n
}

// signal wakes the streams that wait for the connection's window. The caller holds f.mu,
// as that of tell and of end.
func (f *flowControl) signal() {
	if f.waiting > 0 {
		for _, s := range f.streams {
			s.signal()
		}
	}
}

// tell returns how much more of the connection's window package http2 is told of now.
func (f *flowControl) tell() int64 {
	if f.rests {
		return 0
	}
	n := max(0, min(f.pool, f.most-f.told))
	f.pool -= n
	f.told += n
	return n
}

// pendingUpdate is what package http2 is to be told of after wake was called.
func (f *flowControl) pendingUpdate() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.pending {
		return 0
	}
	f.pending = false
	return f.tell()
}

// settings is told of a frame of settings. Package http2 gets it as well, and answers
// those that are wrong.
func (f *flowControl) settings(payload []byte) {
	const setting = settingSize
	f.mu.Lock()
	defer f.mu.Unlock()
	for ; len(payload) >= setting; payload = payload[setting:] {
		value := int64(binary.BigEndian.Uint32(payload[2:]))
		f.remember(binary.BigEndian.Uint16(payload), uint32(value))
		// Who makes the table smaller may expect the next headers to say that they know so,
		// which are to be those of package http2: it keeps the table.
		f.small = f.small || binary.BigEndian.Uint16(payload) == tableSize && value < hpackTable
		if binary.BigEndian.Uint16(payload) != windowSize || value > largestWindow {
			continue
		}
		for _, s := range f.streams {
			s.window += value - f.initial
			s.signal()
		}
		f.shrunk = f.shrunk || value < f.initial
		f.initial = value
	}
}

// sent is told that package http2 sends n bytes of a stream's body, or its end.
func (f *flowControl) sent(id uint32, n int, end bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if _, first := f.unsent[id]; first && !end {
		f.sending[id] = struct{}{}
	}
	delete(f.unsent, id)
	if f.told -= int64(n); f.told < f.most/2 && f.pool > 0 && !f.pending {
		f.pending = true
		f.wake()
	}
	if end {
		f.end(id)
	}
}

// reset is told that one side wants no more of a stream.
func (f *flowControl) reset(id uint32) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.unsent, id)
	f.end(id)
}

func (f *flowControl) end(id uint32) {
	delete(f.sending, id)
	if s := f.streams[id]; s != nil {
		delete(f.streams, id)
		s.ended = true
		s.signal()
		if s.gone != nil {
			s.gone()
		}
	}
}
