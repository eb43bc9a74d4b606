package cache

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"runtime"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestOverlongLengths: what a copy may have as labels and owners is what common can read to its end.
func TestOverlongLengths(t *testing.T) {
	overlong := []byte{0x80, 0x80, 0x80, 0x80, 0x80, 0} // nothing, in six bytes
	if validLabels(append(bytes.Clone(overlong), 0)) {
		t.Error("as the key of a label")
	}
	if validOwners(append(append([]byte{1}, overlong...), 0, 0, 0)) {
		t.Error("as the version of an owner")
	}
	if !validLabels(appendText(appendText(nil, "a"), "b")) || !validOwners([]byte{1, 0, 0, 0, 0}) {
		t.Error("what is right is refused")
	}
}

// oneRow is a database of one row.
type oneRow struct {
	sqlstore.Copier
	row sqlstore.Row
}

func (o oneRow) ReadRows(_ context.Context, _ []int64, take func([]sqlstore.Row) error) error {
	return take([]sqlstore.Row{o.row})
}

// TestCheckCopyMeetsBrokenBytes: packed bytes that do not come back are made anew from their row, and end nothing.
func TestCheckCopyMeetsBrokenBytes(t *testing.T) {
	value := []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"b"}}`)
	c := New(nil)
	s := c.resource("pods")
	row := sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Revision: 1, Created: 1, Value: value}
	it := bareItem(&row, &s.home)
	broken := []byte{80, 0xff, 0xff, 0xff} // 80 bytes, of nothing
	if n, err := dictionary.Size(broken); err != nil || n != 80 {
		t.Fatal(n, err)
	}
	with := &packing{dictionary.New([][]byte{bytes.Repeat(value, 100)})}
	it.body.Store(&body{data: broken, with: &shape{objects: with}, size: 79})
	s.alter(func() { s.set(it, nil) })
	done, err := c.CheckCopy(t.Context(), oneRow{row: row}, 1, 1)
	if err != nil || len(done.Wrong) != 1 || done.Wrong[0] != row.Key {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := c.Get("pods", "a", "b").JSON(); !bytes.Contains(got, []byte(`"resourceVersion":"1"`)) {
		t.Errorf("it is %s", got)
	}
}

// TestBrokenBytesAreReadAgain: an object whose packed bytes do not come back is as its row has it for whoever reads it,
// in whatever way, and ends nothing.
func TestBrokenBytesAreReadAgain(t *testing.T) {
	row := sqlstore.Row{
		Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Revision: 1, Created: 1,
		Value: []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"b"}}`),
	}
	with := &packing{dictionary.New([][]byte{bytes.Repeat(row.Value, 100)})}
	for name, read := range map[string]func(it *Item) []byte{
		"JSON": (*Item).JSON, "Peek": (*Item).Peek,
		"PeekIn":     func(it *Item) []byte { room := []byte("x"); return it.PeekIn(&room) },
		"Line":       func(it *Item) []byte { return bytes.TrimSuffix(it.Line(), []byte("\n")) },
		"AppendJSON": func(it *Item) []byte { return bytes.TrimPrefix(it.AppendJSON([]byte("x")), []byte("x")) },
	} {
		c := New(nil)
		s := c.resource("pods")
		right := s.read(&row, nil)
		it := &Item{Namespace: "a", Name: "b", Revision: 1, Created: 1, head: right.head, home: &s.home}
		broken := append([]byte{byte(right.Size() + 1)}, 0xff, 0xff, 0xff)
		if n, err := dictionary.Size(broken); err != nil || n != right.Size()+1 {
			t.Fatal(n, err)
		}
		it.body.Store(&body{data: broken, with: &shape{objects: with}, size: int32(right.Size())})
		s.alter(func() { s.set(it, nil) })
		var from sqlstore.Copier = oneRow{row: row}
		c.rows.Store(&from)
		if got := read(it); !bytes.Equal(got, right.JSON()) {
			t.Errorf("%s: %s, want %s", name, got, right.JSON())
		}
		if it.body.Load().packed() {
			t.Errorf("%s: it is still as it was", name)
		}
	}
}

// TestCheckCopyMakesNoGarbage: the rows of everything pass by, so none of them gets memory of its own.
func TestCheckCopyMakesNoGarbage(t *testing.T) {
	value := append(append([]byte(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"b","namespace":"a"},"x":"`), bytes.Repeat([]byte("x"), 64<<10)...), `"}`...)
	c := New(nil)
	s := c.resource("pods")
	row := sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Revision: 1, Created: 1, Value: value}
	it := s.read(&row, nil)
	k := copyCheck{cache: c, s: s}
	one := func() {
		if !k.same(it, &row) {
			t.Error("it is not as its row")
		}
	}
	one()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 100 {
		one()
	}
	runtime.ReadMemStats(&after)
	if bytes := (after.TotalAlloc - before.TotalAlloc) / 100; bytes > 16<<10 {
		t.Errorf("holding an object of 64 KiB to its row made %d bytes of memory", bytes)
	}
}

// lentRows is a database that lends its rows in one piece: what it makes for that is nothing.
type lentRows struct {
	sqlstore.Copier
	rows, piece []sqlstore.Row
}

func (l *lentRows) ReadRows(_ context.Context, revisions []int64, take func([]sqlstore.Row) error) error {
	l.piece = l.piece[:0]
	for _, r := range revisions {
		l.piece = append(l.piece, l.rows[r-1])
	}
	return take(l.piece)
}

// TestCheckCopyReusesItsMemory: a million objects are held to their rows in some minutes, beside requests, and what is
// made for each of them has the heap of all be collected. So no object is made, and no list or map for each piece.
func TestCheckCopyReusesItsMemory(t *testing.T) {
	const n = 2000
	catalogue := kinds.NewCatalogue([]*kinds.Resource{{
		Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true, New: func() kinds.Object { return &corev1.Pod{} },
		Storage: &kinds.Storage{Key: "pods", GVK: corev1.SchemeGroupVersion.WithKind("Pod")},
	}})
	c := New(catalogue)
	s := c.resource("pods")
	l := &lentRows{}
	for i := range n {
		key := sqlstore.Key{Resource: "pods", Namespace: "a", Name: fmt.Sprint("p", i)}
		value, err := json.Marshal(&corev1.Pod{
			TypeMeta: metav1.TypeMeta{Kind: "Pod", APIVersion: "v1"}, ObjectMeta: metav1.ObjectMeta{Name: key.Name, Namespace: "a"},
			Spec: corev1.PodSpec{NodeName: "n", Containers: []corev1.Container{{Name: "c", Image: "i"}}},
		})
		if err != nil {
			t.Fatal(err)
		}
		row := sqlstore.Row{Key: key, Revision: int64(i + 1), Created: int64(i + 1), Value: value}
		l.rows = append(l.rows, row)
		s.alter(func() { s.set(s.read(&row, nil), nil) })
	}
	var before, after runtime.MemStats
	for range 2 {
		runtime.ReadMemStats(&before)
		if done, err := c.CheckCopy(t.Context(), l, n, 1); err != nil || done.Objects != n {
			t.Fatalf("%+v, %v", done, err)
		}
		runtime.ReadMemStats(&after)
	}
	made, times := (after.TotalAlloc-before.TotalAlloc)/n, float64(after.Mallocs-before.Mallocs)/n
	if made > 400 || times > 3 { // with pools that the race detector empties
		t.Errorf("holding an object to its row made %d bytes of memory, in %.1f pieces", made, times)
	}
}
