package filters_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/wire"
)

// watchConn counts the watches that begin on it, and those whose handlers have returned.
type watchConn struct {
	wire.Socket
	began, returned int
}

func (c *watchConn) BeginWatch(w http.ResponseWriter, r *http.Request) (http.ResponseWriter, *http.Request, func()) {
	c.began++
	return w, r, func() { c.returned++ }
}

// TestBeginWatch: the filter calls BeginWatch if and only if the parsed request is a watch, however its URL
// spells it.
func TestBeginWatch(t *testing.T) {
	for url, watch := range map[string]bool{
		"/api/v1/pods?watch=true": true, "/api/v1/pods?watch": true, "/api/v1/pods?%77atch=1": true, "/api/v1/watch/pods": true,
		"/api/v1/pods?watch=0": false, "/api/v1/pods?watch=false": false, "/api/v1/pods": false, "/api/v1/pods?labelSelector=watch%3Dme": false,
		"/api/v1/pods?labelSelector=watch=me": false, "/api/v1/pods?unwatch=true": false, "/version?watch=true": false,
		"/api/v1/namespaces/watch/pods": false, "/openapi/watch/it": false, "/api/v1/namespaces/a/pods/b/log?watch=true": false,
	} {
		c, verb := &watchConn{}, ""
		h := filters.Scope(time.Now)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
			verb = request.From(r.Context()).Info.Verb
			if c.returned != 0 {
				t.Errorf("%s: has returned while the handler runs", url)
			}
		}))
		r := httptest.NewRequest("GET", url, nil)
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), wire.Key{}, wire.Conn(c))))
		want := 0
		if watch {
			want = 1
		}
		if c.began != want || c.returned != want || (verb == "watch") != watch {
			t.Errorf("%s: began %d times, returned %d times, verb %s", url, c.began, c.returned, verb)
		}
	}
}
