package cache

import (
	"bytes"
	"context"
	"testing"

	"github.com/klauspost/compress/s2"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/sqlstore"
)

// oneRow is a database of one row.
type oneRow struct {
	sqlstore.Attestor
	row sqlstore.Row
}

func (o oneRow) ReadRows(_ context.Context, _ []int64, take func([]sqlstore.Row) error) error {
	return take([]sqlstore.Row{o.row})
}

// TestBrokenBytesAreReadAgain: every reader gets an object whose packed bytes are damaged as its row has it, and no
// goroutine ends.
func TestBrokenBytesAreReadAgain(t *testing.T) {
	row := sqlstore.Row{
		Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Revision: 1, Created: 1,
		Value: []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"b"}}`),
	}
	with := &packing.Codec{Dictionary: dictionary.New([][]byte{bytes.Repeat(row.Value, 100)})}
	for name, read := range map[string]func(it *Item) []byte{
		"JSON": (*Item).JSON, "Peek": (*Item).Peek,
		"PeekIn":     func(it *Item) []byte { room := []byte("x"); return it.PeekIn(&room) },
		"Line":       func(it *Item) []byte { return bytes.TrimSuffix(it.Line(), []byte("\n")) },
		"AppendJSON": func(it *Item) []byte { return bytes.TrimPrefix(it.AppendJSON([]byte("x")), []byte("x")) },
	} {
		c := New(nil)
		s := c.resource("pods")
		right := s.read(&row, nil)
		it := &Item{Namespace: "a", Name: "b", Revision: 1}
		it.bits.Store(uint32(right.head()))
		broken := append([]byte{byte(right.Size() + 1)}, 0xff, 0xff, 0xff)
		if n, err := s2.DecodedLen(broken); err != nil || n != right.Size()+1 {
			t.Fatal(n, err)
		}
		it.body.Store(bodyOf(packedData(nil, broken), (&shape{info: &s.storageInfo, objects: with}).ready(), int32(right.Size())))
		s.alter(func() { s.set(it, nil) })
		var from sqlstore.Attestor = oneRow{row: row}
		c.rows.Store(&from)
		if got := read(it); !bytes.Equal(got, right.JSON()) {
			t.Errorf("%s: %s, want %s", name, got, right.JSON())
		}
		if it.body.Load().packed() {
			t.Errorf("%s: it is still as it was", name)
		}
	}
}
