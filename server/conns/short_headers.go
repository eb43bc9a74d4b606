package conns

import (
	"bytes"
	"encoding/binary"
	"io"
	"slices"
	"time"

	"golang.org/x/net/http/httpguts"
	"golang.org/x/net/http2/hpack"
)

const (
	padded   = 8  // a flag of data and headers
	priority = 32 // a flag of headers

	dependency = 5 // bytes of headers with that flag: on which stream, and by how much
)

// headerBlock is what the headers of a request, or its trailers, consist of.
type headerBlock struct {
	limit    uint32 // bytes of fields; what comes behind the field that exceeds them is left out
	open     bool   // continuations follow
	id       uint32
	end      bool   // nothing follows the block
	priority []byte // dependency bytes, or none
	fields   []hpack.HeaderField
	size     uint32
	checked  int // fields that unsound has looked at
}

func (b *headerBlock) add(f hpack.HeaderField) {
	if b.size > b.limit {
		return // package http2 refuses the request by what it has got
	}
	b.size += f.Size()
	b.fields = append(b.fields, f)
}

// begin notes what the head of a frame of headers, and its payload, say of the block.
func (b *headerBlock) begin(h *head, payload []byte) {
	b.open, b.id, b.end = true, h.stream(), h.has(endStream)
	b.priority = b.priority[:0]
	if h.has(priority) {
		if h.has(padded) {
			payload = payload[1:]
		}
		b.priority = append(b.priority, payload[:dependency]...)
	}
}

// selfish says that a stream is to depend on itself, which package http2 refuses.
func (b *headerBlock) selfish() bool {
	return len(b.priority) > 0 && binary.BigEndian.Uint32(b.priority)&largestWindow == b.id
}

func (b *headerBlock) reset() {
	clear(b.fields)
	if b.fields = b.fields[:0]; cap(b.fields) > 64 {
		b.fields = nil
	}
	b.open, b.size, b.checked = false, 0, 0
}

// unsound says that one of the fields that have come is none. Package http2 takes no more of
// such a block.
func (b *headerBlock) unsound() bool {
	for ; b.checked < len(b.fields); b.checked++ {
		f := &b.fields[b.checked]
		if f.IsPseudo() && httpguts.ValidHeaderFieldValue(f.Value) && (b.checked == 0 || b.fields[b.checked-1].IsPseudo()) {
			continue
		}
		if !validField(f) {
			return true
		}
	}
	return false
}

// sound says that package http2 looks at what the block is for. A stream that is begun with
// another is none for it: it is reset, and not counted as begun.
func (b *headerBlock) sound() bool {
	if b.unsound() {
		return false
	}
	n := slices.IndexFunc(b.fields, func(f hpack.HeaderField) bool { return !f.IsPseudo() })
	if n < 0 {
		n = len(b.fields)
	}
	for i, f := range b.fields[:n] {
		again := slices.ContainsFunc(b.fields[:i], func(other hpack.HeaderField) bool { return other.Name == f.Name })
		if again || !slices.Contains(pseudoHeaders, f.Name) || f.Name == ":status" && n > 1 {
			return false
		}
	}
	return true
}

var pseudoHeaders = []string{":method", ":path", ":scheme", ":authority", ":protocol", ":status"}

// misplaced is a frame for which package http2 tells the client that it breaks the protocol,
// after which it reads no more: a body of no stream.
var misplaced = []byte{0, 0, 0, dataFrame, 0, 0, 0, 0, 0}

// follow is told of the head of each frame. Where it took the frame, it has put into
// r what package http2 gets instead, or nothing.
func (s *shorts) follow(r *frameReader, from io.Reader, f *flowControl, h *head) (took bool, err error) {
	kind, id, n := h.kind(), h.stream(), h.length()
	if n > s.frame {
		return false, nil // package http2 ends the connection
	}
	if s.block.open && (kind != continuationFrame || id != s.block.id) {
		r.give(misplaced)
		return true, nil
	}
	switch kind {
	case headersFrame:
	case continuationFrame:
		if !s.block.open {
			return false, nil // package http2 ends the connection
		}
		if s.block.unsound() {
			r.give(misplaced)
			return true, nil
		}
	case dataFrame:
		st := s.waiting(id)
		if st == nil && (!s.foreign(id) || id > f.latest()) {
			return false, nil
		}
		return true, s.data(r, from, h, st)
	default:
		return false, nil
	}
	if err := r.fill(from, frameHead+n); err != nil {
		return true, err
	}
	payload := r.buf[frameHead : frameHead+n]
	fragment, ok := unpadded(h, payload)
	if !ok {
		r.pass(frameHead + n) // package http2 says what is wrong
		return true, nil
	}
	r.have = 0
	if kind == headersFrame {
		s.block.begin(h, payload)
	}
	if _, err := s.decoder.Write(fragment); err == nil && !h.has(endHeaders) {
		if s.block.size > s.block.limit {
			r.give(misplaced) // nobody waits for the end of these
		}
		return true, nil
	} else if err != nil || s.decoder.Close() != nil {
		r.give(undecodable(id))
		return true, nil
	}
	defer s.block.reset()
	return true, s.headers(r, f)
}

