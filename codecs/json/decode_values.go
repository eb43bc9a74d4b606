package json

import (
	"encoding/base64"
	"strconv"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/codecs/json/scan"
	"github.com/rowlock/rowlock/codecs/quantities"
)

// The decoders of values that have nothing inside, or keep their own text.

func readString(s *source, p unsafe.Pointer) bool {
	if s.null() {
		return true
	}
	text, ok := s.str()
	if ok {
		*(*string)(p) = text
	}
	return ok
}

func readBool(s *source, p unsafe.Pointer) bool {
	switch {
	case s.null():
	case s.word("true"):
		*(*bool)(p) = true
	case s.word("false"):
		*(*bool)(p) = false
	default:
		return false
	}
	return true
}

func readTime(s *source, p unsafe.Pointer) bool {
	t, ok := s.time(time.RFC3339)
	if ok {
		(*metav1.Time)(p).Time = t
	}
	return ok
}

func readMicroTime(s *source, p unsafe.Pointer) bool {
	t, ok := s.time(metav1.RFC3339Micro)
	if ok {
		(*metav1.MicroTime)(p).Time = t
	}
	return ok
}

func readQuantity(s *source, p unsafe.Pointer) bool {
	start := s.space()
	if !s.skip() {
		return false
	}
	text := s.text[start:s.at]
	return quantities.Fits(text) && (*resource.Quantity)(p).UnmarshalJSON([]byte(text)) == nil
}

func readIntOrString(s *source, p unsafe.Pointer) bool {
	v := (*intstr.IntOrString)(p)
	if s.peek() == '"' {
		text, ok := s.str()
		*v = intstr.IntOrString{Type: intstr.String, StrVal: text}
		return ok
	}
	if s.peek() == 'n' {
		return false
	}
	n, ok := s.integer(32)
	*v = intstr.IntOrString{Type: intstr.Int, IntVal: int32(n)}
	return ok
}

func (s *source) time(layout string) (time.Time, bool) {
	if s.null() {
		return time.Time{}, true
	}
	text, ok := s.str()
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(layout, text)
	return t.Local(), err == nil
}

func (s *source) base64(p *[]byte) bool {
	if s.null() {
		return true
	}
	text, ok := s.str()
	if !ok {
		return false
	}
	data, err := base64.StdEncoding.DecodeString(text)
	*p = data
	return err == nil
}

// raw takes a value as it is written.
func (s *source) raw(p *[]byte) bool {
	if s.null() {
		return true
	}
	start := s.space()
	if !s.skip() {
		return false
	}
	*p = []byte(s.text[start:s.at])
	return true
}

// integer reads a whole number, or takes null for an unchanged zero.
func (s *source) integer(bits int) (int64, bool) {
	if s.null() {
		return 0, true
	}
	start := s.space()
	if !s.move(scan.Number(s.data, start)) {
		return 0, false
	}
	n, err := strconv.ParseInt(s.text[start:s.at], 10, bits)
	return n, err == nil
}
