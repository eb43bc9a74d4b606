package verbs_test

import (
	"bufio"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/conns"
)

// TestWatchPastHTTP watches over TLS on HTTP/1.1, where events are written by the
// cache's goroutines until the client is slow: they must come whole and in order.
func TestWatchPastHTTP(t *testing.T) {
	s := newSite(t)
	plain, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	delivery := conns.NewDelivery(conns.DeliveryConfig{})
	s.Watches.Delivery = delivery
	hijacker := conns.NewHijacker(delivery, func(c net.Conn) { c.Close() })
	defer hijacker.Close()
	srv := httptest.NewUnstartedServer(hijacker.Handler(scoped(s.Handler)))
	srv.Listener.Close()
	srv.Listener = conns.Listener{Listener: plain}
	srv.Config.ConnContext = conns.ConnContext
	srv.TLS = &tls.Config{DynamicRecordSizingDisabled: true}
	srv.StartTLS()
	defer srv.Close()

	const small, large = 50, 120
	wide := strings.Repeat("w", 200_000)
	for round, slow := range []bool{false, true, false} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, fmt.Sprintf("%s/api/v1/configmaps?watch=1&timeoutSeconds=600&resourceVersion=%d", srv.URL, s.Cache.Revision()), nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := srv.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		n, value := small, "v"
		if slow {
			n, value = large, wide
		}
		var want, got []string
		for range n {
			want = append(want, fmt.Sprint(s.put(t, "configmaps", "ns", "a", configMap("a", "", value))))
		}
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, 1<<20)
		for len(got) < n && lines.Scan() {
			var e event
			if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
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
