package podverbs

import (
	"bytes"
	"compress/flate"
	"compress/gzip"
	"context"
	"io"
	"math"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/util/proxy"

	"github.com/rowlock/rowlock/server/fair"
)

// Bounds of the pages whose links are rewritten: the library has a whole page in memory, and its result until the client has
// taken that. What a pod answers beyond these bounds passes unchanged.
const (
	maxPage  = 1 << 20 // bytes of a page, packed and unpacked
	maxGrown = 2 << 20 // bytes by which its links become longer
	// pageWeight is the memory that a page may take. The library writes signs in tags as up to five bytes, into a buffer that
	// doubles.
	pageWeight  = 16 << 20
	pagesOfUser = 4
	pagesOfAll  = 16
)

func newPageGate() *fair.Gate {
	return fair.NewGate(fair.Limits{Places: math.MaxInt32, Weight: pagesOfAll * pageWeight, KeyWeight: pagesOfUser * pageWeight})
}

// pages rewrites links of pages, so that they lead to the path of a proxy.
type pages struct {
	transport http.RoundTripper
	prepend   string
	gate      *fair.Gate
	user      string
}

// RoundTrip implements http.RoundTripper.
func (p *pages) RoundTrip(r *http.Request) (*http.Response, error) {
	one := &page{pages: p}
	resp, err := (&proxy.Transport{PathPrepend: p.prepend, RoundTripper: one}).RoundTrip(r)
	if err != nil {
		one.place.Leave()
		return nil, err
	}
	if one.mediaType != nil {
		resp.Header["Content-Type"] = one.mediaType
	}
	if one.place != nil {
		resp.Body = &held{resp.Body, one.place}
	}
	return resp, nil
}

// held is a body that keeps a place until it is closed.
type held struct {
	io.ReadCloser
	place *fair.Place
}

// Close implements io.Closer.
func (h *held) Close() error {
	h.place.Leave()
	return h.ReadCloser.Close()
}

// page is one answer on its way to the library.
type page struct {
	*pages
	place     *fair.Place // for its memory, if it is rewritten
	mediaType []string    // of a page that is to pass unchanged, hidden from the library; nil: of others
}

// RoundTrip implements http.RoundTripper.
func (p *page) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := p.transport.RoundTrip(r)
	if err != nil || resp.Header.Get("Location") != "" {
		return resp, err
	}
	mediaType, _, _ := strings.Cut(resp.Header.Get("Content-Type"), ";")
	if strings.TrimSpace(mediaType) == "text/html" && !p.take(resp) {
		p.place.Leave()
		p.place = nil
		p.mediaType = resp.Header["Content-Type"]
		resp.Header.Del("Content-Type")
	}
	return resp, nil
}

// take replaces the body of a page by one that is in memory and not packed. It reports false for a page that is to pass
// unchanged, whose body is as it was.
func (p *page) take(resp *http.Response) bool {
	ended, end := context.WithCancel(context.Background())
	end() // it does not wait: without room the page passes unchanged
	var err error
	if p.place, err = p.gate.Enter(ended, p.user, pageWeight); err != nil {
		return false
	}
	var packed bytes.Buffer
	body := resp.Body
	text, err := unpacked(resp.Header.Get("Content-Encoding"), io.TeeReader(io.LimitReader(body, maxPage+1), &packed))
	if err != nil || packed.Len() > maxPage || len(text) > maxPage || bytes.Count(text, []byte("="))*len(p.prepend) > maxGrown {
		resp.Body = struct {
			io.Reader
			io.Closer
		}{io.MultiReader(&packed, body), body}
		return false
	}
	_ = body.Close() // all of it was read
	resp.Body = io.NopCloser(bytes.NewReader(text))
	resp.Header.Del("Content-Encoding")
	return true
}

// unpacked reads a body in an encoding of HTTP, up to a byte more than a page may have.
func unpacked(encoding string, body io.Reader) ([]byte, error) {
	switch encoding {
	case "":
	case "gzip":
		packed, err := gzip.NewReader(body)
		if err != nil {
			return nil, err
		}
		body = packed
	case "deflate":
		body = flate.NewReader(body)
	default:
		return nil, http.ErrNotSupported
	}
	return io.ReadAll(io.LimitReader(body, maxPage+1))
}
