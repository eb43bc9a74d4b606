package conns

import "encoding/binary"

const (
	frameHead = 9    // bytes: a length of three, a type, flags, a stream
	bulkFrame = 8000 // bytes; from here on a data frame is one of many

	// Types of frames, and flags (RFC 9113, 6).
	dataFrame     = 0
	headersFrame  = 1
	resetFrame    = 3
	settingsFrame = 4
	goAwayFrame   = 7
	updateFrame   = 8
	endStream     = 1 // of data and headers
	ack           = 1 // of settings
	endHeaders    = 4 // of headers
	lastFlagged   = 9 // continuation frames
)

// head is the beginning of a frame.
type head [frameHead]byte

func (h *head) length() int        { return int(h[0])<<16 | int(h[1])<<8 | int(h[2]) }
func (h *head) kind() byte         { return h[3] }
func (h *head) has(flag byte) bool { return h[4]&flag != 0 }
func (h *head) stream() uint32     { return binary.BigEndian.Uint32(h[5:]) & largestWindow }

// outgoing knows where in which frame that which package http2 writes has got to.
type outgoing struct {
	left   int // bytes of the frame under way that are still to come
	head   head
	have   int  // bytes of head
	opened bool // headers go on in the next frame
	more   bool // others will follow soon
}

// isBetween says that no frame is under way, so that others may go out.
func (o *outgoing) isBetween() bool { return o.left == 0 && o.have == 0 && !o.opened }

// follow goes through p, and says where in it others may go out first; less than zero:
// nowhere.
func (f *HTTP2Conn) follow(p []byte, w *windows) (between int) {
	o, size := &f.outgoing, len(p)
	between = -1
	for {
		if between < 0 && o.isBetween() {
			between = size - len(p)
		}
		if len(p) == 0 {
			return between
		}
		if o.left > 0 {
			n := min(o.left, len(p))
			o.left -= n
			p = p[n:]
			continue
		}
		n := copy(o.head[o.have:], p)
		o.have += n
		p = p[n:]
		if o.have < frameHead {
			continue
		}
		h := &o.head
		o.have, o.left = 0, h.length()
		o.more = h.kind() == dataFrame && !h.has(endStream) && (o.left >= bulkFrame || f.whole.Load() > 0)
		switch h.kind() {
		case dataFrame:
			w.sent(h.stream(), h.length(), h.has(endStream))
		case headersFrame:
			o.opened = !h.has(endHeaders)
			if h.has(endStream) {
				w.sent(h.stream(), 0, true)
			}
		case lastFlagged:
			o.opened = !h.has(endHeaders)
		case resetFrame:
			w.reset(h.stream())
		case goAwayFrame:
			w.left.Store(true)
		}
	}
}

// search takes tokens out of what package http2 writes. A frame that may be one is
// kept until all of it has come.
func (f *HTTP2Conn) search(p []byte) []byte {
	if len(f.kept) > 0 {
		p = append(f.kept, p...)
		f.kept = nil
	}
	var out []byte
	from, at, left := 0, 0, f.left // of p: what is not in out yet, what is looked at; of the frame under way
	if f.have > 0 {                // begun before a token was sent, and so none
		h := f.head
		at = copy(h[f.have:], p)
		if f.have+at == frameHead {
			left = h.length()
		}
	}
	for at < len(p) {
		if left > 0 {
			n := min(left, len(p)-at)
			left -= n
			at += n
			continue
		}
		var h head
		n := copy(h[:], p[at:])
		if n < frameHead || h.kind() == dataFrame && h.length() <= tokenSize && len(p)-at < frameHead+h.length() {
			f.kept = append([]byte(nil), p[at:]...)
			return append(out, p[from:at]...)
		}
		end := at + frameHead + h.length()
		if h.kind() == dataFrame && h.length() <= tokenSize && f.windows.found(h.stream(), p[at+frameHead:end]) {
			out = append(out, p[from:at]...)
			from, at = end, end
			continue
		}
		at += frameHead
		left = h.length()
	}
	if from == 0 {
		return p
	}
	return append(out, p[from:]...)
}
