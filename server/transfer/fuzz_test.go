package transfer_test

import (
	"bytes"
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// sealed is the prefix of values that the fuzzed readers can decrypt.
const sealed = "k8s:enc:plain:v1:k:"

// plainOpener decrypts values that are stored in plain text behind the prefix.
type plainOpener struct{}

func (plainOpener) Open(_ context.Context, _ string, stored []byte) ([]byte, error) {
	if plain, ok := bytes.CutPrefix(stored, []byte(sealed)); ok {
		return plain, nil
	}
	return nil, errors.New("it is encrypted with another key")
}

// stored has a value of each kind in each of its versions and both forms, the first of them also encrypted.
func stored(f *testing.F) (list []foreign.Entry) {
	f.Helper()
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for i, r := range catalogue.Known() {
		if r.Storage == nil {
			continue
		}
		obj, home := sampled(r, int64(i)), catalogue.ByStorage(r.Storage.Key)
		for _, form := range forms {
			value, err := form.Encode(nil, obj)
			if err != nil {
				f.Fatal(err)
			}
			list = append(list, foreign.Entry{Key: keyOf(home, obj), Value: value})
			if i == 0 {
				list = append(list, foreign.Entry{Key: keyOf(home, obj), Value: append([]byte(sealed), value...)})
			}
		}
	}
	return list
}

// fuzzed reads arbitrary values: nothing breaks, an accepted value has the key that it states and is the same
// after the way back, and reasons are short.
type fuzzed struct {
	writer *transfer.Writer
	reader *transfer.Reader
}

func newFuzzed() *fuzzed {
	return &fuzzed{transfer.NewWriter(""), transfer.NewReader(transfer.Options{Events: true, Now: now, Opener: plainOpener{}})}
}

func (z *fuzzed) read(t *testing.T, key string, value []byte) {
	out, err := z.reader.Read(t.Context(), foreign.Entry{Key: key, Value: value, ModRevision: 5})
	if err != nil {
		t.Fatal(err)
	}
	switch out.Disposition {
	case transfer.Taken:
		e, ok, err := z.writer.Entry(out.Row)
		if err != nil || !ok || e.Key != key {
			t.Fatalf("%q comes back as %q: %v", key, e.Key, err)
		}
		again, err := z.reader.Read(t.Context(), e)
		if err != nil || again.Disposition != transfer.Taken || !cmp.Equal(tree(t, again.Row.Value), tree(t, out.Row.Value)) {
			t.Fatalf("%q: %v, %v\n%s\n%s", key, err, again.Err, out.Row.Value, again.Row.Value)
		}
	case transfer.Left:
		if out.Why == "" {
			t.Fatal("no reason")
		}
	case transfer.Damaged:
		if out.Err == nil || len(out.Err.Error()) > 4096 {
			t.Fatalf("%v", out.Err)
		}
	default:
		t.Fatalf("%+v", out)
	}
}

// FuzzRead reads arbitrary keys and values.
func FuzzRead(f *testing.F) {
	for _, e := range stored(f) {
		f.Add(e.Key, e.Value)
	}
	f.Add("/registry/e.io/ws/x", []byte(`{"kind":"W","apiVersion":"e.io/v1","metadata":{"name":"x"}}`))
	f.Add("/registry/e.io/ws/a/x", []byte(sealed+`{"kind":"W","apiVersion":"e.io/v1","metadata":{"name":"x","namespace":"a"}}`))
	f.Add("/registry/poddisruptionbudgets/a/x", []byte(`{"kind":"PodDisruptionBudget","apiVersion":"policy/v1beta1","metadata":{"name":"x","namespace":"a"}}`))
	f.Add("/registry/services/specs/a/x", []byte(`{"kind":"Service","apiVersion":"v1","metadata":{"name":"x","namespace":"a"},"spec":{"clusterIP":"10.0.0.1","ports":[{"nodePort":-1}]}}`))
	f.Add("\x00", []byte("k8s:enc:"))
	z := newFuzzed()
	f.Fuzz(z.read)
}

// FuzzReadPatched replaces bytes somewhere in a sound value: the result is still of the kind, as arbitrary
// bytes seldom are.
func FuzzReadPatched(f *testing.F) {
	values, z := stored(f), newFuzzed()
	for i, e := range values {
		at := uint32(len(e.Value) / 2)
		f.Add(uint16(i), at, uint16(1), []byte{0xff})                   // a byte is another
		f.Add(uint16(i), at, uint16(0), []byte{0x0a, 2, 'x', 'y'})      // a field more
		f.Add(uint16(i), at/2, uint16(8), []byte{})                     // some are gone
		f.Add(uint16(i), uint32(len(e.Value)-1), uint16(1), []byte("")) // cut off
	}
	f.Fuzz(func(t *testing.T, which uint16, at uint32, gone uint16, patch []byte) {
		e := values[int(which)%len(values)]
		from := int(at) % (len(e.Value) + 1)
		to := min(from+int(gone), len(e.Value))
		z.read(t, e.Key, bytes.Join([][]byte{e.Value[:from], patch, e.Value[to:]}, nil))
	})
}
