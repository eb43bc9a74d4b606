package conns_test

import (
	"crypto/tls"
	"fmt"
	"hash/crc32"
	"io"
	"log"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/rowlock/rowlock/server/conns"
)

// outcome is what a client has seen of its connection.
type outcome struct {
	streams map[uint32]*streamOutcome
	ended   string // the connection
	pings   int
}

type streamOutcome struct {
	header, trailer string
	body            int
	sum             uint32
	end             string // "", "whole", or the reset
}

// plain leaves out of an answer how long it is where package http2 does not say so: it has
// sent the header by then, which beside it waits for more.
func (s *streamOutcome) plain() streamOutcome {
	out := *s
	if s.body > 4<<10 {
		out.header = strings.Replace(s.header, fmt.Sprintf("content-length: %d, ", s.body), "", 1)
	}
	return out
}

// error says whether a connection ended because of what its client did.
func (o *outcome) error() bool { return o.ended != "" && o.ended != "NO_ERROR" }

// reached says that a client has seen as much as another one.
func (o *outcome) reached(other *outcome) bool {
	if other.ended != "" {
		return o.ended != ""
	}
	for id, want := range other.streams {
		if got := o.streams[id]; got == nil || got.header == "" && want.header != "" || got.body < want.body || got.end == "" && want.end != "" {
			return false
		}
	}
	return true
}

func (o *outcome) clone() *outcome {
	out := &outcome{streams: map[uint32]*streamOutcome{}, ended: o.ended}
	for id, s := range o.streams {
		c := *s
		out.streams[id] = &c
	}
	return out
}

// differs says in what two clients have seen something else. Where the connection ended
// because of the client, answers under way may have come or not.
func differs(want, got *outcome) string {
	if want.ended != got.ended {
		return fmt.Sprintf("the connection ended with %q, by package http2 with %q", got.ended, want.ended)
	}
	ids := slices.Collect(maps.Keys(want.streams))
	for id := range got.streams {
		if want.streams[id] == nil {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	for _, id := range ids {
		w, g := want.streams[id], got.streams[id]
		switch {
		case w != nil && g != nil && w.plain() == g.plain(), want.error() && (w == nil || w.end == "" || g == nil || g.end == ""):
		default:
			return fmt.Sprintf("stream %d: %+v, by package http2 %+v", id, g, w)
		}
	}
	return ""
}

// player is a client that sends a script.
type player struct {
	conn    *tls.Conn
	mu      sync.Mutex
	changed *sync.Cond
	seen    outcome
	done    chan struct{}
}

func newPlayer(address string) (*player, error) {
	conn, err := tls.Dial("tcp", address, &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}})
	if err != nil {
		return nil, err
	}
	p := &player{conn: conn, done: make(chan struct{})}
	p.seen.streams = map[uint32]*streamOutcome{}
	p.changed = sync.NewCond(&p.mu)
	go p.read()
	return p, nil
}

