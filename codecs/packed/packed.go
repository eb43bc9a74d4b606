// Package packed assembles gzip answers from cached compressed pieces, so that an answer that many clients
// request is compressed once, and after a change only the changed pieces are compressed again.
//
// An answer is one gzip member, which every decoder supports; the cache has a limit, and drops the least
// recently used pieces; concurrent callers wait for one of them to make a piece.
package packed

import (
	"bytes"
	"container/list"
	"errors"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// Store keeps compressed pieces.
type Store struct {
	limit int

	mu     sync.Mutex
	size   int
	pieces map[string]*piece
	recent list.List // of *piece, the one used last in front
}

// New returns a store for a number of bytes.
func New(limit int) *Store {
	return &Store{limit: limit, pieces: map[string]*piece{}}
}

// piece is a run of bytes as complete deflate blocks that refer to nothing outside.
type piece struct {
	key  string
	at   *list.Element
	once sync.Once

	data  []byte // nil if it could not be made
	sum   checksum
	err   error
	taken int // of the store's limit
}

// overhead is the approximate memory of a piece in addition to its key and data.
const overhead = 256

// find returns the piece of a key, which may not have been made yet.
func (s *Store) find(key []byte) *piece {
	s.mu.Lock()
	defer s.mu.Unlock()
	p := s.pieces[string(key)]
	if p == nil {
		p = &piece{key: string(key)}
		p.at = s.recent.PushFront(p)
		s.pieces[p.key] = p
	} else {
		s.recent.MoveToFront(p.at)
	}
	return p
}

// made accounts for a piece, or forgets it if it could not be made.
func (s *Store) made(p *piece) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pieces[p.key] != p {
		return
	}
	if p.data == nil {
		s.drop(p)
		return
	}
	p.taken = len(p.data) + len(p.key) + overhead
	s.size += p.taken
	for s.size > s.limit && s.recent.Len() > 0 {
		s.drop(s.recent.Back().Value.(*piece))
	}
}

func (s *Store) drop(p *piece) {
	s.recent.Remove(p.at)
	delete(s.pieces, p.key)
	s.size -= p.taken
}

// Size returns the number of stored bytes.
func (s *Store) Size() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.size
}

// level is the cheapest: the others cost far more time than they save bytes.
const level = flate.BestSpeed

// writers lends compressors, each of which holds about a megabyte of state.
var writers = sync.Pool{New: func() any {
	w, err := flate.NewWriter(io.Discard, level)
	if err != nil {
		panic(err) // the level is a constant
	}
	return w
}}

// raws lends buffers for values that will be compressed.
var raws = sync.Pool{New: func() any { return new([]byte) }}

// maxRaw is the largest memory that is lent again.
const maxRaw = 1 << 20

var errUnmade = errors.New("a piece of the answer could not be made")

// make fills the piece with the output of fill.
func (p *piece) make(fill func([]byte) ([]byte, error)) {
	p.err = errUnmade // should fill panic
	buf := raws.Get().(*[]byte)
	raw, err := fill((*buf)[:0])
	if err != nil {
		p.err = err
		return
	}
	var out bytes.Buffer
	z := writers.Get().(*flate.Writer)
	z.Reset(&out)
	_, err = z.Write(raw)
	if err == nil {
		err = z.Flush() // ends at a whole byte
	}
	z.Reset(io.Discard)
	writers.Put(z)
	if p.err = err; err == nil {
		p.data, p.sum = bytes.Clone(out.Bytes()), sumOf(raw)
	}
	if *buf = raw; cap(raw) <= maxRaw {
		raws.Put(buf)
	}
}

// Stream writes one answer. It is for one goroutine; without Close the answer is
// not whole, and its readers see that.
type Stream struct {
	w     io.Writer
	store *Store
	sum   checksum
	begun bool
}

// NewStream starts an answer.
func NewStream(w io.Writer, s *Store) *Stream { return &Stream{w: w, store: s} }

// The header of a gzip member: deflate, no flags, no time, fastest, unknown system.
var header = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 4, 255}

// maxStored is the maximum size of a block of uncompressed bytes.
const maxStored = 1<<16 - 1

// Verbatim writes a few bytes as they are.
func (s *Stream) Verbatim(b []byte) error { return s.plain(b, false) }

func (s *Stream) plain(b []byte, last bool) error {
	out := make([]byte, 0, len(b)+64)
	if !s.begun {
		s.begun = true
		out = append(out, header...)
	}
	s.sum = s.sum.then(sumOf(b))
	for {
		n := min(len(b), maxStored)
		final := byte(0)
		if last && n == len(b) {
			final = 1
		}
		out = append(out, final, byte(n), byte(n>>8), ^byte(n), ^byte(n>>8))
		out = append(out, b[:n]...)
		if b = b[n:]; len(b) == 0 {
			break
		}
	}
	if last {
		out = s.sum.appendTrailer(out)
	}
	_, err := s.w.Write(out)
	return err
}

// Piece writes the bytes for a key, which never change; fill appends them to its argument if they are not
// cached. Plain comes before the first piece.
func (s *Stream) Piece(key []byte, fill func([]byte) ([]byte, error)) error {
	p := s.store.find(key)
	p.once.Do(func() {
		defer s.store.made(p)
		p.make(fill)
	})
	if p.err != nil {
		return p.err
	}
	s.sum = s.sum.then(p.sum)
	_, err := s.w.Write(p.data)
	return err
}

// Close writes the last bytes, as they are, and the end.
func (s *Stream) Close(last []byte) error { return s.plain(last, true) }

// checksum is the trailer of a gzip member for a run of bytes. The zero value is that of an empty run.
type checksum struct {
	crc   uint32
	size  uint32 // modulo 2^32, as gzip has it
	shift uint32 // x to the number of bits, in the field of the CRC; 0 represents 1
}

func sumOf(b []byte) checksum {
	return checksum{crc32.ChecksumIEEE(b), uint32(len(b)), power(uint64(len(b)) * 8)}
}

// then returns the checksum of a's bytes followed by b's. The CRC of a run is linear: every further bit multiplies
// it by x, and its own is added.
func (a checksum) then(b checksum) checksum {
	return checksum{times(a.crc, b.shift) ^ b.crc, a.size + b.size, times(a.order(), b.order())}
}

func (a checksum) order() uint32 {
	if a.shift == 0 {
		return one
	}
	return a.shift
}

func (a checksum) appendTrailer(dst []byte) []byte {
	for _, v := range []uint32{a.crc, a.size} {
		dst = append(dst, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return dst
}

// Polynomials of degree below 32 over the field of two elements, modulo that of the CRC; the highest bit is
// the coefficient of 1.
const (
	one = 1 << 31
	x   = 1 << 30
)

// times multiplies two polynomials.
func times(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&one != 0 {
			product ^= b
		}
		carry := b & 1
		if b >>= 1; carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}

// power returns x to the nth.
func power(n uint64) uint32 {
	result, square := uint32(one), uint32(x)
	for ; n > 0; n >>= 1 {
		if n&1 != 0 {
			result = times(result, square)
		}
		square = times(square, square)
	}
	return result
}
