package conns_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/conns"
)

// noted counts what a Delivery tells of.
type noted struct {
	mu     sync.Mutex
	counts map[string]int
}

func (n *noted) count(what string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.counts == nil {
		n.counts = map[string]int{}
	}
	n.counts[what]++
}

func (n *noted) DeliveryMode(direct bool) { n.count(fmt.Sprintf("mode direct=%v", direct)) }
func (n *noted) Delivering(http2, direct bool) {
	n.count(fmt.Sprintf("http2=%v direct=%v", http2, direct))
}
func (n *noted) FellBack(reason string) { n.count("fell back: " + reason) }

func (n *noted) want(t *testing.T, want map[string]int) {
	t.Helper()
	n.mu.Lock()
	defer n.mu.Unlock()
	if !maps.Equal(n.counts, want) {
		t.Errorf("noted %v, want %v", n.counts, want)
	}
}

// measured is a Delivery that is watched, and its log.
func measured(cfg conns.DeliveryConfig) (*conns.Delivery, *noted, *bytes.Buffer) {
	n, logged := &noted{}, &bytes.Buffer{}
	cfg.Observer, cfg.Log = n, slog.New(slog.NewTextHandler(logged, nil))
	return conns.NewDelivery(cfg), n, logged
}

// changed is a stream that does something else with what is written.
type changed struct {
	conns.Stream
	write func(s conns.Stream, b *[]byte) error
}

func (c changed) TryWrite(b *[]byte) (bool, error) { return false, c.write(c.Stream, b) }
func (c changed) Write(b *[]byte) error            { return c.write(c.Stream, b) }

// changing is an Opener of streams that are changed.
func changing(write func(s conns.Stream, b *[]byte) error) conns.Opener {
	return func(ctx context.Context, w http.ResponseWriter) (conns.Stream, error) {
		s, err := conns.TakeOver(ctx, w)
		if s != nil {
			s = changed{s, write}
		}
		return s, err
	}
}

// TestSelfTest: what is wrong with the direct way is found before there are clients,
// whatever it is; nothing is found where nothing is wrong.
func TestSelfTest(t *testing.T) {
	broken := map[string]conns.Opener{
		"nothing is taken over": func(context.Context, http.ResponseWriter) (conns.Stream, error) { return nil, nil },
		"it fails":              func(context.Context, http.ResponseWriter) (conns.Stream, error) { return nil, errors.New("broken") },
		"it panics":             func(context.Context, http.ResponseWriter) (conns.Stream, error) { panic("broken") },
		"something comes before": func(ctx context.Context, w http.ResponseWriter) (conns.Stream, error) {
			_, _ = io.WriteString(w, "token")
			return conns.TakeOver(ctx, w)
		},
		"something is missing": changing(func(s conns.Stream, b *[]byte) error {
			if strings.HasSuffix(string(*b), "others") {
				return nil
			}
			return s.Write(b)
		}),
		"writing panics": changing(func(conns.Stream, *[]byte) error { panic("broken") }),
		"writing fails":  changing(func(conns.Stream, *[]byte) error { return errors.New("broken") }),
	}
	for name, open := range broken {
		t.Run(name, func(t *testing.T) {
			d, n, logged := measured(conns.DeliveryConfig{Opener: open})
			d.SelfTest(true)
			if d.Direct() {
				t.Error("it is not found")
			}
			n.want(t, map[string]int{"mode direct=true": 1, "mode direct=false": 1, "fell back: self_test": 1})
			if got := strings.Count(logged.String(), "\n"); got != 1 {
				t.Errorf("%d lines in the log: %s", got, logged)
			}
		})
	}
	t.Run("as it is", func(t *testing.T) {
		for _, two := range []bool{false, true} {
			d, n, logged := measured(conns.DeliveryConfig{Shorts: true})
			d.SelfTest(two)
			n.want(t, map[string]int{"mode direct=true": 1})
			if !d.Direct() || logged.Len() > 0 {
				t.Error(logged)
			}
		}
	})
	t.Run("switched off", func(t *testing.T) {
		d, n, _ := measured(conns.DeliveryConfig{Mode: conns.Standard, Opener: broken["it panics"]})
		d.SelfTest(true)
		n.want(t, map[string]int{"mode direct=false": 1})
	})
}

// BenchmarkSelfTest is what the test adds to each start.
func BenchmarkSelfTest(b *testing.B) {
	for b.Loop() {
		conns.NewDelivery(conns.DeliveryConfig{}).SelfTest(true)
	}
}

// answering writes numbered parts as a watch does, the way that a Delivery says.
func answering(d *conns.Delivery, parts int) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		control := http.NewResponseController(w)
		_ = control.Flush()
		s, err := d.Open(r.Context(), w)
		if err != nil {
			panic(http.ErrAbortHandler)
		}
		for i := range parts {
			part := fmt.Sprintf("%d\n", i)
			if s == nil {
				_, _ = io.WriteString(w, part)
				_ = control.Flush()
				continue
			}
			b := append(make([]byte, conns.Headroom), part...)
			if err := s.Write(&b); err != nil {
				s.Close(false)
				panic(http.ErrAbortHandler)
			}
		}
		if s != nil {
			s.Close(true)
		}
	}
}

