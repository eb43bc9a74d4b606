package schema

import (
	"bytes"
	"crypto/sha512"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"sync"

	"github.com/klauspost/compress/flate"
)

// piece is a part of a document, compressed by itself: documents that share pieces are assembled without
// compressing anything again. A gzip stream can continue after it.
type piece struct {
	packed []byte // deflate blocks, none of them the last one
	size   int64  // of the compressed form
	crc    uint32 // of it, as gzip counts
	sum    [sha512.Size]byte
}

// deflaters pools compressors, which take a megabyte each.
var deflaters sync.Pool

func newPiece(text []byte) (*piece, error) {
	var buf bytes.Buffer
	zw, again := deflaters.Get().(*flate.Writer)
	if again {
		zw.Reset(&buf)
	} else {
		var err error
		if zw, err = flate.NewWriter(&buf, flate.DefaultCompression); err != nil {
			return nil, err
		}
	}
	_, err := zw.Write(text)
	if err = errors.Join(err, zw.Flush()); err != nil {
		return nil, fmt.Errorf("compressing a part of an OpenAPI document: %w", err)
	}
	zw.Reset(io.Discard)
	deflaters.Put(zw)
	return &piece{packed: bytes.Clone(buf.Bytes()), size: int64(len(text)), crc: crc32.ChecksumIEEE(text), sum: sha512.Sum512(text)}, nil
}

// text unpacks a piece.
func (p *piece) text() ([]byte, error) {
	out := bytes.NewBuffer(make([]byte, 0, p.size))
	_, err := out.ReadFrom(flate.NewReader(io.MultiReader(bytes.NewReader(p.packed), bytes.NewReader(lastBlock))))
	return out.Bytes(), err
}

// lastBlock is a deflate block that ends a stream and has nothing in it.
var lastBlock = []byte{3, 0}

// gzipHeader is the shortest header of a gzip member.
var gzipHeader = []byte{0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 0, 255}

// pieces are a document.
type pieces []*piece

// etag returns an ETag derived from the texts of the pieces.
func (all pieces) etag() string {
	sum := sha512.New()
	for _, p := range all {
		sum.Write(p.sum[:])
	}
	return fmt.Sprintf("%X", sum.Sum(nil))
}

// gzip returns the document as one gzip stream.
func (all pieces) gzip() *pieceReader {
	r := &pieceReader{}
	var crc, size uint32
	r.add(int64(len(gzipHeader)), func() ([]byte, error) { return gzipHeader, nil })
	for _, p := range all {
		r.add(int64(len(p.packed)), func() ([]byte, error) { return p.packed, nil })
		crc, size = joinCRC(crc, p.crc, p.size), size+uint32(p.size)
	}
	end := binary.LittleEndian.AppendUint32(bytes.Clone(lastBlock), crc)
	end = binary.LittleEndian.AppendUint32(end, size)
	r.add(int64(len(end)), func() ([]byte, error) { return end, nil })
	return r
}

// plain returns the document as it is; a piece is unpacked when it is read.
func (all pieces) plain() *pieceReader {
	r := &pieceReader{}
	for _, p := range all {
		r.add(p.size, p.text)
	}
	return r
}

// pieceReader is an io.ReadSeeker over parts that it loads one by one.
type pieceReader struct {
	ends []int64 // where each part ends
	of   []func() ([]byte, error)

	at   int64
	have int    // the part whose text is loaded, plus one
	text []byte // its text
}

func (r *pieceReader) add(size int64, text func() ([]byte, error)) {
	if size > 0 {
		r.ends, r.of = append(r.ends, r.size()+size), append(r.of, text)
	}
}

func (r *pieceReader) size() int64 {
	if len(r.ends) == 0 {
		return 0
	}
	return r.ends[len(r.ends)-1]
}

// Read implements io.Reader.
func (r *pieceReader) Read(b []byte) (int, error) {
	if r.at >= r.size() {
		return 0, io.EOF
	}
	i := r.have - 1
	if i < 0 || r.at >= r.ends[i] || r.at < r.ends[i]-int64(len(r.text)) {
		i = 0
		for r.at >= r.ends[i] {
			i++
		}
		text, err := r.of[i]()
		if err != nil {
			return 0, err
		}
		r.have, r.text = i+1, text
	}
	n := copy(b, r.text[int64(len(r.text))-(r.ends[i]-r.at):])
	r.at += int64(n)
	return n, nil
}

// Seek implements io.Seeker.
func (r *pieceReader) Seek(offset int64, whence int) (int64, error) {
	switch whence {
	case io.SeekCurrent:
		offset += r.at
	case io.SeekEnd:
		offset += r.size()
	}
	if offset < 0 {
		return 0, errors.New("seek before the start of a document")
	}
	r.at = offset
	return offset, nil
}

// joinCRC returns the checksum of two texts that follow each other, from the checksums of both and the length of
// the second one: the first checksum, times x to the power of the number of bits in the second text, modulo
// the polynomial of the checksum, plus the second checksum.
func joinCRC(first, second uint32, length int64) uint32 {
	power, square := uint32(1)<<31, uint32(1)<<23 // x^0; x^8, that is a byte
	for ; length > 0; length >>= 1 {
		if length&1 != 0 {
			power = multiply(power, square)
		}
		square = multiply(square, square)
	}
	return multiply(power, first) ^ second
}

// multiply multiplies two polynomials modulo that of the checksum; the highest bit is x^0.
func multiply(a, b uint32) (product uint32) {
	for ; a != 0; a <<= 1 {
		if a&(1<<31) != 0 {
			product ^= b
		}
		carry := b & 1
		b >>= 1
		if carry != 0 {
			b ^= crc32.IEEE
		}
	}
	return product
}
