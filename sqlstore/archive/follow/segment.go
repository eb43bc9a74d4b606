package follow

import (
	"bufio"
	"bytes"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/klauspost/compress/zstd"

	"github.com/rowlock/rowlock/sqlstore"
)

// frame is a frame as it was read. packed is valid until the next one.
type frame struct {
	frameHead
	offset int64 // in the file
	packed []byte
}

// segmentReader reads a segment from its beginning, and checks all that it reads.
type segmentReader struct {
	name   string // of the file, for errors
	in     *bufio.Reader
	header segmentHeader
	sum    sum   // of all that was read
	next   int64 // revision that has to come next
	offset int64 // behind the last whole frame
	ended  bool  // by its last frame
	buf    []byte
}

// newSegmentReader reads the head of a segment. Errors: errTorn and ErrDamaged, with the file's name, and
// those of in.
func newSegmentReader(name string, in io.Reader) (*segmentReader, error) {
	r := &segmentReader{name: name, in: bufio.NewReaderSize(in, 64<<10)}
	data, err := r.in.Peek(longHeader)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var size int
	if r.header, r.sum, size, err = decodeSegment(data); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	r.next, r.offset = r.header.First, int64(size)
	_, err = r.in.Discard(size)
	return r, err
}

func (r *segmentReader) damaged(format string, args ...any) error {
	return fmt.Errorf("%s: %w at byte %d: %s", r.name, ErrDamaged, r.offset, fmt.Sprintf(format, args...))
}

// fill reads b whole; an early end means a segment that was cut off.
func (r *segmentReader) fill(b []byte) error {
	_, err := io.ReadFull(r.in, b)
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return fmt.Errorf("%s: %w at byte %d", r.name, errTorn, r.offset)
	}
	return err
}

// read returns the next frame, whose sum matches. Errors: io.EOF behind the last whole
// frame, errTorn, ErrDamaged.
func (r *segmentReader) read() (f frame, err error) {
	if _, err := r.in.Peek(1); errors.Is(err, io.EOF) {
		return f, io.EOF
	}
	if r.ended {
		return f, r.damaged("it continues after its end")
	}
	var head [headSize]byte
	if err := r.fill(head[:]); err != nil {
		return f, err
	}
	if f.frameHead, err = decodeHead(head[:]); err != nil {
		return f, r.damaged("no frame begins there")
	}
	f.offset = r.offset
	if err := r.body(&f); err != nil {
		return f, err
	}
	var stored sum
	if err := r.fill(stored[:]); err != nil {
		return f, err
	}
	if got := r.sum.then(head[:], f.packed); got != stored {
		return f, r.damaged("the checksum of a frame does not match")
	}
	if f.first != r.next {
		return f, r.damaged("revision %d where %d belongs", f.first, r.next)
	}
	r.sum, r.next = stored, f.last()+1
	r.offset += headSize + int64(f.frameHead.packed) + int64(len(stored))
	r.ended = f.kind == kindEnd
	return f, nil
}

// body reads the compressed part. It allocates memory as bytes arrive, whatever the head states.
func (r *segmentReader) body(f *frame) error {
	const piece = 1 << 20
	r.buf = r.buf[:0]
	for left := int(f.frameHead.packed); left > 0; {
		n, at := min(left, piece), len(r.buf)
		if cap(r.buf) < at+n {
			r.buf = append(make([]byte, 0, max(at+n, 2*cap(r.buf))), r.buf...)
		}
		r.buf = r.buf[:at+n]
		if err := r.fill(r.buf[at:]); err != nil {
			return err
		}
		left -= n
	}
	f.packed = r.buf
	return nil
}

// unpacker unpacks frames. It is for one goroutine, and closed after use.
type unpacker struct {
	zip *zstd.Decoder
	buf []byte
}

func newUnpacker() (*unpacker, error) {
	zip, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(longest))
	return &unpacker{zip: zip}, err
}

func (u *unpacker) close() { u.zip.Close() }

// rows yields the rows of a frame; they are valid until the next frame. Errors: ErrDamaged.
func (u *unpacker) rows(f *frame, each func(*sqlstore.Change) error) (err error) {
	if f.kind != kindRows {
		return nil
	}
	if u.buf, err = u.zip.DecodeAll(f.packed, u.buf[:0]); err != nil {
		return fmt.Errorf("%w: the frame of revision %d cannot be unpacked: %w", ErrDamaged, f.first, err)
	}
	if uint32(len(u.buf)) != f.size {
		return fmt.Errorf("%w: the frame of revision %d has %d bytes, not %d", ErrDamaged, f.first, len(u.buf), f.size)
	}
	rows := rowReader{data: u.buf, revision: f.first}
	for range f.count {
		c, err := rows.next()
		if err != nil {
			return err
		}
		if err := each(&c); err != nil {
			return err
		}
	}
	if len(rows.data) > 0 {
		return fmt.Errorf("%w: the frame of revision %d has more than its rows", ErrDamaged, f.first)
	}
	return nil
}

// endSize is the size of the last frame of a complete segment.
const endSize = headSize + len(sum{})

// endOf reads the last frame of a segment that was ended; ok is false for another.
func endOf(f *os.File, size int64) (h frameHead, last sum, ok bool) {
	var b [endSize]byte
	if size < int64(len(b)) {
		return h, last, false
	}
	if _, err := f.ReadAt(b[:], size-int64(len(b))); err != nil {
		return h, last, false
	}
	h, err := decodeHead(b[:headSize])
	copy(last[:], b[headSize:])
	return h, last, err == nil && h.kind == kindEnd
}

// follows reports whether a segment continues where another ended.
func (h segmentHeader) follows(last sum) bool { return h.Previous == hex.EncodeToString(last[:]) }

// frameIn reports whether a frame begins anywhere in data: then the bytes before it are damaged, and not an
// incomplete end.
func frameIn(data []byte) bool {
	for i := 0; ; i++ {
		n := bytes.Index(data[i:], []byte(magic))
		if n < 0 || len(data)-i-n < headSize {
			return false
		}
		i += n
		if _, err := decodeHead(data[i : i+headSize]); err == nil {
			return true
		}
	}
}
