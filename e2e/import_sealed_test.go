package e2e

import (
	"database/sql"
	"encoding/base64"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/archive"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
)

// loot is lootMark as Secrets hold it.
var loot = base64.StdEncoding.EncodeToString([]byte(lootMark))

// TestImportSealed: Secrets that a KMS plugin of the old cluster encrypted come in encrypted
// with a key of the new one, nowhere in between in plain, and are served by it; events come
// if they are asked for, and go when they would have gone.
func TestImportSealed(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	old, data, url := filepath.Join(dir, "old"), filepath.Join(dir, "data"), "sqlite:"+filepath.Join(dir, "store", "rowlock.db")
	for _, folder := range []string{old, filepath.Join(dir, "store")} {
		if err := os.Mkdir(folder, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	plugin := kmstest.New("first")
	endpoint := plugin.Serve(t)
	k := harness.NewKine(t, filepath.Join(old, "state.db"))
	for i, name := range []string{"a", "b", "c"} {
		key := "/registry/secrets/default/" + name
		value := fmt.Appendf(nil, `{"kind":"Secret","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"u-%d"},"data":{"v":%q},"type":"Opaque"}`, name, i, loot)
		k.Put(key, append([]byte("k8s:enc:kms:v2:vault:"), plugin.Stock(t, key, value, i > 0)...))
	}
	k.Put("/registry/configmaps/default/control", []byte(`{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"control","namespace":"default","uid":"cm"},"data":{"v":"`+controlMark+`"}}`))
	for name, seconds := range map[string]int64{"brief": 1, "long": 7200, "usual": 0} {
		k.PutFor("/registry/events/default/"+name, fmt.Appendf(nil, `{"kind":"Event","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"e-%s"},"involvedObject":{"kind":"Pod","namespace":"default","name":"p"},"reason":"Tried"}`, name, name), seconds)
	}
	args := []string{k.Path, "--data-dir", data, "--events", "--encryption-provider-config", string(newEncryptionFile(t, kmsKey(endpoint), identityKey))}
	target := newEncryptionFile(t, gcmKey)

	if _, errOut, err := importInto(t, append(args, "--store", url, "--target-encryption-provider-config", k.Path)...); err == nil || !strings.Contains(errOut, k.Path) {
		t.Errorf("a file that is none: %v, %s", err, errOut)
	}
	args = append(args, "--target-encryption-provider-config", string(target))
	// The spool stays if the database is unavailable.
	if _, errOut, err := importInto(t, append(args, "--store", "sqlite:"+filepath.Join(dir, "none", "x.db"))...); err == nil {
		t.Fatal(errOut)
	}
	wantSealedRows(t, filepath.Join(data, "import.rows"))
	began := time.Now()
	a, errOut, err := importInto(t, append(args, "--store", url)...)
	if err != nil || a.Objects != 7 || !a.Reused || plugin.Calls("Decrypt") == 0 {
		t.Fatalf("%v, %+v, %s", err, a, errOut)
	}
	db := openSQL(t, url)
	if in := keysInUse(t, db, "objects"); len(in) != 1 || in["aesgcm:k2"] != 3 {
		t.Errorf("secrets are under %v", in)
	}
	wantExpiry(t, db, "long", began.Add(2*time.Hour))
	wantExpiry(t, db, "usual", began.Add(time.Hour))
	wantNowhere(t, filepath.Dir(strings.TrimPrefix(url, "sqlite:")), data)

	plugin.Stop() // the new server needs nothing of the old one
	s := harness.StartT(t, harness.Options{Store: url, Args: []string{"--encryption-provider-config=" + string(target)}})
	client := newAPI(t, s)
	for _, name := range []string{"a", "b", "c"} {
		if body := string(want(t, client, 200, http.MethodGet, secretsPath+"/"+name, "", "")); !strings.Contains(body, loot) {
			t.Errorf("%s is %s", name, body)
		}
	}
	const events = "/api/v1/namespaces/default/events/"
	eventually(t, "the event that was to be there for a second is gone", func() bool {
		code, _, err := client.do(t.Context(), http.MethodGet, events+"brief", "", "")
		return err == nil && code == http.StatusNotFound
	})
	want(t, client, 200, http.MethodGet, events+"long", "", "")
	want(t, client, 200, http.MethodGet, events+"usual", "", "")
}

// wantExpiry looks at when an event goes.
func wantExpiry(t *testing.T, db *sql.DB, name string, at time.Time) {
	t.Helper()
	var text string
	if err := db.QueryRowContext(t.Context(), `SELECT expires_at FROM objects WHERE resource = 'events' AND name = $1`, name).Scan(&text); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	found, err := time.Parse(time.RFC3339Nano, text)
	if err != nil || found.Before(at.Add(-time.Minute)) || found.After(at.Add(5*time.Minute)) {
		t.Errorf("%s goes at %s, %v, want %s", name, text, err, at)
	}
}

// wantSealedRows looks at the values in a file between.
func wantSealedRows(t *testing.T, path string) {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	_, rows, err := archive.Rows(f)
	if err != nil {
		t.Fatal(err)
	}
	secrets, plain := 0, 0
	for row, err := range rows {
		if err != nil {
			t.Fatal(err)
		}
		value := string(row.Value)
		if strings.Contains(value, loot) || strings.Contains(value, lootMark) {
			t.Errorf("%s is not encrypted", row.Key)
		}
		if row.Key.Resource == "secrets" {
			secrets++
		}
		if strings.Contains(value, controlMark) {
			plain++
		}
	}
	if secrets != 3 || plain != 1 {
		t.Errorf("the file has %d secrets and %d others that are looked for", secrets, plain)
	}
}

// wantNowhere searches for the content of the Secrets, and for content of no Secret.
func wantNowhere(t *testing.T, folders ...string) {
	t.Helper()
	if len(holds(t, controlMark, folders...)) == 0 {
		t.Error("the search finds nothing at all")
	}
	for _, mark := range []string{lootMark, loot} {
		if found := holds(t, mark, folders...); len(found) > 0 {
			t.Errorf("%q is in %v", mark, found)
		}
	}
}
