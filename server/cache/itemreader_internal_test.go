package cache

import (
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/sqlstore"
)

// TestOverlongMetadata: a file may state the length of metadata in more bytes than necessary, and names and metadata of all
// objects are read all the same.
func TestOverlongMetadata(t *testing.T) {
	var items []*Item
	names := []string{"a", "bc", "d", strings.Repeat("l", textSize), "e", ""}
	for i := range 1000 { // more than share memory
		names = append(names, strings.Repeat("n", i%100))
	}
	for _, name := range names {
		it := &Item{Name: name}
		data := slices.Concat([]byte{byte(2+len(name)) | 0x80, byte((2+len(name))>>7) | 0x80, 0}, []byte("m:"+name))
		it.body.Store(&body{data: &data[0]})
		items = append(items, it)
	}
	new(readBuffers).own(items, nil)
	for i, name := range names {
		if got := string(items[i].body.Load().meta()); items[i].Name != name || got != "m:"+name {
			t.Errorf("%q has the name %q and the metadata %q", name, items[i].Name, got)
		}
	}
}

// TestLongHead: a kind that is so long that an item cannot keep where it ends changes no flag of the item.
func TestLongHead(t *testing.T) {
	value := `{"kind":"` + strings.Repeat("k", maxHead) + `","apiVersion":"v1","metadata":{"name":"x"}}`
	it := NewOwnItem(&sqlstore.Row{Key: sqlstore.Key{Resource: "pods", Name: "x"}, Revision: 1, Created: 1, Value: []byte(value)}, nil)
	if it.Err() != nil || it.Sealed() || it.Older() || !strings.HasPrefix(string(it.Body()), `"kind":"kk`) || it.BodySize() != it.Size()-1 {
		t.Errorf("%v, %v, %v, %.20q", it.Err(), it.Sealed(), it.Older(), it.Body())
	}
}

// TestFiledHead: a file whose object begins at a larger offset than an item can hold is refused.
func TestFiledHead(t *testing.T) {
	meta := (&metadata.Meta{}).AppendPacked(nil, false)
	for head, ok := range map[int]bool{maxHead: true, maxHead + 1: false} {
		r := itemReader{shapes: []*shape{(&shape{}).ready()}, object: file.Object{Head: head, Size: 2 * maxHead, Meta: meta}}
		if _, err := r.packed(&body{}, nil); (err == nil) != ok {
			t.Errorf("%d: %v", head, err)
		}
	}
}
