package store

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// TestRewriteLeavesPast: a past state that the keys do not open is an error, because a key that still encrypts history must not be
// removed.
func TestRewriteLeavesPast(t *testing.T) {
	dir := t.TempDir()
	config := filepath.Join(dir, "encryption.yaml")
	text := "kind: EncryptionConfiguration\napiVersion: apiserver.config.k8s.io/v1\nresources:\n- resources: [secrets]\n  providers:\n  - aesgcm: {keys: [{name: new, secret: " +
		base64.StdEncoding.EncodeToString(bytes.Repeat([]byte("k"), 32)) + "}]}\n  - identity: {}\n"
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "test.db")
	d, err := sqlite.Open(t.Context(), path, sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	const secret = `{"kind":"Secret","apiVersion":"v1","metadata":{"name":"a","namespace":"default"}}`
	for i, value := range []string{secret, sqlstore.SealHead("aesgcm", "lost") + "?", secret} {
		op := sqlstore.Op{Verb: sqlstore.Update, Key: sqlstore.Key{Resource: "secrets", Namespace: "default", Name: "a"}, Expect: int64(i), Value: []byte(value)}
		if i == 0 {
			op.Verb = sqlstore.Create
		}
		if out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{op}}}, time.Now()); err != nil || out[0].Err != nil {
			t.Fatal(err, out)
		}
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	o := &database.Options{Store: "sqlite:" + path, Encryption: config, Output: "table", Out: &out, ErrOut: &out}
	err = (&rewriteOptions{all: true}).run(t.Context(), o)
	if err == nil || !strings.Contains(err.Error(), "1 past states cannot be read") {
		t.Errorf("%v\n%s", err, out.String())
	}
	if !strings.Contains(out.String(), "wrote 1 and 2") {
		t.Errorf("the rest was not written: %s", out.String())
	}
}
