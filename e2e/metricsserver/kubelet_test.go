package metricsserver

import (
	"crypto/tls"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// kubelet is the part of a node agent that metrics-server asks: the use of a node and of
// its one pod.
type kubelet struct {
	namespace, pod string
	token          string // other tokens are refused
	began          time.Time
	served         atomic.Int64
	server         *httptest.Server
}

// startKubelet starts one on a port of its own, with a certificate of the authority.
func startKubelet(t *testing.T, ca *harness.Authority, token, namespace, pod string) *kubelet {
	t.Helper()
	k := &kubelet{namespace: namespace, pod: pod, token: token, began: time.Now().Add(-time.Hour)}
	k.server = httptest.NewUnstartedServer(k)
	k.server.TLS = &tls.Config{Certificates: []tls.Certificate{*ca.Server(t)}}
	k.server.StartTLS()
	t.Cleanup(k.server.Close)
	return k
}

func (k *kubelet) port() int {
	_, port, _ := strings.Cut(strings.TrimPrefix(k.server.URL, "https://"), ":")
	n, _ := strconv.Atoi(port) // httptest made it
	return n
}

// ServeHTTP answers with counters that grow by a little less than 250 and 100 thousandths
// of a core each second: kubectl rounds up.
func (k *kubelet) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Header.Get("Authorization") != "Bearer "+k.token {
		http.Error(w, "who are you?", http.StatusUnauthorized)
		return
	}
	if r.URL.Path != "/metrics/resource" {
		http.NotFound(w, r)
		return
	}
	k.served.Add(1)
	now := time.Now()
	stamp, seconds := now.UnixMilli(), float64(now.Sub(k.began).Milliseconds())/1000
	labels := fmt.Sprintf(`{container="c",namespace=%q,pod=%q}`, k.namespace, k.pod)
	w.Header().Set("Content-Type", "text/plain; version=0.0.4")
	fmt.Fprintf(w, "node_cpu_usage_seconds_total %f %d\n", seconds*0.2495, stamp)
	fmt.Fprintf(w, "node_memory_working_set_bytes %d %d\n", 256<<20, stamp)
	fmt.Fprintf(w, "container_start_time_seconds%s %d\n", labels, k.began.Unix())
	fmt.Fprintf(w, "container_cpu_usage_seconds_total%s %f %d\n", labels, seconds*0.0995, stamp)
	fmt.Fprintf(w, "container_memory_working_set_bytes%s %d %d\n", labels, 10<<20, stamp)
}
