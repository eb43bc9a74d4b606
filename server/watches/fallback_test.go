package watches_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server/conns"
	"github.com/rowlock/rowlock/server/servertest"
)

// failing is a stream that panics at its fifth write.
type failing struct {
	conns.Stream
	writes *atomic.Int64
}

func (f failing) count() {
	if f.writes.Add(1) == 5 {
		panic("broken")
	}
}

func (f failing) TryWrite(b *[]byte) (bool, error) { f.count(); return f.Stream.TryWrite(b) }
func (f failing) Write(b *[]byte) error            { f.count(); return f.Stream.Write(b) }

// TestWatchFallsBack: when the direct way fails in the middle of a watch, a client that
// resumes from what it has seen gets every change once, the standard way.
func TestWatchFallsBack(t *testing.T) {
	s := newSite(t)
	var writes atomic.Int64
	delivery := conns.NewDelivery(conns.DeliveryConfig{Opener: func(ctx context.Context, w http.ResponseWriter) (conns.Stream, error) {
		stream, err := conns.TakeOver(ctx, w)
		if stream != nil {
			stream = failing{stream, &writes}
		}
		return stream, err
	}})
	srv := s.serveDirect(t, delivery)

	const changes = 20
	var want, got []string
	seen, watches := fmt.Sprint(s.Cache.Revision()), 0
	for len(got) < changes {
		if watches++; watches > 2 {
			t.Fatalf("a third watch after %d of %d changes", len(got), changes)
		}
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, srv.URL+"/api/v1/configmaps?watch=1&timeoutSeconds=600&resourceVersion="+seen, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(resp.Body)
		for len(got) < changes {
			if len(want) == len(got) { // one at a time, so that each is a write of its own
				want = append(want, fmt.Sprint(s.Put("configmaps", "ns", "a", servertest.ConfigMap("a", "", "v"))))
			}
			if !lines.Scan() {
				break
			}
			var e servertest.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
				t.Fatalf("%.100s: %v", lines.Bytes(), err)
			}
			seen = e.Object.Metadata.ResourceVersion
			got = append(got, seen)
		}
		resp.Body.Close()
	}
	if watches != 2 || delivery.Direct() || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%d watches, direct %v: %v, want %v", watches, delivery.Direct(), got, want)
	}
}
