package metrics

import (
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
)

// TestSeriesKeepNoRequest: the method and the path of a request are parts of its first line, which may be long. Series keep
// none of it in memory.
func TestSeriesKeepNoRequest(t *testing.T) {
	m := New(kinds.NewCatalogue(nil), time.Now)
	m.Aggregated = func() []schema.GroupVersion { return []schema.GroupVersion{{Group: "far.example", Version: "v1"}} }
	for _, remote := range []bool{false, true} {
		var gone atomic.Bool
		func() {
			first := []byte("DELETE /apis/far.example/v1/x?a=" + strings.Repeat("a", 1<<20))
			line := unsafe.String(&first[0], len(first))
			runtime.AddCleanup(&first[0], func(struct{}) { gone.Store(true) }, struct{}{})
			method, target, _ := strings.Cut(line, " ")
			parts := strings.Split(target, "/")
			info := &request.Info{Verb: "delete", Group: parts[2], Version: parts[3], IsResource: remote, Remote: remote, Upgrade: remote}
			r := httptest.NewRequestWithContext(t.Context(), http.MethodDelete, "/", nil)
			r.Method = method
			r = r.WithContext(request.With(r.Context(), &request.Scope{Info: info}))
			m.Returned(httptest.NewRecorder(), r, m.Began(r))
		}()
		for end := time.Now().Add(time.Minute); !gone.Load(); runtime.GC() { // cleanups run soon after
			if time.Now().After(end) {
				t.Fatalf("of another server: %t: the request's first line is kept", remote)
			}
		}
	}
	families, err := m.Registry.Gather()
	if err != nil || len(families) == 0 {
		t.Fatal(families, err)
	}
	series := map[string]bool{}
	for _, f := range families {
		for _, one := range f.Metric {
			for _, l := range one.Label {
				series[l.GetName()+"="+l.GetValue()] = true
			}
		}
	}
	for _, want := range []string{"verb=DELETE", "group=far.example", "version=v1"} {
		if !series[want] {
			t.Errorf("no series has %s", want)
		}
	}
}
