package conns_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log"
	"maps"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/conns"
)

// everything is short but what is not.
var everything = conns.Short{Is: func(_, path string) bool { return path != "/passed" }}

// shortly serves h with short requests, and says in the header which way each took: a
// short one has no other writer below.
func shortly(t *testing.T, short conns.Short, h http.HandlerFunc) (*http.Client, string, *http.Server) {
	t.Helper()
	_, client, url, hs := shortSite(t, conns.NewDelivery(conns.DeliveryConfig{}), true, 0, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/passed" {
			return
		}
		h(w, r)
	}, short)
	hs.ErrorLog = log.New(io.Discard, "", 0)
	gone(t, hs)
	passed(t, client, url)
	return client, url, hs
}

// gone has the end of a test wait for connections whose clients have gone: package http2 keeps
// those for a second that it has told to go away.
func gone(t testing.TB, hs *http.Server) {
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
		defer cancel()
		_ = hs.Shutdown(ctx) // what is left is closed
	})
}

// passed sends the request of a connection that package http2 always serves.
func passed(t *testing.T, client *http.Client, url string) {
	t.Helper()
	resp, err := client.Get(url + "/passed")
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
}

func isDirect(w http.ResponseWriter) bool { return fmt.Sprintf("%T", w) == "*conns.shortAnswer" }

// shown is all that a client sees of an answer.
func shown(client *http.Client, method, url string, body io.Reader) string {
	req, err := http.NewRequest(method, url, body)
	if err != nil {
		return err.Error()
	}
	req.Header["X-Twice"] = []string{"one", "two"}
	resp, err := client.Do(req)
	if err != nil {
		return strings.ReplaceAll(err.Error(), url, "")
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	header := maps.Clone(resp.Header)
	if header.Get("Date") != "" {
		header["Date"] = []string{"a date"}
	}
	return fmt.Sprintf("%s %d %v %d %s %v %v", resp.Proto, resp.StatusCode, header, resp.ContentLength, text, err, resp.Trailer)
}

// TestShortAnswers: answers are the same by package http2 and beside it.
func TestShortAnswers(t *testing.T) {
	large := strings.Repeat("0123456789abcdef", 20_000)
	handlers := map[string]http.HandlerFunc{
		"nothing": func(http.ResponseWriter, *http.Request) {},
		"request": func(w http.ResponseWriter, r *http.Request) {
			body, err := io.ReadAll(r.Body)
			fmt.Fprint(w, r.Method, r.URL, r.RequestURI, r.Host, r.Header, r.ContentLength, r.TransferEncoding, r.Proto, r.ProtoMajor, r.ProtoMinor, r.TLS != nil, r.RemoteAddr != "",
				r.Context().Value(http.ServerContextKey) != nil, r.Context().Value(http.LocalAddrContextKey) != nil, conns.FromContext(r.Context()) != nil, string(body), err)
		},
		"code": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			w.Header().Set("Late", "1")
		},
		"no body": func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNotModified)
			_, err := w.Write([]byte("x"))
			w.Header().Set("Late", fmt.Sprint(err))
		},
		"headers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Warning"] = []string{"a", "b"}
			w.Header().Set("X-Own", "v")
			w.Header().Set("X-Broken", "a\nb")
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(http.StatusCreated)
			_, _ = io.WriteString(w, "{}")
		},
		"length": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			_, _ = io.WriteString(w, "abc")
		},
		"too long": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "3")
			_, err := io.WriteString(w, "abcd")
			_, _ = fmt.Fprint(w, err != nil)
		},
		"twice": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404); w.WriteHeader(200) },
		"large": func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, large) },
		"flushed": func(w http.ResponseWriter, _ *http.Request) {
			for i := range 3 {
				fmt.Fprintln(w, i)
				w.(http.Flusher).Flush()
			}
		},
		"trailers": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Trailer", "X-Sum")
			_, _ = io.WriteString(w, "body")
			w.Header().Set("X-Sum", "4")
			w.Header().Set(http.TrailerPrefix+"X-More", "5")
		},
		"informed": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Link", "x")
			w.WriteHeader(http.StatusEarlyHints)
			_, _ = io.WriteString(w, "done")
		},
		"broken":  func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "some"); panic("broken") },
		"aborted": func(w http.ResponseWriter, _ *http.Request) { panic(http.ErrAbortHandler) },
	}
	var direct atomic.Int32
	h := func(w http.ResponseWriter, r *http.Request) {
		if isDirect(w) {
			direct.Add(1)
		}
		handlers[strings.TrimPrefix(r.URL.Path, "/")](w, r)
	}
	own, at, _ := shortly(t, everything, h)
	standard, from, _ := shortly(t, conns.Short{}, h)
	asked := 0
	for name := range handlers {
		for _, method := range []string{"GET", "POST", "DELETE"} {
			body := func() io.Reader {
				if method == "GET" {
					return nil
				}
				return strings.NewReader("what is sent")
			}
			asked++
			got, want := shown(own, method, at+"/"+name, body()), shown(standard, method, from+"/"+name, body())
			if got, want = strings.ReplaceAll(got, at[8:], "host"), strings.ReplaceAll(want, from[8:], "host"); got != want {
				t.Errorf("%s %s: %.600s\nby package http2: %.600s", method, name, got, want)
			}
		}
	}
	if got := int(direct.Load()); got != asked {
		t.Errorf("%d of %d requests were served beside package http2", got, asked)
	}
}

