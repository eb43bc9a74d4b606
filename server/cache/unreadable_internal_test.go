package cache

import (
	"context"
	"errors"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/server/cache/dictionary"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// noRows is a database that cannot be read.
type noRows struct{ sqlstore.Attestor }

func (noRows) ReadRows(context.Context, []int64, func([]sqlstore.Row) error) error {
	return errors.New("the database cannot be read: a test")
}

// unreadablePod makes a live pod of a cache whose packed value is damaged and whose row cannot be read. Its fields are those of
// another storage than the resource has.
func unreadablePod(t *testing.T) (*resource, *Item) {
	t.Helper()
	row := sqlstore.Row{
		Key: sqlstore.Key{Resource: "pods", Namespace: "a", Name: "b"}, Revision: 1, Created: 1,
		Value: []byte(`{"kind":"Pod","apiVersion":"v1","metadata":{"namespace":"a","name":"b","uid":"u","labels":{"app":"x"},"deletionTimestamp":"2020-01-01T00:00:00Z"},"spec":{"nodeName":"n"}}`),
	}
	c := New(nil)
	s := c.resource("pods")
	var from sqlstore.Attestor = noRows{}
	c.rows.Store(&from)
	it := s.read(&row, nil)
	of := (&shape{info: &s.storageInfo, number: 1, objects: &packing.Codec{Dictionary: dictionary.New([][]byte{[]byte(strings.Repeat(string(row.Value), 100))})}}).ready()
	var p packer
	if p.pack(it, of, &packBuffers{}); !it.body.Load().packed() {
		t.Fatal("it was not packed")
	}
	b := it.body.Load().again()
	b.data = packedData(b.meta(), []byte("\xff\xff\xff\xff"))
	it.body.Store(b)
	s.alter(func() { s.set(it, nil) })
	s.setStorage(&kinds.Storage{Key: "pods", Fields: []kinds.SelectableField{{Label: "spec.nodeName", Path: []string{"spec", "nodeName"}}}, Indexed: []string{"spec.nodeName"}})
	return s, it
}

// TestUnreadable: reads of an object outside requests do not end the server, although neither its packed value nor its
// row can be read; methods that need the value panic with what Try returns.
func TestUnreadable(t *testing.T) {
	for name, read := range map[string]func(it *Item){
		"JSON": func(it *Item) { it.JSON() }, "Peek": func(it *Item) { it.Peek() }, "PeekIn": func(it *Item) { it.PeekIn(new([]byte)) },
		"Line": func(it *Item) { it.Line() }, "AppendJSON": func(it *Item) { it.AppendJSON(nil) }, "Written": func(it *Item) { it.Written() },
		"Metadata": func(it *Item) { it.Metadata() },
	} {
		_, it := unreadablePod(t)
		var unreadable *Unreadable
		if err := Try(func() { read(it) }); !errors.As(err, &unreadable) || !strings.HasPrefix(err.Error(), "the packed value of pods/a/b cannot be read, and neither can its row: ") {
			t.Errorf("%s: %v", name, err)
		}
	}

	s, it := unreadablePod(t)
	if m := it.Meta(); m.UID != "u" || !m.Deleting || m.Labels["app"] != "x" || len(m.Fields) != 1 || m.Fields[0] != "" {
		t.Errorf("its metadata is %+v", m)
	}
	if owners := it.Owners(nil); len(owners) != 0 || it.OwnerInfo().UID != "u" {
		t.Errorf("its owners are %v, %v", owners, it.OwnerInfo())
	}
	if got := it.at(2); got.Err() == nil || got.Revision != 2 || len(got.JSON()) != 0 {
		t.Errorf("at another revision it is %+v", got)
	}
	if with := s.packer.shapeOf(s.storage.Load(), 1, func(int) *Item { return it }); with != nil {
		t.Error("a shape was made of it")
	}
	s.buildLabels()
	if s.labels == nil {
		t.Error("labels are not indexed")
	}
	if index(s.items, fieldTerms([]string{fieldTerm + "spec.nodeName"}), nil, never) == nil {
		t.Error("fields are not indexed")
	}
	s.alter(func() {})
	if !s.state().corrupt {
		t.Error("the index of fields is used, from which it may be missing")
	}
	it.info().plain.Limit.Store(1)
	s.core.Pack(t.Context())
	selector, err := labels.Parse("app=x")
	if err != nil {
		t.Fatal(err)
	}
	if !NewFilter(selector, nil).Match(it) {
		t.Error("it is not selected by its label")
	}
}

// TestUnmadeForm: a form or frame whose make panics is made anew by each caller, and is never the empty one.
func TestUnmadeForm(t *testing.T) {
	_, it := unreadablePod(t)
	key := FormKey{Form: FormOther, For: "test"}
	readable := false
	form := func(it *Item) (any, error) {
		if !readable {
			it.JSON()
		}
		return []byte("form"), nil
	}
	d := Delivery{Event: &Event{Item: it}}
	frame := func(EventType, *Item) ([]byte, error) { b, err := form(it); return b.([]byte), err }
	for range 2 {
		if err := Try(func() { _, _ = it.Form(key, form) }); err == nil {
			t.Error("the form was made")
		}
		if err := Try(func() { _, _ = d.Frame("test", frame) }); err == nil {
			t.Error("the frame was made")
		}
	}
	readable = true
	if v, err := it.Form(key, form); err != nil || string(v.([]byte)) != "form" {
		t.Errorf("the form is %v, %v", v, err)
	}
	if v, err := d.Frame("test", frame); err != nil || string(v) != "form" {
		t.Errorf("the frame is %s, %v", v, err)
	}
}
