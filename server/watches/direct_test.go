package watches_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/h1stream"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/wire"
)

// narrow is a listener whose connections hold little that their clients have not taken.
type narrow struct{ net.Listener }

// narrowest is about the number of bytes that a socket holds on each side.
const narrowest = 128 << 10

func (l narrow) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err == nil {
		err = c.(*net.TCPConn).SetWriteBuffer(narrowest)
	}
	return c, err
}

// scoped permits everything to requests whose answers may go on without their handlers.
func scoped(next http.Handler) http.Handler {
	return filters.Scope(time.Now)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := request.From(r.Context())
		s.User = &authx.Identity{Name: "tester"}
		s.Permit, _, _ = permits.Authorize(r.Context(), authx.AlwaysAllow{}, filters.Attributes(s))
		next.ServeHTTP(w, r)
	}))
}

// serveDirect serves a site over TLS on HTTP/1.1, where watches are detached. Clients that
// do not read keep others waiting soon.
func (s *site) serveDirect(t testing.TB) *httptest.Server {
	t.Helper()
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	hijacker := h1stream.New(func(c net.Conn) { c.Close() })
	t.Cleanup(hijacker.Close)
	front := httptest.NewUnstartedServer(scoped(s.Verbs))
	front.Listener.Close()
	front.Listener = wire.Listener{Listener: narrow{plain}}
	front.Config.ConnContext = hijacker.ConnContext
	front.TLS = &tls.Config{DynamicRecordSizingDisabled: true}
	front.StartTLS()
	t.Cleanup(front.Close)
	front.Client().Transport.(*http.Transport).DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			err = c.(*net.TCPConn).SetReadBuffer(narrowest)
		}
		return c, err
	}
	return front
}

// TestWatchPastHTTP watches over TLS on HTTP/1.1, where events are written by the
// cache's goroutines until the client is slow: they must come whole and in order.
func TestWatchPastHTTP(t *testing.T) {
	s := newSite(t)
	srv := s.serveDirect(t)

	// A client that takes nothing for half a minute is cut off, and so it is not to take so long to write these.
	for round, sent := range []struct {
		events, bytes int
	}{{50, 1}, {20, 200_000}, {2, 4 << 20}, {50, 1}} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
			fmt.Sprintf("%s/api/v1/configmaps?watch=1&timeoutSeconds=600&resourceVersion=%d", srv.URL, s.Cache.Revision()), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, value := sent.events, strings.Repeat("w", sent.bytes)
		var want, got []string
		for range n {
			want = append(want, fmt.Sprint(s.Put("configmaps", "ns", "a", servertest.ConfigMap("a", "", value))))
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 8<<20)
		for len(got) < n && lines.Scan() {
			var e servertest.Event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil || !strings.Contains(lines.Text(), `"`+value+`"`) {
				t.Fatalf("%.100s: %v", lines.Bytes(), err)
			}
			got = append(got, e.Object.Metadata.ResourceVersion)
		}
		resp.Body.Close()
		if lines.Err() != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("round %d: %v: %v, want %v", round, lines.Err(), got, want)
		}
	}
}
