package server_test

import (
	"bytes"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/operators"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// BenchmarkDefinitions installs definitions of real size one after the other, each until its
// objects can be listed; then what a change of a status costs.
func BenchmarkDefinitions(b *testing.B) {
	s := servertest.Start(b, func(c *server.Config) { c.Authenticator = servertest.Everybody{User: servertest.Admin} })
	h := s.Handler()
	do := func(method, path, contentType string, body []byte) *sink {
		r := httptest.NewRequest(method, path, bytes.NewReader(body))
		r.Header.Set("Content-Type", contentType)
		w := &sink{header: http.Header{}}
		h.ServeHTTP(w, r)
		return w
	}
	const path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	set := operators.New(1)
	next := 0
	install := func(b *testing.B, pause func(), resume func()) *operators.Definition {
		pause()
		d, err := set.At(next)
		if err != nil {
			b.Fatal(err)
		}
		next++
		resume()
		if w := do("POST", path, "application/json", d.Body); w.code != http.StatusCreated {
			b.Fatalf("%s: %d", d.Name, w.code)
		}
		for i := 0; ; i++ {
			if w := do("GET", fmt.Sprintf(d.Path, d.Versions[0])+"?limit=1", "", nil); w.code == http.StatusOK {
				return d
			} else if i > 5000 {
				b.Fatalf("%s is not served: %d", d.Name, w.code)
			}
			time.Sleep(time.Millisecond)
		}
	}
	b.Run("install", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			install(b, b.StopTimer, b.StartTimer)
		}
	})
	nothing := func() {}
	d := install(b, nothing, nothing)
	b.Run("status", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			body := fmt.Sprintf(`{"status":{"conditions":[{"type":"Odd","status":"True","reason":"R%d","message":""}]}}`, i)
			if w := do("PATCH", path+"/"+d.Name+"/status", "application/merge-patch+json", []byte(body)); w.code != http.StatusOK {
				b.Fatal(w.code)
			}
		}
	})
	b.Run("label", func(b *testing.B) {
		b.ReportAllocs()
		for i := 0; b.Loop(); i++ {
			body := fmt.Sprintf(`{"metadata":{"labels":{"a":"b%d"}}}`, i)
			if w := do("PATCH", path+"/"+d.Name, "application/merge-patch+json", []byte(body)); w.code != http.StatusOK {
				b.Fatal(w.code)
			}
		}
	})
	b.Run("discovery", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			r := httptest.NewRequest("GET", "/apis", strings.NewReader(""))
			r.Header.Set("Accept", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
			r.Header.Set("Accept-Encoding", "gzip")
			w := &sink{header: http.Header{}}
			h.ServeHTTP(w, r)
			b.SetBytes(int64(w.n))
		}
	})
}
