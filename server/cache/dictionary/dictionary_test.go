package dictionary_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache/dictionary"
)

// pods are values of one form, which differ in a small part.
func pods(n int) [][]byte {
	random := rand.New(rand.NewPCG(1, 2))
	out := make([][]byte, n)
	for i := range out {
		out[i] = fmt.Appendf(nil, `{"metadata":{"name":"web-%d","uid":"%016x%016x","labels":{"app":"web-%d"}},"spec":%s,"status":{"podIP":"10.1.%d.%d"}}`,
			i, random.Uint64(), random.Uint64(), i/20, strings.Repeat(`{"containers":[{"name":"main","image":"registry.example.com/web"}]}`, 20), i>>8, i&255)
	}
	return out
}

func TestPacksWhatIsAlike(t *testing.T) {
	values := pods(200)
	d := dictionary.New(values[:10])
	room := make([]byte, dictionary.BufferSize(1<<20))
	for _, v := range values {
		packed := d.Pack(room, v)
		if packed == nil || len(packed) > len(v)/8 {
			t.Fatalf("%d bytes became %d", len(v), len(packed))
		}
		got, err := d.Unpack([]byte("before "), packed)
		if err != nil || string(got) != "before "+string(v) {
			t.Fatalf("came back as %.100s (%v)", got, err)
		}
	}
}

func TestDoesNotPackWhatDoesNotPay(t *testing.T) {
	d := dictionary.New(pods(10))
	noise := make([]byte, 4096)
	random := rand.NewChaCha8([32]byte{7})
	_, _ = random.Read(noise)
	room := make([]byte, dictionary.BufferSize(len(noise)))
	for name, v := range map[string][]byte{"noise": noise, "little": []byte("{}"), "nothing": nil} {
		if got := d.Pack(room, v); got != nil {
			t.Errorf("%s: %d bytes were packed into %d", name, len(v), len(got))
		}
	}
	if got := d.Pack(room[:100], pods(1)[0]); got != nil {
		t.Error("packed without room")
	}
	if d := dictionary.New([][]byte{[]byte("short")}); d != nil {
		t.Error("made of next to nothing")
	}
	if d := dictionary.New(nil); d != nil {
		t.Error("made of nothing")
	}
}

func TestLargeSamplesAreCut(t *testing.T) {
	large := bytes.Repeat(pods(1)[0], 100)
	d := dictionary.New([][]byte{large, large, large})
	room := make([]byte, dictionary.BufferSize(len(large)))
	got, err := d.Unpack(nil, d.Pack(room, large))
	if err != nil || !bytes.Equal(got, large) {
		t.Fatalf("a value larger than the dictionary: %v", err)
	}
}

func FuzzPack(f *testing.F) {
	values := pods(20)
	d := dictionary.New(values)
	for _, v := range values[:3] {
		f.Add(v)
	}
	f.Fuzz(func(t *testing.T, v []byte) {
		packed := d.Pack(make([]byte, dictionary.BufferSize(len(v))), v)
		if packed == nil {
			return
		}
		if got, err := d.Unpack(nil, packed); err != nil || !bytes.Equal(got, v) {
			t.Fatalf("%q came back as %q (%v)", v, got, err)
		}
	})
}

// FuzzUnpack: bytes that are no packed value give an error or some value, never more than
// their announced length, and no panic.
func FuzzUnpack(f *testing.F) {
	values := pods(20)
	d := dictionary.New(values)
	f.Add(bytes.Clone(d.Pack(make([]byte, dictionary.BufferSize(1<<16)), values[0])))
	f.Fuzz(func(t *testing.T, b []byte) {
		if len(b) > 5 {
			b[0] &= 0x7f // a length that a test has memory for
		}
		_, _ = d.Unpack(nil, b)
	})
}

func BenchmarkPack(b *testing.B) {
	values := pods(2000)
	d := dictionary.New(values[:14])
	room := make([]byte, dictionary.BufferSize(1<<16))
	b.Run("Pack", func(b *testing.B) {
		b.SetBytes(int64(len(values[0])))
		for i := range b.N {
			d.Pack(room, values[i%len(values)])
		}
	})
	var packed [][]byte
	for _, v := range values {
		packed = append(packed, bytes.Clone(d.Pack(room, v)))
	}
	dst := make([]byte, 0, 1<<16)
	b.Run("Unpack", func(b *testing.B) {
		b.SetBytes(int64(len(values[0])))
		for i := range b.N {
			_, _ = d.Unpack(dst, packed[i%len(packed)])
		}
	})
}
