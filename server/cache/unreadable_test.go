package cache_test

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/sqlstore"
)

// lost is a database whose rows can be read no more.
type lost struct{ *attesting }

func (lost) ReadRows(context.Context, []int64, func([]sqlstore.Row) error) error {
	return errors.New("the database cannot be read: a test")
}

// TestValuesThatAreNowhere: while neither the cache file nor the database can be read, rounds of packing and writing another file
// go on, the objects stay as they are, and they can be read as soon as the database can.
func TestValuesThatAreNowhere(t *testing.T) {
	v, path := copied(t, 600)
	want := hot(t, v)
	c, _ := loadedFrom(t, v, path)
	w, err := c.WriteFile(t.Context(), v.config(path), lost{v}) // from now on rows are read from there
	if err != nil || w.Objects != 601 {
		t.Fatal(w.Objects, err)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	var unreadable *cache.Unreadable
	it := c.Get("pods", "ns1", "p1")
	if err := cache.Try(func() { it.JSON() }); !errors.As(err, &unreadable) {
		t.Fatalf("it was read: %v", err)
	}
	if it.Meta().UID != want.Get("pods", "ns1", "p1").Meta().UID {
		t.Error("its metadata is another")
	}
	c.BoundPlain(1)
	c.Pack(t.Context())
	changed := v.write("ns1", "p1", largePod("p1", 9))
	c.Apply([]sqlstore.Change{changed})
	want.Apply([]sqlstore.Change{changed})
	done, err := c.WriteFile(t.Context(), v.config(path), v)
	if err != nil || done.Objects == 0 {
		t.Fatalf("another file has %d objects: %v", done.Objects, err)
	}
	same(t, "once the database can be read", c, want)
}
