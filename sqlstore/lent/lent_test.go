package lent_test

import (
	"bytes"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/lent"
)

// TestPieces: rows come as they were added, each with memory of its own for as long as its piece is lent.
func TestPieces(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	length := func() int {
		switch random.IntN(50) {
		case 0:
			return 300_000 // more than a piece
		case 1:
			return 100_000
		}
		return random.IntN(5000)
	}
	var want, got []string
	take := func(rows []sqlstore.Row) error {
		bytesOf := 0
		for i := range rows {
			bytesOf += len(rows[i].Value)
		}
		if len(rows) == 0 || len(rows) > 64 || len(rows) > 1 && bytesOf > 256<<10 {
			t.Errorf("a piece has %d rows of %d bytes", len(rows), bytesOf)
		}
		for i := range rows {
			r := &rows[i]
			got = append(got, fmt.Sprint(r.Revision, r.Created, r.Key, len(r.Value), string(r.Value[:min(3, len(r.Value))])))
			clear(r.Value[:cap(r.Value)])
		}
		return nil
	}
	column := make([]byte, 0, 400_000) // as a database lends it
	for range 3 {
		p := lent.New(take)
		for i := range int64(1000) {
			column = column[:length()]
			for j := range min(3, len(column)) {
				column[j] = byte('a' + i%26)
			}
			namespace, name := fmt.Sprint("n", i/100), fmt.Sprint("p", i)
			key := sqlstore.Key{Resource: "pods", Namespace: namespace, Name: name}
			want = append(want, fmt.Sprint(i, i/2, key, len(column), string(column[:min(3, len(column))])))
			if err := p.Add(i, i/2, []byte("pods"), []byte(namespace), []byte(name), column); err != nil || p.Last != i {
				t.Fatal(p.Last, err)
			}
			clear(column[:cap(column)])
		}
		if err := errors.Join(p.Flush(), p.Flush()); err != nil {
			t.Fatal(err)
		}
		p.End()
	}
	for i := range want {
		if i == len(got) || got[i] != want[i] {
			t.Fatalf("%d rows, of %d the first other one in the place of %s", len(got), len(want), want[i])
		}
	}
	if len(got) != len(want) {
		t.Errorf("%d rows, of %d", len(got), len(want))
	}
}

// TestPiecesRefused: an error of who takes comes back, and what was not handed out is not kept for the next.
func TestPiecesRefused(t *testing.T) {
	refused := errors.New("refused")
	p := lent.New(func([]sqlstore.Row) error { return refused })
	value := bytes.Repeat([]byte("x"), 200<<10)
	add := func(p *lent.Pieces) error { return p.Add(1, 1, []byte("pods"), []byte("n"), []byte("p"), value) }
	if err := add(p); err != nil {
		t.Fatal(err)
	}
	if err := add(p); !errors.Is(err, refused) {
		t.Errorf("the piece that was full: %v", err)
	}
	if p.End(); p.Last != 0 {
		t.Errorf("it is at %d still", p.Last)
	}
	rows := 0
	again := lent.New(func(some []sqlstore.Row) error { rows += len(some); return nil })
	defer again.End()
	if err := errors.Join(add(again), again.Flush()); err != nil || rows != 1 {
		t.Errorf("%d rows, %v", rows, err)
	}
}

// TestPiecesMemory: what is made for a row is its name.
func TestPiecesMemory(t *testing.T) {
	p := lent.New(func([]sqlstore.Row) error { return nil })
	defer p.End()
	resource, namespace, name, value := []byte("pods"), []byte("a namespace that takes memory"), []byte("a name that takes memory, as most do"), make([]byte, 4000)
	made := testing.AllocsPerRun(100, func() {
		for range 100 {
			if err := p.Add(1, 1, resource, namespace, name, value); err != nil {
				t.Fatal(err)
			}
		}
	})
	if made > 100 {
		t.Errorf("%v pieces of memory for 100 rows", made)
	}
}
