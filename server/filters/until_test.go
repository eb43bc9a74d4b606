package filters_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// TestRequestContext: the context of a request ends at its deadline, with the
// client's connection and with the request, whatever the handler did with it before.
func TestRequestContext(t *testing.T) {
	const limit = time.Minute
	type key struct{}
	for _, tc := range []struct {
		name string
		use  func(context.Context) // what the handler does first
	}{
		{"unused", func(context.Context) {}},
		{"waited for", func(ctx context.Context) { _ = ctx.Done() }},
		{"looked at", func(ctx context.Context) { _ = ctx.Err() }},
	} {
		for _, end := range []struct {
			name string
			want error
		}{{"deadline", context.DeadlineExceeded}, {"connection", context.Canceled}, {"request", context.Canceled}} {
			t.Run(tc.name+", end of the "+end.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					conn, hangUp := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
					defer hangUp()
					var ctx, child context.Context
					check := func(when string, want error) {
						t.Helper()
						synctest.Wait()
						for name, c := range map[string]context.Context{"the request's": ctx, "one made of it": child} {
							if c == nil {
								continue
							}
							if err := c.Err(); !errors.Is(err, want) {
								t.Errorf("%s: %s says %v, want %v", when, name, err, want)
							}
							select {
							case <-c.Done():
								if want == nil {
									t.Errorf("%s: %s is done", when, name)
								}
							default:
								if want != nil {
									t.Errorf("%s: %s is not done", when, name)
								}
							}
						}
					}
					h := filters.Deadline(limit, fail)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
						ctx = r.Context()
						tc.use(ctx)
						if tc.name == "waited for" {
							var cancel context.CancelFunc
							child, cancel = context.WithCancel(ctx)
							t.Cleanup(cancel)
							check("at first", nil)
						}
						if at, ok := ctx.Deadline(); !ok || time.Until(at) != limit || ctx.Value(key{}) != "v" {
							t.Errorf("deadline %v, value %v", at, ctx.Value(key{}))
						}
						switch end.name {
						case "deadline":
							time.Sleep(limit)
						case "connection":
							hangUp()
						default:
							return
						}
						check("at the end", end.want)
					}))
					r := httptest.NewRequestWithContext(conn, http.MethodGet, "/version", nil)
					s := request.NewScope(http.Header{}, time.Now())
					s.Info = &request.Info{}
					h.ServeHTTP(httptest.NewRecorder(), r.WithContext(request.With(conn, s)))
					check("behind it", end.want)
				})
			})
		}
	}
}
