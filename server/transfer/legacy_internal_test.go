package transfer

import (
	"bytes"
	"math/rand"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/sample"
)

// TestAlike: what the Go type of a served version reads of a message of the past is what
// the type of that version reads of it, for each kind that is in both.
func TestAlike(t *testing.T) {
	l, types, random := newLayout(""), sample.Scheme(), rand.New(rand.NewSource(1))
	read := map[string]bool{}
	for _, kind := range sample.Kinds(types) {
		now, ok := alike[kind.GroupVersion()]
		served := l.catalogue.LookupKind(now.WithKind(kind.Kind))
		if !ok || served == nil {
			continue
		}
		home := l.catalogue.ByStorage(served.Storage.Key)
		read[kind.GroupVersion().String()] = true
		for i := range 40 {
			typed, err := types.New(kind)
			if err != nil {
				t.Fatal(err)
			}
			if i > 0 { // the first is empty
				sample.Fill(random, typed)
			}
			typed.(metav1.Object).SetManagedFields(nil)
			typed.GetObjectKind().SetGroupVersionKind(kind)
			message, err := l.protobuf.Encode(nil, typed)
			if err != nil {
				t.Fatal(kind, err)
			}
			if typed, err = types.New(kind); err != nil {
				t.Fatal(err)
			}
			if _, err := l.protobuf.Decode(message, typed, codecs.Ignore); err != nil { // what is empty is nothing in a message
				t.Fatal(kind, err)
			}
			got, unknown, err := l.decode(home, message)
			typed.GetObjectKind().SetGroupVersionKind(kind)
			want, _, wantErr := l.decode(home, mustEncode(t, l, typed))
			if err != nil || wantErr != nil || len(unknown) > 0 {
				t.Fatalf("%s: %v, %v, unknown %q", kind, err, wantErr, unknown)
			}
			a, b := mustEncode(t, l, got), mustEncode(t, l, want)
			if !bytes.Equal(a, b) {
				t.Fatalf("%s:\n%s\n%s", kind, a, b)
			}
		}
	}
	for gv := range alike {
		if !read[gv.String()] {
			t.Errorf("%s: no kind of it was read", gv)
		}
	}
}

func mustEncode(t *testing.T, l *layout, obj runtime.Object) []byte {
	t.Helper()
	out, err := l.json.Encode(nil, obj)
	if err != nil {
		t.Fatal(err)
	}
	return out
}