// asked is what a client gets, and whether it looks whole.
func asked(t *testing.T, client *http.Client, url string) (body string, whole bool) {
	t.Helper()
	resp, err := client.Get(url + "/?watch=1")
	if err != nil {
		return "", false
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	return string(got), err == nil
}

// TestDeliveryFallsBack: the first failure of the direct way costs the one answer that
// met it, which does not look whole and of which no part comes twice or is missing; all
// that follow are sent the standard way. It is logged and counted once.
func TestDeliveryFallsBack(t *testing.T) {
	const parts = 5
	var all strings.Builder
	for i := range parts {
		fmt.Fprintf(&all, "%d\n", i)
	}
	panics := func(context.Context, http.ResponseWriter) (conns.Stream, error) { panic("broken") }
	fails := func(context.Context, http.ResponseWriter) (conns.Stream, error) { return nil, errors.New("broken") }
	late := changing(func(s conns.Stream, b *[]byte) error {
		if strings.HasSuffix(string(*b), "3\n") {
			panic("broken")
		}
		return s.Write(b)
	})
	for _, two := range []bool{false, true} {
		for _, c := range []struct {
			name   string
			open   conns.Opener
			first  string
			reason string
			began  int // answers the direct way
		}{
			{"opening panics", panics, "", conns.ReasonPanic, 0},
			{"opening fails", fails, "", conns.ReasonHandshake, 0},
			{"writing panics", late, "0\n1\n2\n", conns.ReasonPanic, 1},
		} {
			t.Run(fmt.Sprintf("http2=%v/%s", two, c.name), func(t *testing.T) {
				d, n, logged := measured(conns.DeliveryConfig{Opener: c.open})
				_, client, url := siteOf(t, d, two, 0, answering(d, parts))
				if got, whole := asked(t, client, url); got != c.first || whole {
					t.Errorf("the answer that met the failure: %q, whole %v", got, whole)
				}
				for range 3 {
					if got, whole := asked(t, client, url); got != all.String() || !whole {
						t.Errorf("after the failure: %q, whole %v", got, whole)
					}
				}
				want := map[string]int{"mode direct=true": 1, "mode direct=false": 1, "fell back: " + c.reason: 1, fmt.Sprintf("http2=%v direct=false", two): 3}
				if c.began > 0 {
					want[fmt.Sprintf("http2=%v direct=true", two)] = c.began
				}
				n.want(t, want)
				if got := strings.Count(logged.String(), "level=ERROR"); got != 1 {
					t.Errorf("%d lines in the log: %s", got, logged)
				}
			})
		}
	}
}

// TestStandardDelivery: nothing is taken over, and the answers are the same.
func TestStandardDelivery(t *testing.T) {
	for _, two := range []bool{false, true} {
		for _, mode := range []conns.DeliveryMode{conns.Direct, conns.Standard} {
			d, n, _ := measured(conns.DeliveryConfig{Mode: mode})
			_, client, url := siteOf(t, d, two, 0, answering(d, 3))
			if got, whole := asked(t, client, url); got != "0\n1\n2\n" || !whole {
				t.Errorf("http2=%v, %s: %q, whole %v", two, mode, got, whole)
			}
			direct := mode == conns.Direct
			n.want(t, map[string]int{fmt.Sprintf("mode direct=%v", direct): 1, fmt.Sprintf("http2=%v direct=%v", two, direct): 1})
		}
	}
	var none *conns.Delivery
	if s, err := none.Open(t.Context(), nil); s != nil || err != nil || none.Direct() {
		t.Errorf("no delivery at all: %v %v", s, err)
	}
}

// TestBrokenStream: after a panic a stream does nothing, and hangs nobody.
func TestBrokenStream(t *testing.T) {
	done := make(chan struct{})
	d := conns.NewDelivery(conns.DeliveryConfig{Opener: changing(func(conns.Stream, *[]byte) error { panic("broken") })})
	_, client, url := siteOf(t, d, true, 0, func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		_ = http.NewResponseController(w).Flush()
		s, err := d.Open(r.Context(), w)
		if s == nil {
			t.Error(err)
			return
		}
		b := make([]byte, conns.Headroom)
		_, tried := s.TryWrite(&b)
		for what, err := range map[string]error{"the panic": tried, "Write": s.Write(&b), "Flush": s.Flush(), "Wait": s.Wait(time.Now().Add(time.Hour))} {
			if err == nil {
				t.Errorf("no error of %s", what)
			}
		}
		s.Wake()
		s.Close(true)
	})
	if _, whole := asked(t, client, url); whole {
		t.Error("the answer looks whole")
	}
	<-done
}