// unpadded is the part of a frame's payload that says something. ok is false for a frame that
// is not long enough for what its flags announce.
func unpadded(h *head, payload []byte) (rest []byte, ok bool) {
	before, behind := 0, 0
	if h.kind() != continuationFrame && h.has(padded) {
		if len(payload) == 0 {
			return nil, false
		}
		before, behind = 1, int(payload[0])
	}
	if h.kind() == headersFrame && h.has(priority) {
		before += dependency
	}
	if before+behind > len(payload) {
		return nil, false
	}
	return payload[before : len(payload)-behind], true
}

// undecodable are headers that package http2 cannot decode: it then tells the client that its
// compression is broken.
func undecodable(id uint32) []byte {
	frame := []byte{0, 0, 1, headersFrame, endHeaders, 0, 0, 0, 0, 0x80}
	binary.BigEndian.PutUint32(frame[5:], id)
	return frame
}

// headers is told of a whole block of headers: a request begins, or a body ends with
// trailers.
func (s *shorts) headers(r *frameReader, f *flowControl) error {
	id := s.block.id
	if known, waits := s.find(id); known != nil && (waits || !f.seenEnd(&known.http2Stream)) {
		s.trailers(known, waits)
		return nil
	}
	if s.foreign(id) {
		switch begun := id <= f.latest(); {
		case begun && s.block.sound():
			r.give(misplaced) // it had its answer
			return nil
		case begun:
			s.refuse(id, resetProtocol)
			return nil
		}
		if f.crowded(s.conn.outlivers.most) && s.block.sound() {
			f.skip(id)
			s.refuse(id, resetRefused) // it may come again
			return nil
		}
		if st := s.request(); st != nil && s.take(f, st) {
			return nil
		}
	}
	if !s.block.sound() {
		r.give(s.again())
		return nil
	}
	if err := f.opened(id); err != nil {
		return err
	}
	s.passed, s.last = max(s.passed, id), time.Now()
	r.give(s.again())
	return nil
}

// trailers end the body of a request that waits for it. Nobody has announced them, so that
// nobody is told what they are.
func (s *shorts) trailers(st *shortStream, waits bool) {
	switch {
	case !s.block.sound():
		s.refuse(st.id, resetProtocol)
	case !waits:
		s.refuse(st.id, resetClosed)
	case !s.block.end, len(s.block.fields) > 0 && s.block.fields[0].IsPseudo():
		s.refuse(st.id, resetProtocol)
	default:
		s.begin(st)
	}
}

// again writes the block for package http2. It does not depend on blocks before.
func (s *shorts) again() []byte {
	if s.encoded.Reset(); s.encoder == nil {
		s.encoder = hpack.NewEncoder(&s.encoded)
	}
	_, _ = s.encoded.Write(s.block.priority) // a buffer takes everything
	for _, f := range s.block.fields {
		f.Sensitive = true          // which is: it gets into no table
		_ = s.encoder.WriteField(f) // a buffer takes everything
	}
	var flags byte
	if len(s.block.priority) > 0 {
		flags = priority
	}
	if s.block.end {
		flags |= endStream
	}
	out := appendHeaders(nil, s.block.id, s.encoded.Bytes(), flags, s.frame)
	if s.encoded.Cap() > largestFrame {
		s.encoded = bytes.Buffer{}
	}
	return out
}

// appendHeaders makes frames of a block of headers, none larger than a number of bytes.
func appendHeaders(out []byte, id uint32, block []byte, flags byte, most int) []byte {
	kind := byte(headersFrame)
	for {
		n := min(len(block), most)
		if n == len(block) {
			flags |= endHeaders
		}
		out = append(out, byte(n>>16), byte(n>>8), byte(n), kind, flags)
		out = binary.BigEndian.AppendUint32(out, id)
		out = append(out, block[:n]...)
		if block = block[n:]; len(block) == 0 {
			return out
		}
		kind, flags = continuationFrame, 0
	}
}
