package attack

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/e2e/harness"
)

// frames are attacks on HTTP/2. server/h2 tests the same bounds frame by frame, and on fake time.
var frames = []attack{
	{"pings", pings}, {"settings", settings}, {"window updates", windowUpdates}, {"priorities", priorities}, {"unknown frames", unknownFrames},
	{"empty data", emptyData}, {"resets of closed streams", closedResets}, {"replies that nobody reads", unreadReplies},
	{"continuations", continuations}, {"large headers in few bytes", indexedHeaders}, {"rapid reset", rapidReset},
}

// The frames without content that a connection may send at once and in a second (docs/limits.md), with a margin for the clock.
const (
	atOnce  = 20_000
	aSecond = 2_000
)

// flood sends frames for some seconds, one ping behind each hundred, and counts the answers to the pings: what the server has
// read in so long. The server may end the connection.
func flood(t *testing.T, a *arena, begin func(*harness.Frames) error, frame func(*harness.Frames) error) {
	t.Helper()
	const each = 100
	f := a.DialFrames(t)
	if err := errors.Join(begin(f), f.Conn.SetWriteDeadline(time.Now().Add(3*time.Second))); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	go func() { // ends with the connection, or its deadline
		var part bytes.Buffer
		conn := f.Conn
		f := &harness.Frames{Framer: http2.NewFramer(&part, nil), Next: f.Next}
		f.AllowIllegalWrites = true
		for {
			part.Reset()
			for range each {
				_ = frame(f) // a buffer takes everything
			}
			_ = f.WritePing(false, [8]byte{})
			if _, err := conn.Write(part.Bytes()); err != nil {
				return
			}
		}
	}()
	if err := f.Conn.SetReadDeadline(began.Add(4 * time.Second)); err != nil {
		t.Fatal(err)
	}
	in := http2.NewFramer(io.Discard, f.Conn) // begin may have a reader of its own
	read := 0
	for {
		reply, err := in.ReadFrame()
		if err != nil {
			break
		}
		if p, is := reply.(*http2.PingFrame); is && p.IsAck() && p.Data == [8]byte{} {
			read += each
		}
	}
	took := time.Since(began)
	if most := atOnce + aSecond*int(took/time.Second+2); read > most {
		t.Errorf("in %v the server read %d frames, want %d at most", took, read, most)
	}
	if read == 0 {
		t.Error("the server read nothing")
	}
	t.Logf("%d frames were read in %v", read, took)
}

func nothing(*harness.Frames) error { return nil }

func pings(t *testing.T, a *arena) {
	flood(t, a, nothing, func(f *harness.Frames) error { return f.WritePing(false, [8]byte{1}) })
}

func settings(t *testing.T, a *arena) {
	flood(t, a, nothing, func(f *harness.Frames) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 1 << 20}, http2.Setting{ID: http2.SettingHeaderTableSize, Val: 100})
	})
}

func windowUpdates(t *testing.T, a *arena) {
	window := func(f *harness.Frames) error {
		return f.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	}
	flood(t, a, window, func(f *harness.Frames) error { return f.WriteWindowUpdate(0, 1) })
}

func priorities(t *testing.T, a *arena) {
	flood(t, a, nothing, func(f *harness.Frames) error {
		return f.WritePriority(1, http2.PriorityParam{StreamDep: 3, Weight: 9})
	})
}

func unknownFrames(t *testing.T, a *arena) {
	flood(t, a, nothing, func(f *harness.Frames) error { return f.WriteRawFrame(0xbe, 0, 0, []byte("unknown")) })
}

// emptyData are parts of a body that have no bytes.
func emptyData(t *testing.T, a *arena) {
	begin := func(f *harness.Frames) error {
		return f.Request(false, "POST", mine, "authorization", "Bearer "+a.mallory, "content-type", asJSON)
	}
	flood(t, a, begin, func(f *harness.Frames) error { return f.WriteData(1, false, nil) })
}

// closedResets resets again and again a stream that has ended.
func closedResets(t *testing.T, a *arena) {
	begin := func(f *harness.Frames) error {
		return errors.Join(f.Request(true, "GET", mine, "authorization", "Bearer "+a.mallory), f.WriteRSTStream(1, http2.ErrCodeCancel))
	}
	flood(t, a, begin, func(f *harness.Frames) error { return f.WriteRSTStream(1, http2.ErrCodeCancel) })
}

