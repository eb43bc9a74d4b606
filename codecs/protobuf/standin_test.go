package protobuf_test

import (
	"bytes"
	"math/rand"
	"reflect"
	"slices"
	"testing"

	gogo "github.com/gogo/protobuf/proto"
	"github.com/gogo/protobuf/sortkeys"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kms "k8s.io/kms/apis/v2"

	"github.com/rowlock/rowlock/codecs/sample"
)

// What is in the place of github.com/gogo/protobuf (codecs/gogo) is held to what messages do by themselves, and
// for those that have no methods to the library that gRPC sends them with.

// generated are the methods that the library asks of a message.
type generated interface {
	gogo.Message
	XXX_Size() int
	XXX_Marshal([]byte, bool) ([]byte, error)
	XXX_Unmarshal([]byte) error
	XXX_Merge(gogo.Message)
	XXX_DiscardUnknown()
}

// TestStandInOfKinds: API types are written and read by their own methods, into what was emptied before.
func TestStandInOfKinds(t *testing.T) {
	types, random, met := sample.Scheme(), rand.New(rand.NewSource(1)), 0
	for _, kind := range sample.Kinds(types) {
		obj, err := types.New(kind)
		if err != nil {
			t.Fatal(err)
		}
		m, ok := obj.(interface {
			gogo.Message
			Marshal() ([]byte, error)
		})
		if !ok {
			continue
		}
		met++
		sample.Fill(random, obj)
		want, err := m.Marshal()
		if err != nil {
			t.Fatal(kind, err)
		}
		got, err := gogo.Marshal(m)
		if err != nil || !bytes.Equal(got, want) {
			t.Fatalf("%s: %v", kind, err)
		}
		other := obj.DeepCopyObject()
		sample.Fill(random, other)
		if err := gogo.Unmarshal(want, other.(gogo.Message)); err != nil {
			t.Fatal(kind, err)
		}
		fresh := reflect.New(reflect.TypeOf(obj).Elem()).Interface().(runtime.Object)
		if err := fresh.(gogo.Unmarshaler).Unmarshal(want); err != nil || !reflect.DeepEqual(other, fresh) {
			t.Fatalf("%s: %v\n%v\n%v", kind, err, other, fresh)
		}
	}
	if met < 100 {
		t.Errorf("only %d kinds were met", met)
	}
	if err := gogo.Unmarshal([]byte{0xff}, &corev1.Pod{}); err == nil {
		t.Error("what is no message is read")
	}
}

// TestStandInOfMessages: messages without such methods are those that gRPC sends.
func TestStandInOfMessages(t *testing.T) {
	m := &kms.EncryptResponse{Ciphertext: []byte("c"), KeyId: "k", Annotations: map[string][]byte{"a.b": {1}, "c.d": {2}, "e.f": nil}}
	want, err := proto.MarshalOptions{Deterministic: true}.Marshal(protoadapt.MessageV2Of(m))
	if err != nil {
		t.Fatal(err)
	}
	wire, err := gogo.Marshal(m)
	if err != nil || len(wire) != len(want) {
		t.Fatalf("%x, %v; want %x in some order", wire, err, want)
	}
	got := &kms.EncryptResponse{KeyId: "other", Annotations: map[string][]byte{"x": nil}}
	if err := gogo.Unmarshal(wire, got); err != nil || !proto.Equal(protoadapt.MessageV2Of(got), protoadapt.MessageV2Of(m)) {
		t.Fatalf("%v, %v", got, err)
	}
	for _, m := range []gogo.Message{m, &kms.StatusRequest{}, &corev1.ConfigMap{Data: map[string]string{"b": "2", "a": "1"}}} {
		g := m.(generated)
		direct, err := gogo.Marshal(m)
		if err != nil || g.XXX_Size() != len(direct) {
			t.Fatalf("%T: %d bytes of %d, %v", m, g.XXX_Size(), len(direct), err)
		}
		wire, err := g.XXX_Marshal(make([]byte, 0, len(direct)), true)
		if err != nil {
			t.Fatal(err)
		}
		read, merged := reflect.New(reflect.TypeOf(m).Elem()).Interface().(generated), reflect.New(reflect.TypeOf(m).Elem()).Interface().(generated)
		if err := read.XXX_Unmarshal(wire); err != nil || read.String() != m.String() {
			t.Errorf("%v, %v; want %v", read, err, m)
		}
		merged.XXX_Merge(m)
		merged.XXX_DiscardUnknown()
		if merged.String() != m.String() {
			t.Errorf("%v; want %v", merged, m)
		}
	}
	grown := &kms.StatusResponse{}
	if err := gogo.Unmarshal([]byte("\x0a\x02v2\xfa\x01\x01x"), grown); err != nil || grown.Version != "v2" || len(grown.XXX_unrecognized) == 0 {
		t.Errorf("%v, %v", grown, err)
	}
	if grown.XXX_DiscardUnknown(); len(grown.XXX_unrecognized) > 0 || grown.Version != "v2" {
		t.Errorf("%v", grown)
	}
	keys := []string{"b", "", "a"}
	if sortkeys.Strings(keys); !slices.IsSorted(keys) {
		t.Errorf("%q", keys)
	}
}
