package scrape_test

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/rowlock/rowlock/server/metrics/scrape"
)

func get(h http.Handler, accept string) *httptest.ResponseRecorder {
	w, r := httptest.NewRecorder(), httptest.NewRequest("GET", "/metrics", nil)
	r.Header.Set("Accept", accept)
	h.ServeHTTP(w, r)
	return w
}

// TestScrapesAtOnce: ten scrapes run at once, another one gets 503, and one after them is answered.
func TestScrapesAtOnce(t *testing.T) {
	const most = 10
	begun, end := make(chan struct{}), make(chan struct{})
	h := scrape.Handler(prometheus.GathererFunc(func() ([]*dto.MetricFamily, error) {
		begun <- struct{}{}
		<-end
		return nil, nil
	}))
	codes := make(chan int)
	for range most {
		go func() { codes <- get(h, "").Code }()
	}
	for range most {
		<-begun
	}
	one := make(chan *httptest.ResponseRecorder)
	go func() { one <- get(h, "") }()
	select {
	case w := <-one:
		if w.Code != http.StatusServiceUnavailable {
			t.Errorf("another scrape gets %d", w.Code)
		}
	case <-begun:
		t.Error("another scrape runs")
		go func() { <-one }()
	}
	close(end)
	for range most {
		if code := <-codes; code != http.StatusOK {
			t.Errorf("a scrape gets %d", code)
		}
	}
	go func() { codes <- get(h, "").Code }()
	<-begun
	if code := <-codes; code != http.StatusOK {
		t.Errorf("a later scrape gets %d", code)
	}
}

// TestAcceptOfScrapes: the first clauses of the header choose the format, and a header of a megabyte takes little memory.
func TestAcceptOfScrapes(t *testing.T) {
	h := scrape.Handler(prometheus.NewRegistry())
	const protobuf = "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"
	for accept, want := range map[string]string{
		"":                                     "text/plain",
		protobuf:                               "application/vnd.google.protobuf",
		protobuf + ", */*;q=0.1":               "application/vnd.google.protobuf",
		"a/b, " + protobuf:                     "application/vnd.google.protobuf",
		strings.Repeat("a/b,", 255) + protobuf: "application/vnd.google.protobuf",
		strings.Repeat("a/b,", 256) + protobuf: "text/plain",
	} {
		if got := get(h, accept).Header().Get("Content-Type"); !strings.HasPrefix(got, want) {
			t.Errorf("%.200q gets %s, want %s", accept, got, want)
		}
	}
	long := strings.Repeat("*/*,", 1<<18)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	get(h, long)
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 2<<20 {
		t.Errorf("%d bytes are allocated for a header of %d bytes", n, len(long))
	}
}
