package conns

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"testing"
	"time"
)

// drainIncoming reads what package http2 would be given, and returns its error.
func drainIncoming(in *frameReader, w *flowControl, sent io.Reader) error {
	p := make([]byte, 256)
	for {
		if _, err := in.read(sent, w, p); err != nil {
			return err
		}
	}
}

func open(id uint32) []byte { return frame(headersFrame, 5, id, []byte{0x82}) }

// TestStreamsAreForgotten: whatever a client begins, no more is kept of its streams than
// package http2 may know of.
func TestStreamsAreForgotten(t *testing.T) {
	many := func(from, n int) []byte {
		var out []byte
		for i := range n {
			out = append(out, open(uint32(from+2*i))...)
		}
		return out
	}
	t.Run("nothing gets out to the client", func(t *testing.T) {
		w := newFlow(10)
		var in frameReader
		if err := drainIncoming(&in, w, bytes.NewReader(many(1, 100_000))); !errors.Is(err, errFlood) {
			t.Errorf("100,000 streams: %v", err)
		}
		if len(w.unsent) > w.unsentMax {
			t.Errorf("%d are kept", len(w.unsent))
		}
	})
	t.Run("package http2 refuses", func(t *testing.T) {
		f := newTracked(10)
		var in frameReader
		for id := uint32(1); id < 200_000; id += 2 {
			if err := drainIncoming(&in, &f.flow, bytes.NewReader(open(id))); err != io.EOF {
				t.Fatal(err)
			}
			f.track(frame(resetFrame, 0, id, []byte{0, 0, 0, 7}))
		}
		if n := len(f.flow.unsent); n != 0 {
			t.Errorf("%d are kept", n)
		}
	})
	t.Run("reset by the client", func(t *testing.T) {
		w := newFlow(10)
		in := frameReader{limiter: frameLimiter{sleep: func(time.Duration) { w.allowance.Add(1) }}}
		for id := uint32(1); id < 100_000; id += 2 {
			if err := drainIncoming(&in, w, bytes.NewReader(append(open(id), frame(resetFrame, 0, id, make([]byte, 4))...))); err != io.EOF {
				t.Fatal(err)
			}
		}
		if n := len(w.unsent); n != 0 {
			t.Errorf("%d are kept", n)
		}
	})
	t.Run("updates of windows", func(t *testing.T) {
		w := newFlow(10)
		in := frameReader{limiter: frameLimiter{sleep: func(time.Duration) { w.allowance.Add(1) }}}
		sent := open(1)
		for id := uint32(3); id < 100_000; id++ {
			sent = append(sent, update(id, 5)...)
		}
		if err := drainIncoming(&in, w, bytes.NewReader(sent)); err != io.EOF {
			t.Fatal(err)
		}
		if n := len(w.unsent); n != 1 {
			t.Errorf("%d are kept", n)
		}
	})
	t.Run("after the end of service", func(t *testing.T) {
		f := newTracked(10)
		in := frameReader{limiter: frameLimiter{sleep: func(time.Duration) { f.flow.allowance.Add(1) }}}
		_ = drainIncoming(&in, &f.flow, bytes.NewReader(many(1, 5)))
		f.track(frame(goAwayFrame, 0, 0, make([]byte, 8)))
		source := bytes.NewReader(many(11, 3_000_000))
		err := drainIncoming(&in, &f.flow, source)
		if taken := source.Size() - int64(source.Len()); !errors.Is(err, errFlood) || taken > 2*ignoredMax*(frameHead+1) {
			t.Errorf("%v after %d bytes", err, taken)
		}
		if n := len(f.flow.unsent); n != 5 {
			t.Errorf("%d are kept", n)
		}
	})
}

// TestPace: frames that ask for nothing come at a bounded rate; requests, bodies, and what
// answers what was sent are not held up.
func TestPace(t *testing.T) {
	settings := frame(settingsFrame, 0, 0, nil)
	floods := map[string][]byte{
		"pings": frame(6, 0, 0, make([]byte, 8)), "settings": settings, "acknowledgements": frame(settingsFrame, ack, 0, nil),
		"updates": update(0, 1), "updates of a stream": update(1, 1), "resets": frame(resetFrame, 0, 1, make([]byte, 4)),
		"priorities": frame(2, 0, 1, make([]byte, 5)), "empty data": frame(dataFrame, 0, 1, nil), "crumbs": frame(dataFrame, 0, 1, []byte("x")),
		"continuations": frame(continuationFrame, 0, 1, nil), "of no known type": frame(99, 0, 0, nil),
	}
	slept := func(w *flowControl, one []byte, n int, between func()) (total time.Duration) {
		in := frameReader{}
		in.limiter.since = time.Now()
		in.limiter.sleep = func(d time.Duration) {
			total += d
			in.limiter.since = in.limiter.since.Add(-d)
		}
		for range n {
			if err := drainIncoming(&in, w, bytes.NewReader(one)); err != io.EOF {
				t.Fatal(err)
			}
			between()
		}
		return total
	}
	nothing := func() {}
	for name, one := range floods {
		if total := slept(newFlow(100), one, 3*burstFrames, nothing); total < burstFrames/frameRate*time.Second {
			t.Errorf("%s: %d of them are held up for %v", name, 3*burstFrames, total)
		}
	}
	if total := slept(newFlow(100), frame(dataFrame, 0, 1, make([]byte, crumb)), 3*burstFrames, nothing); total != 0 {
		t.Errorf("bodies are held up for %v", total)
	}
	f := newTracked(100)
	w := &f.flow
	f.coalescer.out = func(p []byte) (int, error) { return len(p), nil }
	if total := slept(w, update(0, 4096), 3*burstFrames, func() { _ = f.writeFrames(nil, frame(dataFrame, 0, 1, make([]byte, 4096))) }); total != 0 {
		t.Errorf("updates for what was sent are held up for %v", total)
	}
}

func TestMayBlock(t *testing.T) {
	setting := func(value uint32) []byte { return binary.BigEndian.AppendUint32([]byte{0, 4}, value) }
	w := newFlow(100)
	if w.mayBlock(100) || !w.mayBlock(10_000) {
		t.Error("windows as they are at first")
	}
	w.updated(0, 1<<30)
	w.settings(setting(4 << 20))
	if w.mayBlock(10_000) || !w.mayBlock(5<<20) {
		t.Error("large windows")
	}
	w.settings(setting(0))
	if !w.mayBlock(1) {
		t.Error("closed windows")
	}
	w.settings(setting(4 << 20))
	if !w.mayBlock(1) {
		t.Error("who has closed windows may do so again")
	}
}
