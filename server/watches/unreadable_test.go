package watches_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/cache/file"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
)

// lost is a database whose rows can be read no more.
type lost struct{ sqlstore.Attestor }

func (lost) ReadRows(context.Context, []int64, func([]sqlstore.Row) error) error {
	return errors.New("the database cannot be read: a test")
}

// TestWatchOfTheUnreadable: a watch that comes upon an object whose value can be read neither from the cache file nor from its row
// ends with an ERROR event, be it one of the initial events or the state in which an object leaves the selection.
func TestWatchOfTheUnreadable(t *testing.T) {
	s := newSite(t)
	const n = 8
	name := func(i int) string { return fmt.Sprint("large-", i) }
	for i := range n {
		s.Put("configmaps", "ns", name(i), servertest.ConfigMap(name(i), `"k":"x"`, strings.Repeat("v", 200_000)))
	}
	path := filepath.Join(t.TempDir(), "file")
	cfg := &file.Config{Path: path, Maker: "a test", Leave: func(string) bool { return false }, Attest: func(context.Context, string, [32]byte) error { return nil }}
	if _, err := s.Cache.WriteFile(t.Context(), cfg, lost{}); err != nil {
		t.Fatal(err)
	}
	s.Cache.BoundPlain(1)
	for range 2 {
		s.Cache.Pack(t.Context())
	}
	if err := os.Truncate(path, 0); err != nil {
		t.Fatal(err)
	}
	if err := cache.Try(func() { s.Cache.Get("configmaps", "ns", name(0)).Peek() }); err == nil {
		t.Fatal("it was read")
	}
	before := s.Cache.Revision()
	s.Put("configmaps", "ns", name(1), servertest.ConfigMap(name(1), `"k":"y"`, "v"))
	for _, query := range []string{"resourceVersion=0", fmt.Sprint("labelSelector=k%3Dx&resourceVersion=", before)} {
		code, _, b := s.Fetch(t, "/api/v1/namespaces/ns/configmaps?watch=1&timeoutSeconds=5&"+query)
		var e servertest.Event
		if err := json.Unmarshal(b, &e); err != nil || code != 200 || e.Type != "ERROR" || e.Object.Code != 500 {
			t.Errorf("%s: %d %.300s", query, code, b)
		}
	}
}
