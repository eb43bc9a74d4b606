package transcode

import (
	"bytes"
	"encoding/base64"
	"encoding/binary"
	"strconv"
	"time"
	"unicode/utf8"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// Tags of the fields of messages that are written here.
const (
	varint1 = 1 << 3
	varint2 = 2 << 3
	bytes1  = 1<<3 | 2
	bytes3  = 3<<3 | 2
)

// messageOf returns a message, with its length, of the bytes that content appends.
func messageOf(tag []byte, content value) value {
	return func(w *walk, i int) int {
		w.dst = append(append(w.dst, tag...), 0)
		at := len(w.dst)
		if i = content(w, i); i >= 0 {
			w.dst = tagged.Measured(w.dst, at)
		}
		return i
	}
}

// str reads a string and returns its content: a part of the text, unless it has escapes. It gives up at text
// that decoding would change.
func (w *walk) str(i int) (s []byte, end int) {
	end, has := scan.String(w.data, i)
	if end < 0 {
		return nil, -1
	}
	s = w.data[i+1 : end-1]
	if has == 0 {
		return s, end
	}
	if !utf8.Valid(s) {
		return nil, -1
	}
	if has&scan.Escaped != 0 {
		if bytes.Contains(s, []byte(`\ud`)) || bytes.Contains(s, []byte(`\uD`)) {
			return nil, -1
		}
		s = []byte(scan.Unquote(w.data[i:end]))
	}
	return s, end
}

// ascii is str for short values without escapes. The string is good as long as the text is.
func (w *walk) ascii(i int) (s string, end int) {
	end, has := scan.String(w.data, i)
	if end < 0 || has != 0 {
		return "", -1
	}
	b := w.data[i+1 : end-1]
	return unsafe.String(unsafe.SliceData(b), len(b)), end
}

func (w *walk) bytes(s []byte) {
	w.dst = append(binary.AppendUvarint(w.dst, uint64(len(s))), s...)
}

func text(tag []byte) value {
	return func(w *walk, i int) int {
		s, end := w.str(i)
		if end >= 0 {
			w.dst = append(w.dst, tag...)
			w.bytes(s)
		}
		return end
	}
}

func boolean(tag []byte) value {
	return func(w *walk, i int) int {
		truth := byte(1)
		end := scan.Word(w.data, i, "true")
		if end < 0 {
			truth, end = 0, scan.Word(w.data, i, "false")
		}
		if end >= 0 {
			w.dst = append(append(w.dst, tag...), truth)
		}
		return end
	}
}

// number reads a whole number.
func (w *walk) number(i, size int) (n int64, end int) {
	if end = scan.Number(w.data, i); end < 0 {
		return 0, -1
	}
	digits := w.data[i:end]
	n, err := strconv.ParseInt(unsafe.String(unsafe.SliceData(digits), len(digits)), 10, size)
	if err != nil {
		return 0, -1
	}
	return n, end
}

func integer(tag []byte, size int) value {
	return func(w *walk, i int) int {
		n, end := w.number(i, size)
		if end >= 0 {
			w.dst = binary.AppendUvarint(append(w.dst, tag...), uint64(n))
		}
		return end
	}
}

// elements returns a field that is repeated.
func elements(elem value) value {
	return func(w *walk, i int) int {
		return scan.Tight.Elements(w.data, i, func(at int) (int, bool) { return elem(w, at), true })
	}
}

// entries returns a map: a message of key and value for each entry, in the order of the keys.
func entries(tag []byte, elem value) value {
	return func(w *walk, i int) int {
		var last []byte
		first := true
		return scan.Tight.Members(w.data, i, func(name scan.Name, at int) (int, bool) {
			key, end := w.str(name.At)
			if end < 0 || !first && bytes.Compare(last, key) >= 0 {
				return -1, false
			}
			last, first = key, false
			w.dst = append(append(w.dst, tag...), 0)
			begin := len(w.dst)
			w.dst = append(w.dst, bytes1)
			w.bytes(key)
			if end = elem(w, at); end < 0 {
				return -1, false
			}
			w.dst = tagged.Measured(w.dst, begin)
			return end, true
		})
	}
}

func base64Bytes(tag []byte) value {
	return func(w *walk, i int) int {
		s, end := w.ascii(i)
		if end < 0 {
			return -1
		}
		w.dst = append(append(w.dst, tag...), 0)
		at := len(w.dst)
		var err error
		if w.dst, err = base64.StdEncoding.AppendDecode(w.dst, w.data[i+1:i+1+len(s)]); err != nil {
			return -1
		}
		w.dst = tagged.Measured(w.dst, at)
		return end
	}
}

// rawJSON returns a value that a message carries as JSON.
func rawJSON(w *walk, i int) int {
	if i < len(w.data) && w.data[i] == 'n' {
		return -1 // null means no value, not the text "null"
	}
	end := scan.Skip(w.data, i)
	if end >= 0 {
		w.dst = append(w.dst, bytes1)
		w.bytes(w.data[i:end])
	}
	return end
}

func quantity(w *walk, i int) int {
	s, end := w.ascii(i)
	if end < 0 || !quantities.Fits(s) {
		return -1
	}
	q, err := resource.ParseQuantity(s)
	if err != nil {
		return -1
	}
	w.dst = append(w.dst, bytes1)
	w.bytes([]byte(q.String()))
	return end
}

func intOrString(w *walk, i int) int {
	if i < len(w.data) && w.data[i] == '"' {
		s, end := w.str(i)
		if end >= 0 {
			w.dst = append(w.dst, varint1, byte(intstr.String), varint2, 0, bytes3)
			w.bytes(s)
		}
		return end
	}
	n, end := w.number(i, 32)
	if end >= 0 {
		w.dst = binary.AppendUvarint(append(w.dst, varint1, byte(intstr.Int), varint2), uint64(n))
		w.dst = append(w.dst, bytes3, 0)
	}
	return end
}

// seconds returns a time as metav1.Time has it, micros as metav1.MicroTime.
func seconds(w *walk, i int) int { return w.time(i, time.RFC3339, 0) }
func micros(w *walk, i int) int  { return w.time(i, metav1.RFC3339Micro, time.Microsecond) }

// time returns a point in time, to a fraction of a second, or to the second (0).
func (w *walk) time(i int, layout string, fraction time.Duration) int {
	s, end := w.ascii(i)
	if end < 0 {
		return -1
	}
	at, err := time.Parse(layout, s)
	if err != nil {
		return -1
	}
	if at.IsZero() {
		return end // an empty message
	}
	nanos := time.Duration(0)
	if fraction > 0 {
		nanos = time.Duration(at.Nanosecond()).Truncate(fraction)
	}
	w.dst = binary.AppendUvarint(append(w.dst, varint1), uint64(at.Unix()))
	w.dst = binary.AppendUvarint(append(w.dst, varint2), uint64(nanos))
	return end
}
