package podverbs

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
)

// answering is a pod that answers with a body.
type answering struct {
	mediaType, encoding string
	body                io.Reader
	read                atomic.Int64 // bytes of the body
	closed              atomic.Bool
}

func (a *answering) RoundTrip(r *http.Request) (*http.Response, error) {
	h := http.Header{"Content-Type": {a.mediaType}}
	if a.encoding != "" {
		h.Set("Content-Encoding", a.encoding)
	}
	return &http.Response{StatusCode: http.StatusOK, Header: h, Body: a, Request: r}, nil
}

func (a *answering) Read(p []byte) (int, error) {
	n, err := a.body.Read(p)
	a.read.Add(int64(n))
	return n, err
}

func (a *answering) Close() error {
	a.closed.Store(true)
	return nil
}

// endless repeats a text.
type endless struct {
	text string
	at   int
}

func repeated(text string) io.Reader { return &endless{text: text} }

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		copied := copy(p[n:], e.text[e.at:])
		n, e.at = n+copied, (e.at+copied)%len(e.text)
	}
	return n, nil
}

// packed packs a text of some bytes.
func packed(t *testing.T, encoding string, text io.Reader) []byte {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if encoding == "deflate" {
		w, _ = flate.NewWriter(&out, flate.BestSpeed)
	}
	if _, err := io.Copy(w, text); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// TestPages: links of pages are rewritten, packed or not. A page that is or becomes too long passes as it is, and no more of
// an endless one is read than its client takes.
func TestPages(t *testing.T) {
	const link, rewritten = `<a href="/next">`, `<a href="/proxy/next">`
	long := strings.Repeat("a", maxPage)
	links := link + strings.Repeat("=", maxGrown/len("/proxy"))
	for name, tc := range map[string]struct {
		mediaType, encoding string
		body, want          string
	}{
		"a page":            {"text/html; charset=utf-8", "", link, rewritten},
		"packed":            {"text/html", "gzip", string(packed(t, "gzip", strings.NewReader(link))), rewritten},
		"deflated":          {"text/html", "deflate", string(packed(t, "deflate", strings.NewReader(link))), rewritten},
		"no page":           {"text/plain", "", link, link},
		"too long":          {"text/html", "", link + long, link + long},
		"as long as may be": {"text/html", "", link + long[len(link):], rewritten + long[len(link):]},
		"too many links":    {"text/html", "", links, links},
		"not packed":        {"text/html", "gzip", link, link},
		"otherwise packed":  {"text/html", "br", link, link},
	} {
		a := &answering{mediaType: tc.mediaType, encoding: tc.encoding, body: strings.NewReader(tc.body)}
		p := &pages{transport: a, prepend: "/proxy", gate: newPageGate(), user: "u"}
		resp, err := p.RoundTrip(httptest.NewRequest("GET", "http://10.1.2.3/", nil))
		if err != nil {
			t.Fatal(name, err)
		}
		got, err := io.ReadAll(resp.Body)
		if err != nil || string(got) != tc.want {
			t.Errorf("%s: %d bytes, %.100q, %v, want %d, %.100q", name, len(got), got, err, len(tc.want), tc.want)
		}
		encoding := tc.encoding
		if strings.HasPrefix(tc.want, rewritten) {
			encoding = ""
		}
		if resp.Header.Get("Content-Type") != tc.mediaType || resp.Header.Get("Content-Encoding") != encoding {
			t.Errorf("%s: %v", name, resp.Header)
		}
		if _ = resp.Body.Close(); !a.closed.Load() {
			t.Errorf("%s: the answer is not closed", name)
		}
	}
	bomb := string(packed(t, "gzip", io.LimitReader(repeated("<p>"), 100<<20)))
	for name, tc := range map[string]struct {
		encoding string
		body     io.Reader
		start    string
	}{
		"endless":             {"", repeated(link), link + link},
		"unpacks to too much": {"gzip", io.MultiReader(strings.NewReader(bomb), repeated("x")), bomb[:1000]},
		"packs nothing":       {"deflate", repeated("\x00\x00\x00\xff\xff"), "\x00\x00\x00\xff\xff\x00"},
	} {
		a := &answering{mediaType: "text/html", encoding: tc.encoding, body: tc.body}
		p := &pages{transport: a, prepend: "/proxy", gate: newPageGate(), user: "u"}
		resp, err := p.RoundTrip(httptest.NewRequest("GET", "http://10.1.2.3/", nil))
		if err != nil {
			t.Fatal(name, err)
		}
		if n := a.read.Load(); n > maxPage+1 {
			t.Errorf("%s: %d bytes were read before the client took any", name, n)
		}
		got := make([]byte, 3*maxPage)
		if _, err := io.ReadFull(resp.Body, got); err != nil || !strings.HasPrefix(string(got), tc.start) {
			t.Errorf("%s: %.100q, %v", name, got, err)
		}
		_ = resp.Body.Close()
	}
}

// TestPagesAtOnce: a user has some pages in memory, all users have some more, and other pages pass as they are.
func TestPagesAtOnce(t *testing.T) {
	gate := newPageGate()
	rewritten := func(user string) (bool, io.Closer) {
		t.Helper()
		p := &pages{transport: &answering{mediaType: "text/html", body: strings.NewReader(`<a href="/next">`)}, prepend: "/proxy", gate: gate, user: user}
		resp, err := p.RoundTrip(httptest.NewRequest("GET", "http://10.1.2.3/", nil))
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return strings.Contains(string(text), "/proxy/next"), resp.Body
	}
	count := map[string]int{}
	var open []io.Closer
	for _, user := range []string{"a", "b", "c", "d", "e"} {
		for range pagesOfUser + 1 {
			is, body := rewritten(user)
			if open = append(open, body); is {
				count[user]++
			}
		}
	}
	if count["a"] != pagesOfUser || count["e"] > 1 {
		t.Errorf("pages of users: %v", count)
	}
	for _, body := range open {
		_ = body.Close()
		_ = body.Close() // more than once does nothing
	}
	if is, body := rewritten("e"); !is {
		t.Error("there is no room after the end of the others")
	} else {
		_ = body.Close()
	}
}