// unreadReplies: replies that the client does not read do not pile up.
func unreadReplies(t *testing.T, a *arena) {
	f := a.DialFrames(t)
	if err := f.Conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	before := a.Resident(t)
	for i := range 500_000 {
		if err := f.WritePing(false, [8]byte{byte(i)}); err != nil {
			t.Logf("ended after %d pings: %v", i, err)
			break
		}
	}
	if grown := a.Resident(t) - before; grown > 100<<20 { // that of the other attacks, too
		t.Errorf("the server has grown by %d MB", grown>>20)
	}
}

// until reads frames until one is wanted, or the connection ends.
func until(f *harness.Frames, wanted func(http2.Frame) bool) (http2.Frame, error) {
	for {
		frame, err := f.ReadFrame()
		if err != nil || wanted(frame) {
			return frame, err
		}
	}
}

// continuations: headers that never end, a byte at a time, end the connection after some hundred frames.
func continuations(t *testing.T, a *arena) {
	f := a.DialFrames(t)
	err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: f.Block(":method", "GET")})
	for i := 0; err == nil && i < 1000; i++ {
		err = f.WriteContinuation(1, false, []byte{0x84})
	}
	if err != nil {
		t.Logf("ended while the client was sending: %v", err)
		return
	}
	frame, err := until(f, func(f http2.Frame) bool { _, is := f.(*http2.GoAwayFrame); return is })
	if err != nil {
		t.Fatal(err)
	}
	if g := frame.(*http2.GoAwayFrame); g.ErrCode != http2.ErrCodeEnhanceYourCalm {
		t.Error(g)
	}
}

// indexedHeaders: a field of 4 KB costs a byte once it is in the table; 200,000 of them are 800 MB.
func indexedHeaders(t *testing.T, a *arena) {
	f := a.DialFrames(t)
	f.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	var out bytes.Buffer
	enc := hpack.NewEncoder(&out)
	block := func(more ...hpack.HeaderField) []byte {
		out.Reset()
		for _, field := range append([]hpack.HeaderField{
			{Name: ":method", Value: "GET"}, {Name: ":scheme", Value: "https"}, {Name: ":path", Value: "/version", Sensitive: true},
			{Name: "authorization", Value: "Bearer " + a.mallory, Sensitive: true},
		}, more...) {
			_ = enc.WriteField(field) // a buffer takes everything
		}
		return out.Bytes()
	}
	entry := hpack.HeaderField{Name: "a", Value: strings.Repeat("a", 4096-32-1)} // which fills the table
	if err := f.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block(entry), EndStream: true, EndHeaders: true}); err != nil {
		t.Fatal(err)
	}
	before := a.Resident(t)
	all := append(bytes.Clone(block()), bytes.Repeat([]byte{0xbe}, 200_000)...)
	for first := true; len(all) > 0; first = false {
		part := all[:min(len(all), 16<<10)]
		all = all[len(part):]
		var err error
		if first {
			err = f.WriteHeaders(http2.HeadersFrameParam{StreamID: 3, BlockFragment: part, EndStream: true})
		} else {
			err = f.WriteContinuation(3, len(all) == 0, part)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	frame, err := until(f, func(f http2.Frame) bool {
		h, is := f.(*http2.MetaHeadersFrame)
		return is && h.StreamID == 3
	})
	if err != nil {
		t.Fatal(err)
	}
	if code := frame.(*http2.MetaHeadersFrame).PseudoValue("status"); code != "431" {
		t.Errorf("answered with %s", code)
	}
	if grown := a.Resident(t) - before; grown > 100<<20 {
		t.Errorf("the server has grown by %d MB", grown>>20)
	}
}

// rapidReset opens and cancels requests without end: the server ends the connection,
// or keeps pace with it; in no case does it queue unread answers, or serve all.
func rapidReset(t *testing.T, a *arena) {
	f := a.DialFrames(t)
	go func() { _, _ = io.Copy(io.Discard, f.Conn) }() // ends with the connection
	before := a.Resident(t)
	if err := f.Conn.SetWriteDeadline(time.Now().Add(5 * time.Second)); err != nil {
		t.Fatal(err)
	}
	for i := range 40_000 {
		id := f.Next
		err := f.Request(true, "GET", mine+"?watch=1", "authorization", "Bearer "+a.mallory)
		if err == nil {
			err = f.WriteRSTStream(id, http2.ErrCodeCancel)
		}
		if err != nil {
			t.Logf("the connection took %d requests: %v", i, err)
			break
		}
	}
	if grown := a.Resident(t) - before; grown > 128<<20 {
		t.Errorf("a connection of cancelled requests took %d MB", grown>>20)
	}
}
