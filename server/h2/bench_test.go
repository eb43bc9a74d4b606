package h2_test

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/h2"
)

// BenchmarkGet compares the processor time of a GET of 5 KB from memory and of a POST of 1 KB with that of
// package net/http. The client is the same: it sends frames that were encoded before, so that most of the
// time is the server's.
func BenchmarkGet(b *testing.B) {
	value := []byte(strings.Repeat("0123456789abcdef", 5<<10/16))
	handler := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			if _, err := io.Copy(io.Discard, r.Body); err != nil {
				b.Error(err)
			}
		}
		h := w.Header()
		h["Audit-Id"] = []string{"d5bb4e3c-7a5a-4b53-9c07-1dd8c4b25e2f"}
		h["Cache-Control"] = []string{"no-cache, private"}
		h["Content-Type"] = []string{"application/json"}
		h["X-Kubernetes-Pf-Flowschema-Uid"] = []string{"d5bb4e3c-7a5a-4b53-9c07-1dd8c4b25e2f"}
		h["X-Kubernetes-Pf-Prioritylevel-Uid"] = []string{"d5bb4e3c-7a5a-4b53-9c07-1dd8c4b25e2f"}
		_, _ = w.Write(value)
	})
	_, own := start(b, h2.Config{Handler: handler})
	standard := startStandard(b, handler)
	body := []byte(strings.Repeat("0123456789abcdef", 1<<10/16))
	for name, addr := range map[string]string{"own": own, "net/http": standard} {
		for _, method := range []string{"GET", "POST"} {
			b.Run(method+"/"+name, func(b *testing.B) {
				c := dial(b, addr)
				c.SetReuseFrames()
				c.must(c.WriteWindowUpdate(0, 1<<30))
				before := used(b)
				b.ReportAllocs()
				for i := range b.N {
					id := uint32(2*i + 1)
					c.ask(id, method, "/api/v1/namespaces/default/configmaps/c", method == "GET", "accept", "application/json", "user-agent", "bench/1", "authorization", "Bearer aaaaaaaaaaaaaaaaaaaaaaaaaaaaaa")
					if method == "POST" {
						c.must(c.WriteData(id, true, body))
					}
					for !isEnd(id)(c.next()) {
					}
					if i%1000 == 999 {
						c.must(c.WriteWindowUpdate(0, 5<<20))
					}
				}
				b.ReportMetric(float64(used(b)-before)/float64(b.N)/1e3, "cpu-µs/op")
			})
		}
	}
}

// used returns the processor time of this process.
func used(b *testing.B) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
