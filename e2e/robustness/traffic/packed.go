//go:build unix

package traffic

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Large objects are in a namespace of their own: each is longer than the largest answer that a server sends uncompressed to a client that accepts gzip.
const (
	largeNamespace = "large"
	largeFrom      = 140_000 // bytes
	largeRests     = 10      // between requests, which cost more than others
)

var largeScope = history.Scope{Resource: configMaps.resource, Namespace: largeNamespace}

// large writes two large objects, and reads them, alone and in lists, with compression and without it.
func (c *client) large(ctx context.Context) {
	for ctx.Err() == nil {
		name := c.gens.name(fmt.Sprintf("large%d", c.rand.IntN(2)), c.round)
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: configMaps.resource, Namespace: largeNamespace, Name: name}, Field: "v"}
		body := func() string {
			return fmt.Sprintf(`{"metadata":{"name":%q},"data":{"v":%q,"pad":%q}}`, name, op.ID, hexes(c.rand, largeFrom+c.rand.IntN(largeFrom/2)))
		}
		c.form, c.gzip = history.Whole, c.rand.IntN(3) > 0
		switch n := c.rand.IntN(6); {
		case n < 2:
			op.Kind, op.Field = history.Get, ""
			c.do(op, http.MethodGet, configMaps.path(largeNamespace, name), "", "")
		case n < 4:
			c.someForm()
			c.list(ctx, &history.List{Scope: largeScope, Match: []history.Match{history.Latest, history.Any}[c.rand.IntN(2)]}, 0)
		default:
			op.Kind = history.Set
			c.do(op, http.MethodPatch, configMaps.path(largeNamespace, name), mergePatch, body())
		}
		switch {
		case op.Outcome == history.NotFound:
			op = &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Key: op.Key, Field: "v"}
			c.do(op, http.MethodPost, configMaps.path(largeNamespace, ""), plainJSON, body())
		case op.Outcome == history.Unknown && op.Kind == history.Set:
			c.gens.opened(fmt.Sprintf("large%d", name[len("large")]-'0'))
		}
		for range largeRests {
			c.rest(ctx)
		}
	}
}

// hexes returns n hexadecimal digits, which a compressor shortens by half.
func hexes(r *rand.Rand, n int) string {
	b := make([]byte, n)
	for i := range b {
		b[i] = "0123456789abcdef"[r.IntN(16)]
	}
	return string(b)
}

// plain returns the content of an answer that was read whole. It notes one that is compressed and should not be, or cannot be unpacked; an
// answer that its server did not end is an error, as if its connection had been cut.
func (c *client) plain(header http.Header, path string, answer []byte) ([]byte, error) {
	if header.Get("Content-Encoding") != "gzip" {
		return answer, nil
	}
	if !c.gzip {
		c.rec.Stuck("an answer is compressed, and the client does not accept that: " + path)
	}
	content, err := unzipped(answer)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		c.rec.Stuck(fmt.Sprintf("a compressed answer of %s is wrong: %v", path, err))
	}
	return content, err
}

func unzipped(data []byte) ([]byte, error) {
	r, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	return io.ReadAll(r)
}
