package json

import (
	"encoding/base64"
	stdjson "encoding/json"
	"reflect"
	"strconv"
	"strings"
	"time"
	"unsafe"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// The encoders of values that have nothing inside, or bring their own text.

func appendBytes(dst []byte, p unsafe.Pointer) ([]byte, error) {
	b := *(*[]byte)(p)
	if b == nil {
		return append(dst, "null"...), nil
	}
	dst = append(dst, '"')
	return append(base64.StdEncoding.AppendEncode(dst, b), '"'), nil
}

func appendTime(dst []byte, p unsafe.Pointer) ([]byte, error) {
	return appendFormatted(dst, (*metav1.Time)(p).Time, time.RFC3339), nil
}

func appendMicroTime(dst []byte, p unsafe.Pointer) ([]byte, error) {
	return appendFormatted(dst, (*metav1.MicroTime)(p).Time, metav1.RFC3339Micro), nil
}

func appendFormatted(dst []byte, t time.Time, layout string) []byte {
	if t.IsZero() {
		return append(dst, "null"...)
	}
	dst = append(dst, '"')
	return append(t.UTC().AppendFormat(dst, layout), '"')
}

func appendQuantity(dst []byte, p unsafe.Pointer) ([]byte, error) {
	data, err := (*resource.Quantity)(p).MarshalJSON()
	if err != nil || !compact(data) {
		return stdEncoder(reflect.TypeFor[resource.Quantity]())(dst, p)
	}
	return append(dst, data...), nil
}

func appendIntOrString(dst []byte, p unsafe.Pointer) ([]byte, error) {
	switch v := (*intstr.IntOrString)(p); v.Type {
	case intstr.Int:
		return strconv.AppendInt(dst, int64(v.IntVal), 10), nil
	case intstr.String:
		return appendString(dst, v.StrVal), nil
	}
	return stdEncoder(reflect.TypeFor[intstr.IntOrString]())(dst, p)
}

func appendFields(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if raw := (*metav1.FieldsV1)(p).Raw; compact(raw) {
		return append(dst, raw...), nil
	}
	return stdEncoder(reflect.TypeFor[metav1.FieldsV1]())(dst, p)
}

func appendExtension(dst []byte, p unsafe.Pointer) ([]byte, error) {
	if raw := (*runtime.RawExtension)(p).Raw; compact(raw) || oneLine(raw) {
		return append(dst, raw...), nil
	}
	return stdEncoder(reflect.TypeFor[runtime.RawExtension]())(dst, p)
}

// oneLine reports whether a value can be written within a line as it is. Extensions keep their spelling: some
// may not change, and a stock server compares their bytes.
func oneLine(raw []byte) bool {
	for _, c := range raw {
		if c < ' ' {
			return false
		}
	}
	return stdjson.Valid(raw)
}

// appendString appends a string literal; encoding/json handles escapes.
func appendString(dst []byte, s string) []byte {
	for i := range len(s) {
		if !safe[s[i]] {
			data, _ := stdjson.Marshal(s) // strings always encode
			return append(dst, data...)
		}
	}
	dst = append(dst, '"')
	dst = append(dst, s...)
	return append(dst, '"')
}

// safe are the bytes that need no escape in a string literal.
var safe = func() (table [256]bool) {
	for c := ' '; c < 0x7f; c++ {
		table[c] = !strings.ContainsRune(`"\<>&`, c)
	}
	return table
}()
