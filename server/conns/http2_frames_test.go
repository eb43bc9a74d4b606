package conns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math/rand/v2"
	"testing"
	"testing/iotest"
)

func frame(kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	out := []byte{byte(n >> 16), byte(n >> 8), byte(n), kind, flags}
	return append(binary.BigEndian.AppendUint32(out, stream), payload...)
}

func update(stream, n uint32) []byte {
	return frame(updateFrame, 0, stream, binary.BigEndian.AppendUint32(nil, n))
}

// frames cuts whole frames; the rest begins another.
func frames(p []byte) (whole [][]byte, rest []byte) {
	for len(p) >= frameHead {
		n := frameHead + (*head)(p).length()
		if len(p) < n {
			break
		}
		whole, p = append(whole, p[:n]), p[n:]
	}
	return whole, p
}

// FuzzIncoming: whatever a client sends, and however it comes, package http2 gets it,
// but for what it is not to know of windows, which is never more than the client said.
func FuzzIncoming(f *testing.F) {
	settings := frame(settingsFrame, 0, 0, []byte{0, 4, 0, 0x40, 0, 0, 0, 3, 0, 0, 0, 100})
	f.Add(settings, uint64(1))
	f.Add(bytes.Join([][]byte{settings, update(0, 1<<30), frame(headersFrame, 5, 1, []byte("head")), update(1, 5), frame(resetFrame, 0, 1, make([]byte, 4))}, nil), uint64(2))
	f.Add(bytes.Join([][]byte{update(0, 0), update(7, 1<<31), frame(updateFrame, 0, 0, []byte{1}), frame(settingsFrame, ack, 0, nil), frame(99, 0, 3, make([]byte, 300))}, nil), uint64(3))
	f.Fuzz(func(t *testing.T, sent []byte, seed uint64) {
		random := rand.New(rand.NewPCG(seed, 0))
		asked := 0
		w := newFlow(100)
		w.wake = func() { asked++ }
		var in frameReader
		source := io.Reader(bytes.NewReader(sent))
		switch seed % 3 {
		case 1:
			source = iotest.OneByteReader(source)
		case 2:
			source = iotest.HalfReader(source)
		}
		var got []byte
		for {
			p := make([]byte, 1+random.IntN(40))
			n, err := in.read(source, w, p)
			got = append(got, p[:n]...)
			if err != nil {
				break
			}
			if random.IntN(3) == 0 { // package http2 sends something
				w.sent(1, random.IntN(20000), false)
			}
		}
		said, told := int64(initialWindow), int64(initialWindow)
		want, rest := frames(sent)
		have, _ := frames(got)
		updates := func(all [][]byte, sum *int64) (others []byte) {
			for _, p := range all {
				h := (*head)(p)
				if h.kind() == updateFrame && h.length() == 4 && h.stream() == 0 {
					*sum += int64(binary.BigEndian.Uint32(p[frameHead:]) & largestWindow)
					if binary.BigEndian.Uint32(p[frameHead:])&largestWindow != 0 {
						continue
					}
				}
				if h.kind() == updateFrame && h.length() == 4 {
					p = bytes.Clone(p)
					p[frameHead] &= 0x7f // a reserved bit, which means nothing
				}
				others = append(others, p...)
			}
			return others
		}
		wanted, had := updates(want, &said), updates(have, &told)
		if told > said {
			t.Errorf("package http2 is told of %d, the client of %d", told, said)
		}
		if len(rest) == 0 && !bytes.Equal(wanted, had) || !bytes.HasPrefix(had, wanted) {
			t.Errorf("%q\nfor %q", had, wanted)
		}
	})
}

