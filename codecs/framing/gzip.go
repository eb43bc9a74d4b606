// Package framing compresses large answers with gzip for clients that accept it. Decompression has a bound.
package framing

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	"github.com/klauspost/compress/gzip"
)

// CompressFrom is the size of a body from which on it is compressed.
const CompressFrom = 128 * 1024

// level is the cheapest: the others cost far more time than they save bytes.
const level = gzip.BestSpeed

// Pooled, because each holds about a megabyte of state.
var writers = sync.Pool{New: func() any {
	w, err := gzip.NewWriterLevel(io.Discard, level)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// AcceptsGzip reports whether a client takes gzip. Weights are ignored, as
// stock servers do not.
func AcceptsGzip(r *http.Request) bool {
	for token := range strings.SplitSeq(r.Header.Get("Accept-Encoding"), ",") {
		if strings.TrimSpace(token) == "gzip" {
			return true
		}
	}
	return false
}

// Packed is data compressed as bodies are, to be sent more than once.
func Packed(data []byte) ([]byte, error) {
	var out bytes.Buffer
	zip := writers.Get().(*gzip.Writer)
	defer func() {
		zip.Reset(io.Discard)
		writers.Put(zip)
	}()
	zip.Reset(&out)
	_, err := zip.Write(data)
	if err = errors.Join(err, zip.Close()); err != nil {
		return nil, err
	}
	return bytes.Clone(out.Bytes()), nil
}

// ErrTooLong means that data has more bytes than it may.
var ErrTooLong = errors.New("compressed data is too long")

// Unpacked decompresses at most most bytes. The error wraps ErrTooLong if there are more, or if room, which
// is called before bytes are read, has no room.
func Unpacked(data []byte, most int, room func(bytes int) bool) ([]byte, error) {
	zip, err := gzip.NewReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("reading compressed data: %w", err)
	}
	// The data ends with the length of its last member; most have only one. One byte
	// more, so that the end is found without another piece.
	size := int(min(int64(binary.LittleEndian.Uint32(data[len(data)-4:])), int64(most))) + 1
	var out []byte
	for {
		if !room(size) {
			return nil, fmt.Errorf("there is no room for it: %w", ErrTooLong)
		}
		grown := make([]byte, len(out), len(out)+size)
		copy(grown, out)
		out = grown
		for len(out) < cap(out) {
			n, err := zip.Read(out[len(out):cap(out)])
			out = out[:len(out)+n]
			switch {
			case len(out) > most:
				return nil, ErrTooLong
			case err == io.EOF:
				return out, nil
			case err != nil:
				return nil, fmt.Errorf("reading compressed data: %w", err)
			}
		}
		size = min(max(len(out), 4<<10), most+1-len(out))
	}
}

// Body writes one answer. It compresses bodies of more than CompressFrom bytes if the client accepts gzip. It is for one
// goroutine; Close must be called.
type Body struct {
	w       http.ResponseWriter
	status  int
	gzip    bool
	pending []byte
	started bool
	zip     *gzip.Writer
}

// NewBody makes a Body. compress is the gate of the server; headers but for the
// encoding must be set before the first write.
func NewBody(w http.ResponseWriter, r *http.Request, status int, compress bool) *Body {
	return &Body{w: w, status: status, gzip: compress && AcceptsGzip(r)}
}

// Write takes a part of the body.
func (b *Body) Write(p []byte) (int, error) {
	if b.started {
		return b.out().Write(p)
	}
	if !b.gzip {
		b.start(false)
		return b.w.Write(p)
	}
	if len(b.pending)+len(p) <= CompressFrom {
		b.pending = append(b.pending, p...)
		return len(p), nil
	}
	b.start(true)
	if len(b.pending) > 0 {
		if _, err := b.zip.Write(b.pending); err != nil {
			return 0, err
		}
		b.pending = nil
	}
	return b.zip.Write(p)
}

// Close sends the rest and returns the compressor to the pool.
func (b *Body) Close() error {
	if b.zip != nil {
		err := b.zip.Close()
		b.zip.Reset(io.Discard)
		writers.Put(b.zip)
		b.zip, b.started = nil, true
		return err
	}
	if b.started {
		return nil
	}
	b.start(false)
	if len(b.pending) == 0 {
		return nil
	}
	_, err := b.w.Write(b.pending)
	b.pending = nil
	return err
}

func (b *Body) out() io.Writer {
	if b.zip != nil {
		return b.zip
	}
	return b.w
}

func (b *Body) start(compress bool) {
	b.started = true
	if compress {
		header := b.w.Header()
		header.Set("Content-Encoding", "gzip")
		header.Add("Vary", "Accept-Encoding")
		header.Del("Content-Length")
		b.zip = writers.Get().(*gzip.Writer)
		b.zip.Reset(b.w)
	}
	b.w.WriteHeader(b.status)
}
