package json

import (
	"bytes"
	"log/slog"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
)

// broken is a type for which the fast path panics.
type broken struct {
	metav1.TypeMeta `json:",inline"`
	Name            string `json:"name"`
}

func (b *broken) DeepCopyObject() runtime.Object { c := *b; return &c }

// TestPanicked: if the fast path panics, the standard packages process the value; the codec counts the panic, and logs it once
// for each type.
func TestPanicked(t *testing.T) {
	of := reflect.TypeFor[broken]()
	var nothing *int
	all.structDecoder(of).once.Do(func() {
		all.structDecoder(of).fn = func(s *source, p unsafe.Pointer) bool {
			(*broken)(p).Name = "half"
			return s.text[len(s.text)+1] == 0 // beyond the end
		}
	})
	all.structEncoder(of).once.Do(func() {
		all.structEncoder(of).fn = func(dst []byte, _ unsafe.Pointer) ([]byte, error) {
			return append(dst, byte(*nothing)), nil
		}
	})
	all.roots.Store(rootKey{of}, checker(func(c *checking, i int) int { return len(c.data[i-1:]) }))

	var log bytes.Buffer
	c := New(Settings{Log: slog.New(slog.NewTextHandler(&log, nil))})
	const text = `{"kind":"Broken","apiVersion":"v1","name":"whole"}`
	for range 2 {
		got := &broken{}
		if problems, err := c.Decode([]byte(text), got, codecs.Strict); err != nil || len(problems) > 0 || got.Name != "whole" {
			t.Fatal(got, problems, err)
		}
		if c.DecodeClean([]byte(text), &broken{}) {
			t.Error("clean after a panic")
		}
		if out, err := c.Append([]byte("x"), got); err != nil || string(out) != "x"+text {
			t.Fatalf("%s, %v", out, err)
		}
		if _, ok := c.Canonical([]byte(text), got); ok {
			t.Error("canonical after a panic")
		}
		var into broken
		if _, err := c.Unmarshal([]byte(text), &into, codecs.Ignore); err != nil || into.Name != "whole" {
			t.Fatal(into, err)
		}
	}
	if d, e, k := c.Count(Decode, Panicked), c.Count(Encode, Panicked), c.Count(Check, Panicked); d != 6 || e != 2 || k != 2 {
		t.Errorf("failed: %d decodings, %d encodings, %d checks", d, e, k)
	}
	c.Each(func(o Operation, w Outcome, times int64) {
		if w != Panicked && times != 0 {
			t.Errorf("%d operations %v were %v", times, o, w)
		}
	})
	if n := strings.Count(log.String(), "internal error of the JSON codec"); n != 1 {
		t.Errorf("logged %d times: %s", n, &log)
	}
	// Another type is decoded as before.
	if problems, err := c.Decode([]byte(`{"kind":"Status","apiVersion":"v1"}`), &metav1.Status{}, codecs.Strict); err != nil || len(problems) > 0 {
		t.Error(problems, err)
	}
	if c.Count(Decode, Fast) != 1 {
		t.Error("another type was left to the standard packages too")
	}
}
