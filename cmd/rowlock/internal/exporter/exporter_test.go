package exporter_test

import (
	"bytes"
	"database/sql"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/exporter"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestDamagedObjects: an export that lacks the contents of an object is written, and fails.
func TestDamagedObjects(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range map[string]string{"good": `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"good"}}`, "bad": `{"cut`} {
		op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: name}, Value: []byte(value)}
		if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, form := range []string{"--yaml", "--sql"} {
		var out, errOut bytes.Buffer
		cmd := exporter.Command()
		cmd.SetArgs([]string{form, "--store", "sqlite:" + path})
		cmd.SetOut(&out)
		cmd.SetErr(&errOut)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "1 objects cannot be read") {
			t.Errorf("%s: %v", form, err)
		}
		if !strings.Contains(out.String(), "good") || !strings.Contains(errOut.String(), "exported 2 objects") {
			t.Errorf("%s gave %s\n%s", form, out.String(), errOut.String())
		}
	}
}

// TestFlippedBits: an export to the store of another server counts an object whose checksum does not match as unreadable, although
// its value decodes, and writes nothing.
func TestFlippedBits(t *testing.T) {
	path := filepath.Join(t.TempDir(), "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"good", "bad"} {
		value := fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default"},"data":{"k":"v"}}`, name)
		op := sqlstore.Op{Verb: sqlstore.Create, Key: sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: name}, Value: value}
		if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := db.ExecContext(t.Context(), `UPDATE kv SET value = CAST(replace(CAST(value AS TEXT), '"v"', '"w"') AS BLOB) WHERE name = 'bad'`); err != nil {
		t.Fatal(err)
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	for _, target := range [][]string{{"etcd-snapshot", filepath.Join(t.TempDir(), "snapshot")}, {"kine", "sqlite:" + filepath.Join(t.TempDir(), "kine.db")}} {
		var out, errOut bytes.Buffer
		cmd := exporter.Command()
		cmd.SetArgs(append(target, "--store", "sqlite:"+path))
		cmd.SetOut(&out)
		cmd.SetErr(&errOut)
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		if err := cmd.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "1 objects cannot be read") {
			t.Errorf("%s: %v\n%s", target[0], err, out.String())
		}
	}
}
