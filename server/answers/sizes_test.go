package answers_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
)

// manyOf returns a page of n items like the first of a kind.
func manyOf(k *kind, n int) *objects.Page {
	p := &objects.Page{Revision: 9, Remaining: -1}
	for i := range n {
		p.Items = append(p.Items, items(k.r, string(bytes.Replace(k.items[0].JSON(), []byte(`"name":"`), fmt.Appendf(nil, `"name":"%x-`, i*i), 1)))...)
	}
	return p
}

// protobufBody returns a page as a client reads it.
func protobufBody(t *testing.T, k *kind, p *objects.Page) string {
	t.Helper()
	q, w := k.request("")
	if err := k.answers().Page(q, codecs.Form{Type: codecs.Protobuf}, p); err != nil {
		t.Fatal(err)
	}
	if got := w.Header().Get("Content-Length"); got != fmt.Sprint(w.Body.Len()) {
		t.Errorf("%s bytes are announced, and %d come", got, w.Body.Len())
	}
	return w.Body.String()
}

// TestManyInProtobuf: lists of few and of many items equal those of a stock server, with unknown
// sizes, with items that keep their messages and without, and again when all or some sizes are
// known.
func TestManyInProtobuf(t *testing.T) {
	k := allKinds(t)[0]
	for _, n := range []int{0, 1, 300, 5000, 66000} {
		p := manyOf(k, n)
		want := ""
		if n <= 5000 {
			want = string(encoded(t, codecs.Form{Type: codecs.Protobuf}, k.list(t, whole, p)))
		}
		for round := range 3 {
			if round == 2 { // half of the items are new
				for i := range p.Items {
					if i%2 == 1 {
						p.Items[i] = items(k.r, string(p.Items[i].JSON()))[0]
					}
				}
			}
			got := protobufBody(t, k, p)
			if want == "" {
				want = got
			}
			if got != want {
				t.Errorf("%d items, round %d: %d bytes, not those of a stock server, which are %d", n, round, len(got), len(want))
			}
			for _, it := range p.Items {
				if _, ok := it.Sized(); !ok {
					t.Fatalf("%d items, round %d: a size was not kept", n, round)
				}
			}
		}
	}
}

// TestMeasuringEnds: finding out sizes ends with the request, and with what cannot be made.
func TestMeasuringEnds(t *testing.T) {
	k := allKinds(t)[0]
	p := manyOf(k, 5000)
	q, w := k.request("")
	q.W = untouched{t, w}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	q.R = q.R.WithContext(ctx)
	if err := k.answers().Page(q, codecs.Form{Type: codecs.Protobuf}, p); !errors.Is(err, context.Canceled) {
		t.Errorf("after the request's end: %v", err)
	}
	q, w = k.request("")
	q.W = untouched{t, w}
	p.Items[4000] = items(k.r, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{},"data":[]}`)[0]
	if err := k.answers().Page(q, codecs.Form{Type: codecs.Protobuf}, p); err == nil {
		t.Error("an item without a message was answered with")
	}
}

// TestPanicWhileMeasuring: a panic in a goroutine of an answer reaches the answer, whose filters
// recover from it.
func TestPanicWhileMeasuring(t *testing.T) {
	k := allKinds(t)[0]
	broken := *k.r
	broken.New = func() kinds.Object { panic("no object") }
	q, w := k.request("")
	q.Resource, q.W = &broken, untouched{t, w}
	defer func() {
		if p := recover(); p != "no object" {
			t.Errorf("recovered from %v", p)
		}
	}()
	err := k.answers().Page(q, codecs.Form{Type: codecs.Protobuf}, manyOf(k, 5000))
	t.Errorf("there was no panic, but %v", err)
}

// TestSizeThatChanges: an answer that would contradict its header is aborted.
func TestSizeThatChanges(t *testing.T) {
	k := allKinds(t)[0]
	p := manyOf(k, 3)
	body := protobufBody(t, k, p)
	n, _ := p.Items[1].Sized()
	p.Items[1].NoteSize(n + 1)
	q, w := k.request("")
	defer func() {
		if reason := recover(); reason == nil || w.Body.Len() >= len(body) {
			t.Errorf("%v, %d bytes of %d", reason, w.Body.Len(), len(body))
		}
	}()
	if err := k.answers().Page(q, codecs.Form{Type: codecs.Protobuf}, p); err != nil {
		t.Error(err)
	}
}
