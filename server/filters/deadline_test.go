package filters_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/request"
)

// TestAfterADeadline: a request after one that took too long is
// answered as usual, whether that one waited for its body or was answering already.
func TestAfterADeadline(t *testing.T) {
	h := filters.Deadline(time.Hour, fail)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/slow":
			<-r.Context().Done()
		case "/body":
			_, _ = io.Copy(io.Discard, r.Body)
		case "/midway":
			_, _ = io.WriteString(w, "begun;")
			_ = http.NewResponseController(w).Flush()
			<-r.Context().Done()
			time.Sleep(5 * time.Millisecond) // the deadline passes
		}
		fmt.Fprint(w, r.Context().Err())
	}))
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s := request.NewScope(w.Header(), time.Now())
		s.Info = &request.Info{Query: r.URL.Query()}
		h.ServeHTTP(w, r.WithContext(request.With(r.Context(), s)))
	}))
	srv.EnableHTTP2 = true
	srv.StartTLS()
	defer srv.Close()
	const midway = "/midway?timeout=10ms"
	for _, two := range []bool{false, true} {
		transport := srv.Client().Transport.(*http.Transport).Clone()
		if !two {
			transport.ForceAttemptHTTP2, transport.TLSClientConfig.NextProtos = false, []string{"http/1.1"}
		}
		client := &http.Client{Transport: transport, Timeout: time.Minute}
		ask := func(method, path string, body io.Reader) string {
			r, err := http.NewRequest(method, srv.URL+path, body)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := client.Do(r)
			if err != nil {
				return err.Error()
			}
			defer resp.Body.Close()
			answer, err := io.ReadAll(resp.Body)
			if err != nil {
				return err.Error()
			}
			return fmt.Sprint(resp.ProtoMajor, " ", resp.StatusCode, " ", string(answer))
		}
		version := map[bool]string{false: "1", true: "2"}[two]
		// never is a body that is announced and does not come.
		never, end := io.Pipe()
		for _, tc := range []struct {
			method, path string
			body         io.Reader
			want         string
		}{
			{"GET", "/slow?timeout=10ms", nil, "504"},
			{"POST", "/slow?timeout=10ms", strings.NewReader("x"), "504"},
			{"POST", "/body?timeout=10ms", never, "504"},
			{"GET", midway, nil, "begun;context deadline exceeded"},
		} {
			got := ask(tc.method, tc.path, tc.body)
			for limit := 20 * time.Millisecond; tc.path == midway && strings.Contains(got, "504") && limit < time.Minute; limit *= 2 {
				got = ask(tc.method, "/midway?timeout="+limit.String(), nil) // it was not midway yet
			}
			if !strings.Contains(got, tc.want) {
				t.Errorf("HTTP/%s, %s %s: %s, want %s", version, tc.method, tc.path, got, tc.want)
			}
			for range 3 {
				if got, want := ask("GET", "/", nil), version+" 200 <nil>"; got != want {
					t.Errorf("HTTP/%s, after %s %s: %s, want %s", version, tc.method, tc.path, got, want)
				}
			}
		}
		end.Close()
		transport.CloseIdleConnections()
	}
}
