package verbs_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/sqlstore"
)

// discard counts the written bytes.
type discard struct {
	header http.Header
	n      int
	writes int
}

func (d *discard) Header() http.Header { return d.header }
func (d *discard) WriteHeader(int)     {}
func (d *discard) Flush()              {}
func (d *discard) Write(b []byte) (int, error) {
	d.n += len(b)
	d.writes++
	return len(b), nil
}

func benchPod(i int) string {
	tier := "web"
	if i%50 == 0 {
		tier = "db"
	}
	env := strings.Repeat(`{"name":"SOME_SETTING","value":"a value of no interest"},`, 60)
	return fmt.Sprintf(`{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p%06d","namespace":"default","uid":"0b0b5c43-3b29-4f3c-a1ac-%012d","creationTimestamp":"2026-01-01T00:00:00Z",`+
		`"labels":{"app":"a%d","tier":%q}},"spec":{"containers":[{"name":"main","image":"registry.example/app:1.2.3","env":[%s{"name":"LAST"}],"resources":{}}],"nodeName":"n%d"},`+
		`"status":{"phase":"Running","podIP":"10.1.2.3"}}`, i, i, i%10, tier, env, i%100)
}

// benchSite returns a handler over n pods in memory. Reads name version 0: there is no store.
func benchSite(n int) (http.Handler, *cache.Cache) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	c := cache.New(catalogue)
	for i := range n {
		c.Apply([]sqlstore.Change{{Row: sqlstore.Row{
			Key:      sqlstore.Key{Resource: "pods", Namespace: "default", Name: fmt.Sprintf("p%06d", i)},
			Revision: int64(i + 1), Value: []byte(benchPod(i)),
		}}})
	}
	stored := objects.New(catalogue, nil, c)
	a := &answers.Answers{Items: stored, Packed: packed.New(16 << 20), Compress: true}
	h := &verbs.Handler{Catalogue: catalogue, Objects: stored, Answers: a}
	return servertest.Permitted(h), c
}

func BenchmarkReads(b *testing.B) {
	const table = "application/json;as=Table;g=meta.k8s.io;v=v1"
	const partial = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1"
	pods := "/api/v1/namespaces/default/pods"
	h, _ := benchSite(10000)
	for _, bc := range []struct{ name, path, accept string }{
		{"get", pods + "/p000077?resourceVersion=0", ""},
		{"get-protobuf", pods + "/p000077?resourceVersion=0", codecs.Protobuf},
		{"list", pods + "?resourceVersion=0", ""},
		{"list-gzip", pods + "?resourceVersion=0", ""},
		{"list-protobuf", pods + "?resourceVersion=0", codecs.Protobuf},
		{"list-table", pods + "?resourceVersion=0", table},
		{"list-partial", pods + "?resourceVersion=0", partial},
		{"page-of-500", pods + "?limit=500&resourceVersion=10000&resourceVersionMatch=NotOlderThan", ""},
		{"label-2-percent", "/api/v1/pods?resourceVersion=0&labelSelector=tier%3Ddb", ""},
		{"node-1-percent", "/api/v1/pods?resourceVersion=0&fieldSelector=spec.nodeName%3Dn7", ""},
	} {
		b.Run(bc.name, func(b *testing.B) {
			r := httptest.NewRequest(http.MethodGet, bc.path, nil)
			if bc.accept != "" {
				r.Header.Set("Accept", bc.accept)
			}
			if strings.HasSuffix(bc.name, "-gzip") {
				r.Header.Set("Accept-Encoding", "gzip")
			}
			w := &discard{header: http.Header{}}
			h.ServeHTTP(w, r) // makes the cached forms
			b.SetBytes(int64(w.n))
			if w.n < 2000 {
				b.Fatalf("only %d bytes", w.n)
			}
			b.ReportAllocs()
			for b.Loop() {
				h.ServeHTTP(w, r)
			}
		})
	}
}

// BenchmarkWatch is one event to 1,000 watchers, framed and written.
func BenchmarkWatch(b *testing.B) {
	h, c := benchSite(100)
	ctx, cancel := context.WithCancel(b.Context())
	got := make(chan struct{}, 1000)
	ended := make(chan struct{}, 1000)
	for range 1000 {
		r := httptest.NewRequestWithContext(ctx, http.MethodGet, "/api/v1/pods?watch=1&resourceVersion=100", nil)
		go func() {
			defer func() { ended <- struct{}{} }()
			h.ServeHTTP(&reportingWriter{discard{header: http.Header{}}, got}, r)
		}()
	}
	for c.Watchers("pods") < 1000 {
		select {
		case <-ctx.Done():
			b.Fatal("the watchers do not start")
		default:
		}
	}
	value := []byte(benchPod(7))
	b.ReportAllocs()
	revision := int64(100)
	for b.Loop() {
		revision++
		c.Apply([]sqlstore.Change{{
			Row: sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Namespace: "default", Name: "p000007"}, Revision: revision, Value: value},
			Aux: &cache.Pending{},
		}})
		for range 1000 {
			<-got
		}
	}
	b.StopTimer()
	cancel()
	for range 1000 {
		<-ended
	}
}

// reportingWriter is a writer that reports every write.
type reportingWriter struct {
	discard
	got chan struct{}
}

func (w *reportingWriter) Write(b []byte) (int, error) {
	w.got <- struct{}{}
	return len(b), nil
}
