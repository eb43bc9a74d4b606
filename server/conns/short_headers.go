package conns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"time"

	"golang.org/x/net/http2/hpack"
)

const (
	padded   = 8  // a flag of data and headers
	priority = 32 // a flag of headers
)

// errFrames: the client sends frames in an order that HTTP/2 does not know.
var errFrames = errors.New("the client sends frames that do not belong where they are")

// headerBlock is what the headers of a request, or its trailers, consist of.
type headerBlock struct {
	limit  uint32 // bytes of fields; what comes behind the field that exceeds them is left out
	open   bool   // continuations follow
	id     uint32
	end    bool // nothing follows the block
	fields []hpack.HeaderField
	size   uint32
}

func (b *headerBlock) add(f hpack.HeaderField) {
	if b.size > b.limit {
		return // package http2 refuses the request by what it has got
	}
	b.size += f.Size()
	b.fields = append(b.fields, f)
}

func (b *headerBlock) reset() {
	clear(b.fields)
	if b.fields = b.fields[:0]; cap(b.fields) > 64 {
		b.fields = nil
	}
	b.open, b.size = false, 0
}

// follow is told of the head of each frame. Where it took the frame, it has put into
// r what package http2 gets instead, or nothing.
func (s *shorts) follow(r *frameReader, from io.Reader, f *flowControl, h *head) (took bool, err error) {
	kind, id, n := h.kind(), h.stream(), h.length()
	if n > s.frame {
		return false, nil // package http2 ends the connection
	}
	if s.block.open && (kind != continuationFrame || id != s.block.id) {
		return true, errFrames
	}
	switch kind {
	case headersFrame:
	case continuationFrame:
		if !s.block.open {
			return false, nil // package http2 ends the connection
		}
	case dataFrame:
		if st := s.waiting(id); st != nil {
			return true, s.data(r, from, h, st)
		}
		if s.foreign(id) {
			return true, errFrames
		}
		return false, nil
	default:
		return false, nil
	}
	if err := r.fill(from, frameHead+n); err != nil {
		return true, err
	}
	r.have = 0
	fragment, ok := unpadded(h, r.buf[frameHead:frameHead+n])
	if !ok {
		r.ready = frameHead + n // package http2 says what is wrong
		return true, nil
	}
	if kind == headersFrame {
		s.block.open, s.block.id, s.block.end = true, id, h.has(endStream)
	}
	if _, err := s.decoder.Write(fragment); err == nil && !h.has(endHeaders) {
		if s.block.size > s.block.limit {
			return true, errFlood // nobody waits for the end of these
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
		before += 5
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
	if st := s.waiting(id); st != nil { // trailers, which were not announced
		if !s.block.end {
			return errFrames
		}
		s.begin(st)
		return nil
	}
	if s.foreign(id) {
		if id <= f.latest() {
			return errFrames // it had its answer
		}
		if st := s.request(); st != nil && s.take(f, st) {
			return nil
		}
	}
	if err := f.opened(id); err != nil {
		return err
	}
	s.passed, s.last = max(s.passed, id), time.Now()
	r.give(s.again())
	return nil
}

// again writes the block for package http2. It does not depend on blocks before.
func (s *shorts) again() []byte {
	s.encoded.Reset()
	for _, f := range s.block.fields {
		f.Sensitive = true          // which is: it gets into no table
		_ = s.encoder.WriteField(f) // a buffer takes everything
	}
	var flags byte
	if s.block.end {
		flags = endStream
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
