package conns

import (
	"encoding/binary"
	"io"
)

// incoming follows the frames of a client on their way to package http2, and keeps
// from it what is said of windows that are not its own.
type incoming struct {
	left int // bytes that go through as they come
	buf  []byte
	have int // bytes read of a head, or of a frame that is looked into
	out  int // bytes of buf that package http2 is to have
	from int // how many of them it has
	pace pace
}

// lookedInto is the largest frame of settings that is looked into. Package http2 takes
// none of more than a hundred settings.
const lookedInto = 100 * 6

func (in *incoming) read(r io.Reader, w *windows, p []byte) (int, error) {
	for len(p) > 0 {
		switch {
		case in.from < in.out:
			n := copy(p, in.buf[in.from:in.out])
			if in.from += n; in.from == in.out {
				in.from, in.out = 0, 0
			}
			return n, nil
		case in.left > 0:
			n, err := r.Read(p[:min(len(p), in.left)])
			in.left -= n
			return n, err
		}
		if err := in.next(r, w); err != nil {
			return 0, err
		}
	}
	return 0, nil
}

// next reads a head, and the whole frame if it tells something.
func (in *incoming) next(r io.Reader, w *windows) error {
	if in.buf == nil {
		in.buf = make([]byte, frameHead+4)
	}
	if in.have == 0 {
		if n := w.next(); n > 0 {
			in.tell(n)
			return nil
		}
	}
	if err := in.fill(r, frameHead); err != nil {
		return err
	}
	was := head(in.buf[:frameHead])
	h := &was
	n := h.length()
	switch kind := h.kind(); {
	case kind == updateFrame && n == 4, kind == resetFrame && n == 4, kind == settingsFrame && n <= lookedInto && !h.has(ack):
		if err := in.fill(r, frameHead+n); err != nil {
			return err
		}
		n = 0
	}
	in.out, in.have = in.have, 0
	if err := in.look(w); err != nil {
		in.out = 0
		return err
	}
	in.left = n
	in.pace.frame(h, w)
	return nil
}

// tell makes a frame of what package http2 is to know of the connection's window.
func (in *incoming) tell(n int64) {
	in.out = frameHead + 4
	copy(in.buf, []byte{0, 0, 4, updateFrame, 0, 0, 0, 0, 0})
	binary.BigEndian.PutUint32(in.buf[frameHead:], uint32(n))
}

// look learns from a frame, and changes it.
func (in *incoming) look(w *windows) error {
	h, payload := (*head)(in.buf), in.buf[frameHead:in.out]
	id := h.stream()
	switch kind := h.kind(); {
	case kind == headersFrame:
		return w.opened(id)
	case len(payload) == 0:
	case kind == settingsFrame:
		w.set(payload)
	case kind == resetFrame:
		w.reset(id)
	case kind == updateFrame:
		n := binary.BigEndian.Uint32(payload) & largestWindow
		if n == 0 {
			return nil // package http2 judges
		}
		n = uint32(w.updated(id, int64(n)))
		if n == 0 {
			in.out = 0
		}
		binary.BigEndian.PutUint32(payload, n)
	}
	return nil
}

// fill reads until n bytes of a frame are there.
func (in *incoming) fill(r io.Reader, n int) error {
	if len(in.buf) < n {
		in.buf = append(in.buf, make([]byte, n-len(in.buf))...)
	}
	for in.have < n {
		m, err := r.Read(in.buf[in.have:n])
		in.have += m
		if err != nil && in.have < n {
			return err
		}
	}
	return nil
}