// TestNotShort: what is no plain, short request is served by package http2.
func TestNotShort(t *testing.T) {
	client, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		n, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprint(w, isDirect(w), n)
	})
	for _, c := range []struct {
		header, value string
		body          io.Reader
		want          string
	}{
		{"", "", strings.NewReader("x"), "true 1"},
		{"", "", io.MultiReader(strings.NewReader("of unknown length")), "false 17"},
		{"", "", bytes.NewReader(make([]byte, 64<<10)), "true 65536"},
		{"", "", bytes.NewReader(make([]byte, 64<<10+1)), "false 65537"},
		{"Te", "trailers", nil, "false 0"},
		{"Expect", "100-continue", strings.NewReader("x"), "false 1"},
		{"Cookie", "a=b", nil, "false 0"},
		{"X-Large", strings.Repeat("x", 300_000), nil, "true 0"},
	} {
		req, _ := http.NewRequest("POST", url+"/", c.body)
		if c.header != "" {
			req.Header.Set(c.header, c.value)
		}
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(c, err)
		}
		text, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if string(text) != c.want {
			t.Errorf("%s: %.20s: %q, want %q", c.header, c.value, text, c.want)
		}
	}
	req, _ := http.NewRequest("GET", url+"/", nil)
	req.Header.Set("X-Large", strings.Repeat("x", 3<<20))
	resp, err := client.Do(req)
	if err == nil {
		_ = resp.Body.Close()
	}
	if err == nil && resp.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("headers of 3 MB: %s", resp.Status)
	}
	passed(t, client, url) // another connection, if that one has ended
}

// TestShortMixed: requests of all sizes, both ways at once, over one connection and its one
// table of headers.
func TestShortMixed(t *testing.T) {
	client, url, _ := shortly(t, everything, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Said", r.Header.Get("X-Say"))
		_, _ = io.Copy(w, r.Body)
	})
	var all sync.WaitGroup
	for i := range 16 {
		all.Go(func() {
			for k := range 60 {
				size := (i*7919 + k*k*131) % 90_000
				body := bytes.Repeat([]byte{byte('a' + i)}, size)
				req, _ := http.NewRequest("POST", url+"/", bytes.NewReader(body))
				say := fmt.Sprint("something that differs ", i, k%5)
				req.Header.Set("X-Say", say)
				resp, err := client.Do(req)
				if err != nil {
					t.Error(err)
					return
				}
				got, err := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if err != nil || !bytes.Equal(got, body) || resp.Header.Get("X-Said") != say {
					t.Errorf("%d bytes of %d came back, %q: %v", len(got), size, resp.Header.Get("X-Said"), err)
					return
				}
			}
		})
	}
	all.Wait()
}
