package cbor_test

import (
	"sync"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/cbor"
)

// fresh is an object of a Go type that nothing has encoded before. Types made from it
// hold one another.
type fresh[T any] struct {
	metav1.TypeMeta `json:",inline"`
	Next            *T             `json:"next,omitempty"`
	Times           []metav1.Time  `json:"times,omitempty"`
	More            map[string]any `json:"more,omitempty"`
}

func (f *fresh[T]) DeepCopyObject() runtime.Object { c := *f; return &c }

type (
	one   struct{ fresh[two] }
	two   struct{ fresh[three] }
	three struct{ fresh[one] }
)

// TestFirstUses uses types for the first time in several goroutines at once. It is for
// the race detector, and does not end where first uses wait for each other.
func TestFirstUses(t *testing.T) {
	meta := metav1.TypeMeta{APIVersion: "v1", Kind: "Fresh"}
	data, err := cbor.Codec{}.Encode(nil, &metav1.Status{TypeMeta: meta})
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	begin := make(chan struct{})
	for range 4 {
		for _, newObject := range []func() runtime.Object{
			func() runtime.Object { return &one{} },
			func() runtime.Object { return &two{} },
			func() runtime.Object { return &three{} },
		} {
			wg.Go(func() {
				<-begin
				obj := newObject()
				if _, err := (cbor.Codec{}).Decode(data, obj, codecs.Ignore); err != nil {
					t.Error(err)
				}
				if _, err := (cbor.Codec{}).Message(obj); err != nil {
					t.Error(err)
				}
			})
		}
	}
	close(begin)
	wg.Wait()
}
