package packed_test

import (
	"bytes"
	stdgzip "compress/gzip"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/codecs/packed"
)

// unpack reads exactly one gzip member, as strict readers do.
func unpack(t testing.TB, data []byte) string {
	t.Helper()
	from := bytes.NewReader(data)
	r, err := stdgzip.NewReader(from)
	if err != nil {
		t.Fatal(err)
	}
	r.Multistream(false)
	out, err := io.ReadAll(r)
	if err != nil {
		t.Fatal(err)
	}
	if from.Len() != 0 {
		t.Fatalf("%d bytes behind the member", from.Len())
	}
	return string(out)
}

// answer writes pieces between a head and a tail.
func answer(t testing.TB, s *packed.Store, head, tail string, pieces []string, made *atomic.Int64) []byte {
	t.Helper()
	var out bytes.Buffer
	w := packed.NewStream(&out, s)
	if err := w.Verbatim([]byte(head)); err != nil {
		t.Fatal(err)
	}
	for _, p := range pieces {
		err := w.Piece([]byte(p[:min(len(p), 20)]+fmt.Sprint(len(p))), func(dst []byte) ([]byte, error) {
			made.Add(1)
			return append(dst, p...), nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close([]byte(tail)); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestAnswers(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	s := packed.New(1 << 20)
	var made atomic.Int64
	random := func(n int) string {
		b := make([]byte, n)
		for i := range b {
			b[i] = byte(r.UintN(256))
		}
		return string(b)
	}
	for _, tc := range []struct {
		head, tail string
		pieces     []string
	}{
		{"", "", nil},
		{"head", "tail", nil},
		{"{", "}", []string{"a", strings.Repeat("b,", 1000), ""}},
		{strings.Repeat("h", 70000), random(70000), []string{strings.Repeat("pod", 50000), random(40000), random(1)}},
	} {
		want := tc.head + strings.Join(tc.pieces, "") + tc.tail
		for range 2 {
			if got := unpack(t, answer(t, s, tc.head, tc.tail, tc.pieces, &made)); got != want {
				t.Errorf("%d bytes came back, want %d", len(got), len(want))
			}
		}
	}
	if made.Load() != 6 {
		t.Errorf("%d pieces were made, want each once: 6", made.Load())
	}
}

// TestBound: the pieces used last are kept, within the limit.
func TestBound(t *testing.T) {
	const limit = 20_000
	s := packed.New(limit)
	var made atomic.Int64
	piece := func(i int) []string { return []string{fmt.Sprintf("%04d", i) + strings.Repeat("x", 1000)} }
	for i := range 1000 {
		answer(t, s, "", "", piece(i), &made)
		answer(t, s, "", "", piece(0), &made)
		if s.Size() > limit {
			t.Fatalf("%d bytes are kept", s.Size())
		}
	}
	if made.Load() != 1000 {
		t.Errorf("%d pieces were made: the one in use was dropped", made.Load())
	}
	if s.Size() < limit/2 {
		t.Errorf("only %d bytes are kept", s.Size())
	}
	if answer(t, s, "", "", piece(1), &made); made.Load() != 1001 {
		t.Error("the oldest was kept")
	}
}

// TestOneMakes: a request for a piece that is being made waits for it.
func TestOneMakes(t *testing.T) {
	s := packed.New(1 << 20)
	var made atomic.Int64
	pieces := make([]string, 50)
	for i := range pieces {
		pieces[i] = fmt.Sprintf("%04d", i) + strings.Repeat("y", 5000)
	}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if got := unpack(t, answer(t, s, "<", ">", pieces, &made)); got != "<"+strings.Join(pieces, "")+">" {
				t.Error("another answer")
			}
		})
	}
	wg.Wait()
	if made.Load() != int64(len(pieces)) {
		t.Errorf("%d pieces were made, want %d", made.Load(), len(pieces))
	}
}

// TestUnmade: a piece that cannot be made is tried again by the next.
func TestUnmade(t *testing.T) {
	s := packed.New(1 << 20)
	bad := errors.New("bad")
	w := packed.NewStream(io.Discard, s)
	if err := w.Piece([]byte("k"), func([]byte) ([]byte, error) { return nil, bad }); !errors.Is(err, bad) {
		t.Errorf("%v, want the error of the maker", err)
	}
	if s.Size() != 0 {
		t.Errorf("%d bytes are kept", s.Size())
	}
	if err := w.Piece([]byte("k"), func(dst []byte) ([]byte, error) { return append(dst, 'a'), nil }); err != nil {
		t.Error(err)
	}
}