// TestSearch: tokens are found and taken out, wherever writes are cut; all else stays.
func TestSearch(t *testing.T) {
	for seed := range uint64(2000) {
		random := rand.New(rand.NewPCG(seed, 1))
		f := newTracked(100)
		f.flow.updated(0, 1<<30)
		var sent, want []byte
		add := func(p []byte) { sent, want = append(sent, p...), append(want, p...) }
		var claims []*http2Stream
		for stream := uint32(1); stream < 20; stream += 2 {
			switch random.IntN(3) {
			case 0:
				add(frame(dataFrame, 0, stream, make([]byte, random.IntN(60))))
			case 1:
				add(frame(headersFrame, 0, stream, make([]byte, random.IntN(30))))
				add(frame(continuationFrame, endHeaders, stream, make([]byte, random.IntN(30))))
			case 2:
				s := &http2Stream{found: make(chan struct{}), grown: make(chan struct{}, 1), id: 0}
				for i := range s.token {
					s.token[i] = byte(1 + random.IntN(255))
				}
				if !f.flow.search(s) {
					t.Fatal("no claim")
				}
				_ = f.flow.opened(stream)
				cut := tokenSize
				if random.IntN(4) == 0 {
					cut = 4 + random.IntN(tokenSize-3)
				}
				sent = append(sent, frame(dataFrame, 0, stream, s.token[:cut])...)
				if cut < tokenSize {
					sent = append(sent, frame(dataFrame, 0, stream, s.token[cut:])...)
				}
				claims = append(claims, s)
			}
		}
		var got []byte
		for len(sent) > 0 {
			n := 1 + random.IntN(len(sent))
			p := sent[:n]
			sent = sent[n:]
			if f.flow.searching() || len(f.partial) > 0 {
				p = f.removeTokens(p)
			}
			between := f.track(p)
			if _, rest := frames(append(got[:len(got):len(got)], p[:max(0, between)]...)); between >= 0 && len(rest) > 0 {
				t.Fatalf("seed %d: others may go out within a frame", seed)
			}
			got = append(got, p...)
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("seed %d:\n%q for\n%q", seed, got, want)
		}
		for i, s := range claims {
			if s.seen != tokenSize || f.flow.streams[s.id] != s {
				t.Fatalf("seed %d: stream %d is not found", seed, i)
			}
		}
		if f.flow.searching() {
			t.Fatalf("seed %d: still searched", seed)
		}
	}
}

// TestGrant: no more is granted than both windows have, and what comes back is.
func TestGrant(t *testing.T) {
	w := newFlow(100)
	s := &http2Stream{found: make(chan struct{}), grown: make(chan struct{}, 1), token: token{1}}
	if w.search(s) {
		t.Error("claimed with the window that every client has")
	}
	w.updated(0, 2<<20)
	_ = w.opened(1)
	w.updated(1, 35)
	if !w.search(s) {
		t.Fatal("not searched for")
	}
	if is, whole := w.matchToken(1, s.token[:]); !is || whole != s {
		t.Fatal("not found")
	}
	for _, step := range []struct {
		ask, want int
	}{{100, 100}, {70_000, initialWindow + 35 - 100}, {1, 0}} {
		if n, err := w.grant(s, step.ask); n != step.want || err != nil {
			t.Errorf("%d of %d: %v", n, step.ask, err)
		}
	}
	if told := w.updated(1, 1000); told != 0 {
		t.Errorf("package http2 is told of %d", told)
	}
	if n, _ := w.grant(s, 2000); n != 1000 {
		t.Error(n)
	}
	w.reset(1)
	if _, err := w.grant(s, 1); !errors.Is(err, errEnded) {
		t.Error(err)
	}
}

// TestHeadersComeFirst: a stream sends nothing before what came with its token is on its
// way, which is the head of its answer.
func TestHeadersComeFirst(t *testing.T) {
	c := newTracked(100)
	c.flow.updated(0, 2<<20)
	_ = c.flow.opened(1)
	s := &http2Stream{conn: c, found: make(chan struct{}), grown: make(chan struct{}, 1), token: token{1}}
	if !c.flow.search(s) {
		t.Fatal("not searched for")
	}
	known := func() bool {
		select {
		case <-s.found:
			return true
		default:
			return false
		}
	}
	var sent []byte
	c.coalescer.out = func(p []byte) (int, error) {
		if known() {
			t.Error("the stream may send before its headers are")
		}
		sent = append(sent, p...)
		return len(p), nil
	}
	head := frame(headersFrame, endHeaders, 1, []byte{0x88})
	if err := c.writeFrames(nil, append(bytes.Clone(head), frame(dataFrame, 0, 1, s.token[:])...)); err != nil {
		t.Fatal(err)
	}
	if !known() || !bytes.Equal(sent, head) {
		t.Errorf("known %t; sent %x", known(), sent)
	}
}

// newFlow are the windows of a client at first.
func newFlow(streams uint32) *flowControl {
	f := new(flowControl)
	f.init(streams, true, func() {})
	return f
}

// newTracked is a connection whose frames are only looked at.
func newTracked(streams uint32) *HTTP2Conn {
	c := new(HTTP2Conn)
	c.flow.init(streams, true, func() {})
	return c
}

// TestSettingsAtOnce: where package http2 has got settings before it answered others, nobody knows of one answer
// whether it is for all.
func TestSettingsAtOnce(t *testing.T) {
	said, answer := head{3: settingsFrame}, head{3: settingsFrame, 4: ack}
	for _, atOnce := range []bool{false, true} {
		var r rest
		r.asks(&said)
		if !atOnce {
			r.answered(&answer)
		}
		r.asks(&said)
		if r.answered(&answer); r.heeds.Load() || r.mixed != atOnce {
			t.Errorf("at once %v: not answered %v, mixed %v", atOnce, r.heeds.Load(), r.mixed)
		}
	}
}
