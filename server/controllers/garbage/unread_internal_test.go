package garbage

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/controllers/garbage/graph"
	"github.com/rowlock/rowlock/sqlstore"
)

// lost is a database whose rows can be read no more.
type lost struct{ sqlstore.Attestor }

func (lost) ReadRows(context.Context, []int64, func([]sqlstore.Row) error) error {
	return errors.New("the database cannot be read: a test")
}

// TestValuesThatCannotBeRead: an object whose value can be read neither from the cache file nor from its row stays as the
// collector knows it, is logged, and is looked at again.
func TestValuesThatCannotBeRead(t *testing.T) {
	var log bytes.Buffer
	m, ctx := newMemory(func(c *Collector) { c.Log = slog.New(slog.NewTextHandler(&log, nil)) }), t.Context()
	owners := make([]string, 60) // too many to be kept besides the value
	for i := range owners {
		owners[i] = fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","name":"owner-%d","uid":"owner-%d"}`, i, i)
	}
	for i := range 8 {
		m.config(fmt.Sprint("large-", i), fmt.Sprintf(`"uid":"large-%d","annotations":{"a":"%s"},"ownerReferences":[%s]`, i, strings.Repeat("x", 200_000), strings.Join(owners, ",")))
	}
	m.follow(ctx)
	id := graph.IDOf("large-0")
	if _, known := m.graph.Find(id); !known {
		t.Fatal("it is not followed")
	}
	path := filepath.Join(t.TempDir(), "file")
	cfg := &file.Config{Path: path, Maker: "a test", Leave: func(string) bool { return false }, Attest: func(context.Context, string, [32]byte) error { return nil }}
	if _, err := m.Cache.WriteFile(ctx, cfg, lost{}); err != nil {
		t.Fatal(err)
	}
	m.Cache.BoundPlain(1)
	for range 2 {
		m.Cache.Pack(ctx)
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	item := m.Cache.Get("configmaps", "n", "large-0")
	if err := cache.Try(func() { item.Owners(nil) }); err == nil {
		t.Fatal("its owners were read")
	}
	if !m.processor.process(ctx, id) || !strings.Contains(log.String(), "namespace=n name=large-0") {
		t.Errorf("it is not looked at again, or not logged: %s", log.String())
	}
	m.screen(ctx, item.Revision, []*cache.Item{item})
	m.Cache.End("configmaps")
	m.feed(ctx, m.notifier.take()) // all is read again
	if n, known := m.graph.Find(id); !known || n.Absent {
		t.Errorf("it is gone: %+v", n)
	}
}