func (p *player) read() {
	defer close(p.done)
	framer := http2.NewFramer(io.Discard, p.conn)
	framer.ReadMetaHeaders = hpack.NewDecoder(4096, nil)
	for {
		f, err := framer.ReadFrame()
		p.mu.Lock()
		if err == nil {
			p.take(f)
		} else if p.seen.ended == "" {
			p.seen.ended = "closed"
		}
		p.changed.Broadcast()
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

func (p *player) take(f http2.Frame) {
	id := f.Header().StreamID
	s := p.seen.streams[id]
	if _, update := f.(*http2.WindowUpdateFrame); s == nil && id != 0 && !update {
		s = &streamOutcome{}
		p.seen.streams[id] = s
	}
	switch f := f.(type) {
	case *http2.MetaHeadersFrame:
		var fields []string
		for _, field := range f.Fields {
			if field.Name != "date" {
				fields = append(fields, field.Name+": "+field.Value)
			}
		}
		slices.Sort(fields)
		if text := strings.Join(fields, ", "); s.header == "" || strings.HasPrefix(s.header, ":status: 1") {
			s.header = text
		} else {
			s.trailer = text
		}
		if f.StreamEnded() {
			p.end(s, "whole")
		}
	case *http2.DataFrame:
		if s.end != "" {
			s.end += ", and data"
		}
		s.body += len(f.Data())
		s.sum = crc32.Update(s.sum, crc32.IEEETable, f.Data())
		if f.StreamEnded() {
			p.end(s, "whole")
		}
	case *http2.RSTStreamFrame:
		p.end(s, f.ErrCode.String())
	case *http2.GoAwayFrame:
		p.seen.ended = f.ErrCode.String()
	case *http2.PingFrame:
		if f.IsAck() {
			p.seen.pings++
		}
	}
}

// end notes the end of a stream. Its number may be reset again by what its client sends then.
func (p *player) end(s *streamOutcome, how string) {
	if s.end == "" {
		s.end = how
	}
}

// await waits until something is so, or for a time.
func (p *player) await(patience time.Duration, is func(*outcome) bool) {
	late := time.AfterFunc(patience, func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		patience = 0
		p.changed.Broadcast()
	})
	defer late.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	for patience > 0 && !is(&p.seen) {
		p.changed.Wait()
	}
}

// play sends a script. want is what another client has seen after each step: as much is waited
// for. It returns what this one has seen. patience is how long answers may take.
func play(address string, steps []step, want []*outcome, patience time.Duration) (seen []*outcome, err error) {
	p, err := newPlayer(address)
	if err != nil {
		return nil, err
	}
	defer func() {
		_ = p.conn.Close()
		<-p.done
	}()
	pings := 0
	after := func(i int, stream uint32) bool {
		if pings++; pings > 0 {
			ping := append([]byte{0, 0, 8, 6, 0, 0, 0, 0, 0}, make([]byte, 8)...)
			_, _ = p.conn.Write(ping) // the connection may have ended
		}
		p.await(time.Minute, func(o *outcome) bool { return o.pings >= pings || o.ended != "" })
		if want != nil && i < len(want) {
			p.await(min(50*patience, time.Minute), func(o *outcome) bool { return o.reached(want[i]) })
		} else if stream != 0 {
			p.await(patience, func(o *outcome) bool { return o.ended != "" || o.streams[stream] != nil && o.streams[stream].end != "" })
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		seen = append(seen, p.seen.clone())
		return p.seen.ended == ""
	}
	if _, err := p.conn.Write(setup()); err != nil {
		return nil, err
	}
	p.await(time.Minute, func(o *outcome) bool { return o.streams[1] != nil && o.streams[1].end != "" })
	ok := after(0, 1)
	for i := 0; i < len(steps) && ok; i++ {
		_, _ = p.conn.Write(steps[i].bytes)
		if steps[i].unended && i < len(steps)-1 {
			p.mu.Lock()
			seen = append(seen, p.seen.clone())
			p.mu.Unlock()
			continue
		}
		ok = after(i+1, steps[i].stream)
	}
	time.Sleep(patience / 4) // for what should not come
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(seen, p.seen.clone()), nil
}

// differing is a site with short requests and one without.
type differing struct {
	own, standard   string
	direct, running atomic.Int64
}

func newDiffering(t testing.TB) *differing {
	d := &differing{}
	handler := func(w http.ResponseWriter, r *http.Request) {
		d.running.Add(1)
		defer d.running.Add(-1)
		if isDirect(w) {
			d.direct.Add(1)
		}
		body, err := io.ReadAll(r.Body)
		switch r.URL.Path {
		case "/large":
			_, _ = w.Write(allNumbered(10, 10_000))
		case "/none":
			w.WriteHeader(http.StatusNoContent)
		case "/pieces":
			for i := range 3 {
				fmt.Fprintln(w, i)
				w.(http.Flusher).Flush()
			}
		case "/boom":
			panic(http.ErrAbortHandler)
		case "/trailers":
			w.Header().Set("Trailer", "X-Sum")
			fmt.Fprint(w, "body")
			w.Header().Set("X-Sum", "1")
		default:
			w.Header().Set("X-Own", r.Header.Get("X-Say"))
			fmt.Fprint(w, r.Method, r.RequestURI, r.URL, r.Host, r.Header, r.ContentLength, len(body), crc32.ChecksumIEEE(body), err)
		}
	}
	short := conns.Short{Is: func(_, path string) bool { return path != "/passed" }}
	for _, site := range []struct {
		at   *string
		mode conns.DeliveryMode
	}{{&d.own, conns.Direct}, {&d.standard, conns.Standard}} {
		_, _, url, hs := shortSite(t, conns.NewDelivery(conns.DeliveryConfig{Mode: site.mode}), true, 0, handler, short)
		hs.ErrorLog = log.New(io.Discard, "", 0)
		gone(t, hs)
		*site.at = strings.TrimPrefix(url, "https://")
	}
	return d
}

// check plays a script on both sites. A difference that does not come again is one of time.
func (d *differing) check(t *testing.T, source []byte) {
	steps := scriptOf(source)
	var told string
	for patience := 20 * time.Millisecond; patience < 10*time.Second; patience *= 4 {
		want, err := play(d.standard, steps, nil, patience)
		if err != nil {
			t.Fatal(err)
		}
		got, err := play(d.own, steps, want, patience)
		if err != nil {
			t.Fatal(err)
		}
		if told = differs(want[len(want)-1], got[len(got)-1]); told == "" {
			return
		}
	}
	var text strings.Builder
	for i, s := range steps {
		fmt.Fprintf(&text, "%d: %s: %.60x\n", i, s.what, s.bytes)
	}
	t.Errorf("%s\n%s", told, &text)
}

// idle waits until no handler runs any more: all clients have gone.
func (d *differing) idle(t *testing.T) {
	for end := time.Now().Add(2 * time.Minute); d.running.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%d handlers run on without a client", d.running.Load())
		}
	}
}

// TestShortDiffers: whatever a client sends, well-formed or not, it sees the same as by package
// http2: answers, resets with their codes, and for what its connection ends.
func TestShortDiffers(t *testing.T) {
	d := newDiffering(t)
	scripts := 150
	if testing.Short() {
		scripts = 40
	}
	for seed := range uint64(scripts) {
		random := rand.New(rand.NewPCG(seed, 7))
		source := make([]byte, 20+random.IntN(200))
		for i := range source {
			source[i] = byte(random.UintN(256))
		}
		if d.check(t, source); t.Failed() {
			t.Fatalf("seed %d", seed)
		}
	}
	d.idle(t)
	if n := d.direct.Load(); n < int64(scripts)/2 {
		t.Errorf("%d requests only were served beside package http2", n)
	}
}

// FuzzShort is TestShortDiffers for scripts that a fuzzer looks for.
func FuzzShort(f *testing.F) {
	d := newDiffering(f)
	f.Add([]byte("some bytes, of which a script is made: requests, bodies, and what is none of these"))
	f.Fuzz(func(t *testing.T, source []byte) {
		d.check(t, source)
		d.idle(t)
	})
}
