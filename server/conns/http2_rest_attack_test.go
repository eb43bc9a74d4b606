package conns_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
)

// TestRestsAgainstTheProtocol: who breaks the protocol on a connection that rests is told what package http2
// tells on others, and its watches end.
func TestRestsAgainstTheProtocol(t *testing.T) {
	raw := func(kind http2.FrameType, flags http2.Flags, id uint32, payload ...byte) func(*http2.Framer) error {
		return func(f *http2.Framer) error { return f.WriteRawFrame(kind, flags, id, payload) }
	}
	for _, tc := range []struct {
		name, want string // the code of the error that it is told; "": none
		attack     func(*http2.Framer) error
	}{
		{"a window too large", "FLOW_CONTROL", raw(http2.FrameSettings, 0, 0, 0, 4, 0x80, 0, 0, 0)},
		{"a setting that there is not", "PROTOCOL", raw(http2.FrameSettings, 0, 0, 0, 2, 0, 0, 0, 2)},
		{"a frame too large", "PROTOCOL", raw(http2.FrameSettings, 0, 0, 0, 5, 0, 0, 0, 1)},
		{"half a setting", "FRAME_SIZE", raw(http2.FrameSettings, 0, 0, 0, 4, 0, 0, 1)},
		{"a setting twice", "PROTOCOL", raw(http2.FrameSettings, 0, 0, 0, 3, 0, 0, 0, 1, 0, 3, 0, 0, 0, 2)},
		{"settings of a stream", "PROTOCOL", raw(http2.FrameSettings, 0, 1, 0, 4, 0, 0, 1, 0)},
		{"settings that are an answer", "", // as it might be the one that came late
			raw(http2.FrameSettings, http2.FlagSettingsAck, 0)},
		{"an answer that says something", "FRAME_SIZE", raw(http2.FrameSettings, http2.FlagSettingsAck, 0, 0, 4, 0, 0, 1, 0)},
		{"a ping too short", "FRAME_SIZE", raw(http2.FramePing, 0, 0, 1, 2, 3)},
		{"a ping of a stream", "PROTOCOL", raw(http2.FramePing, 0, 1, 1, 2, 3, 4, 5, 6, 7, 8)},
		{"no more of the window", "PROTOCOL", raw(http2.FrameWindowUpdate, 0, 0, 0, 0, 0, 0)},
		{"more of it than there may be", "FLOW_CONTROL", raw(http2.FrameWindowUpdate, 0, 0, 0x7f, 0xff, 0xff, 0xff)},
		{"half of an update", "FRAME_SIZE", raw(http2.FrameWindowUpdate, 0, 0, 0, 1)},
		{"a body of no stream", "PROTOCOL", raw(http2.FrameData, 0, 0, 1, 2)},
		{"a body of one that is to come", "PROTOCOL", raw(http2.FrameData, 0, 99, 1, 2)},
		{"a reset of one that is to come", "PROTOCOL", raw(http2.FrameRSTStream, 0, 99, 0, 0, 0, 8)},
		{"an update for one to come", "PROTOCOL", raw(http2.FrameWindowUpdate, 0, 99, 0, 0, 0, 8)},
		{"headers of one that was", "PROTOCOL", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 1, 0x82, 0x84, 0x87)},
		{"headers of no stream", "PROTOCOL", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 0, 0x82, 0x84, 0x87)},
		{"headers of an even one", "PROTOCOL", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 8, 0x82, 0x84, 0x87)},
		{"headers that cannot be read", "COMPRESSION", raw(http2.FrameHeaders, http2.FlagHeadersEndHeaders|http2.FlagHeadersEndStream, 9, 0x80)},
		{"continued, and never begun", "PROTOCOL", raw(http2.FrameContinuation, 0, 9, 0x82)},
		{"a promise", "PROTOCOL", raw(http2.FramePushPromise, http2.FlagPushPromiseEndHeaders, 9, 0, 0, 0, 2, 0x82)},
		{"a stream that depends on itself", "", raw(http2.FramePriority, 0, 9, 0, 0, 0, 9, 1)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			r := newResting(t)
			p := newPeer(t, r.url, 10_000, 2<<20)
			what, is := over()
			p.until(p.get("/done"), what, is)
			watch := p.get("/w?watch=1")
			r.until("open", func() bool { return r.open["/w"] != nil })
			r.rests(true)
			p.write.Lock()
			p.must(tc.attack(p.framer))
			p.must(p.framer.WritePing(false, [8]byte{1}))
			p.write.Unlock()
			if got := p.verdict(); got != tc.want {
				t.Fatalf("%q, want %q", got, tc.want)
			}
			if tc.want == "" {
				r.send("/w", "more")
				more, has := has(4)
				p.until(watch, more, has)
				return
			}
			r.until("lost", func() bool { return r.lost == 1 })
		})
	}
}

// verdict is the code of the error that a peer is told, or nothing if a ping behind what it has sent is answered.
func (p *peer) verdict() string {
	p.t.Helper()
	p.mu.Lock()
	defer p.mu.Unlock()
	late := time.AfterFunc(time.Minute, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		p.err = errors.New("waited too long")
		p.changed.Broadcast()
	})
	defer late.Stop()
	for p.err == nil && p.pongs == 0 {
		p.changed.Wait()
	}
	if p.err == nil {
		return ""
	}
	text, _ := strings.CutPrefix(p.err.Error(), "told to go away: ")
	return strings.TrimSuffix(strings.TrimSpace(text), "_ERROR")
}
