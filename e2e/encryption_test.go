package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
	"github.com/rowlock/rowlock/sqlstore/encryption/kms/kmstest"
)

const (
	secretsPath = "/api/v1/namespaces/default/secrets"
	// lootMark is in every secret, controlMark in an object that is not encrypted: what
	// finds the one would find the other.
	lootMark    = "xylophones-of-the-treasury"
	controlMark = "trombones-in-the-open-air"
)

// encryptionFile is a file whose providers take turns.
type encryptionFile string

const (
	cbcKey      = `{"aescbc":{"keys":[{"name":"k1","secret":"MDEyMzQ1Njc4OWFiY2RlZg=="}]}}`
	gcmKey      = `{"aesgcm":{"keys":[{"name":"k2","secret":"ZmVkY2JhOTg3NjU0MzIxMA=="}]}}`
	identityKey = `{"identity":{}}`
)

func kmsKey(endpoint string) string {
	return fmt.Sprintf(`{"kms":{"apiVersion":"v2","name":"vault","endpoint":%q,"timeout":"10s"}}`, endpoint)
}

// write puts providers into the file at once, as `mv` does.
func (f encryptionFile) write(t testing.TB, providers ...string) {
	t.Helper()
	text := `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{"resources":["secrets"],"providers":[` + strings.Join(providers, ",") + `]}]}`
	if err := os.WriteFile(string(f)+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(string(f)+".new", string(f)); err != nil {
		t.Fatal(err)
	}
}

func newEncryptionFile(t testing.TB, providers ...string) encryptionFile {
	t.Helper()
	f := encryptionFile(filepath.Join(t.TempDir(), "encryption.json"))
	f.write(t, providers...)
	return f
}

func (f encryptionFile) flags() []string {
	return []string{"--encryption-provider-config=" + string(f), "--encryption-provider-config-automatic-reload", "--v=4", "--history-retention=1h"}
}

// openSQL returns the database of a store as people see it.
func openSQL(t testing.TB, url string) *sql.DB {
	t.Helper()
	driver, source := "pgx", url
	if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
		driver, source = "sqlite", path+"?_pragma=busy_timeout(10000)"
	}
	db, err := sql.Open(driver, source)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// keysInUse counts the live secrets by what encrypted them.
func keysInUse(t testing.TB, db *sql.DB, view string) map[string]int {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT coalesce(encryption_key, 'none'), count(*) FROM `+view+` WHERE resource = 'secrets' GROUP BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	found := map[string]int{}
	for rows.Next() {
		var key string
		var n int
		if err := rows.Scan(&key, &n); err != nil {
			t.Fatal(err)
		}
		found[key] = n
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return found
}

func secretBody(name, value string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q,"annotations":{"mark":%q}},"data":{"v":%q}}`, name, lootMark, base64.StdEncoding.EncodeToString([]byte(lootMark+value)))
}

// secretLoad writes secrets while servers come and go.
type secretLoad struct {
	mu    sync.Mutex
	a     *api
	fates map[string]*fate
	acks  int
	// refused are writes that the database did not take in time.
	refused int
	stop    chan struct{}
	done    sync.WaitGroup
}

func startSecretLoad(t *testing.T, a *api) *secretLoad {
	l := &secretLoad{a: a, fates: map[string]*fate{}, stop: make(chan struct{})}
	for w := range 4 {
		l.done.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-l.stop:
					return
				case <-time.After(5 * time.Millisecond): // the test is not about how much a machine takes
				}
				l.one(t, fmt.Sprintf("w%d-%d", w, i%40), fmt.Sprintf("-%d", i))
			}
		})
	}
	return l
}

// one writes a secret; the outcome is open if the server ends during the write.
func (l *secretLoad) one(t *testing.T, name, value string) {
	l.mu.Lock()
	f := l.fates[name]
	if f == nil {
		f = &fate{}
		l.fates[name] = f
	}
	f.sent = value
	a, first := l.a, f.acked == ""
	l.mu.Unlock()
	method, path := http.MethodPost, secretsPath
	if !first {
		method, path = http.MethodPut, path+"/"+name
	}
	code, answer, err := a.do(context.Background(), method, path, "application/json", secretBody(name, value))
	switch {
	case err != nil:
		time.Sleep(20 * time.Millisecond)
	case code == http.StatusOK || code == http.StatusCreated:
		l.mu.Lock()
		f.acked = value
		l.acks++
		l.mu.Unlock()
	case code == http.StatusConflict && first: // an open write was done after all
		l.mu.Lock()
		f.acked = "?"
		l.mu.Unlock()
	case code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout:
		l.mu.Lock()
		l.refused++
		l.mu.Unlock()
	default:
		t.Errorf("%s %s: %d %s", method, path, code, answer)
	}
}

func (l *secretLoad) use(a *api) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.a = a
}

// more waits until that many more writes were acknowledged.
func (l *secretLoad) more(t testing.TB, n int) {
	t.Helper()
	acks := func() int {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.acks
	}
	from := acks()
	eventually(t, "writes go on", func() bool { return acks() >= from+n })
}

// check reads everything back: each secret is the last acknowledged one, or a later write.
func (l *secretLoad) check(t *testing.T, a *api) {
	t.Helper()
	acked := map[string]int{}
	l.mu.Lock()
	for name, f := range l.fates {
		if f.acked != "" {
			acked[name] = count(f.acked)
		}
	}
	l.mu.Unlock()
	var list struct {
		Items []struct {
			Metadata struct{ Name string }
			Data     map[string][]byte
		}
	}
	if err := json.Unmarshal(want(t, a, 200, http.MethodGet, secretsPath, "", ""), &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, it := range list.Items {
		found[it.Metadata.Name] = strings.TrimPrefix(string(it.Data["v"]), lootMark)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.refused > 0 {
		leniency.Note(t, "%d writes of secrets were answered with 503 or 504", l.refused)
	}
	for name, n := range acked {
		if v, ok := found[name]; !ok || count(v) < n || count(v) > count(l.fates[name].sent) {
			t.Errorf("%s: write %d was acknowledged, %q sent, found %q %v", name, n, l.fates[name].sent, v, ok)
		}
	}
	if len(acked) == 0 {
		t.Error("nothing was acknowledged")
	}
}

// count returns the position of a value among the writes of its writer; -1 if the outcome of the write is unknown.
func count(value string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(value, "-"))
	if err != nil {
		return -1
	}
	return n
}

// holds reports whether any file below some folders has a text in it.
func holds(t testing.TB, text string, folders ...string) (found []string) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
			if err != nil || !d.Type().IsRegular() {
				return nil // files of a running database come and go
			}
			if data, err := os.ReadFile(path); err == nil && bytes.Contains(data, []byte(text)) {
				found = append(found, path)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}

// TestEncryptionRotation takes secrets from one key to the next, aescbc to aesgcm to a KMS plugin, as
// operators do it, while writers continue and the server is killed in between. Acknowledged writes are there
// after each step; in the end no file contains any of the values, while the same search finds unencrypted
// ones.
func TestEncryptionRotation(t *testing.T) {
	t.Parallel()
	pg := startPostgres(t)
	for name, url := range map[string]string{"SQLite": "sqlite:" + t.TempDir() + "/rowlock.db", "PostgreSQL": createDB(t, pg, "encrypted")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			endpoint := kmstest.New("first").Serve(t)
			file := newEncryptionFile(t, cbcKey, identityKey)
			s := harness.StartT(t, harness.Options{Store: url, Args: append(file.flags(), "--history-retention=1h", "--history-log-retention=1s")})
			logs, a, db := "", newAPI(t, s), openSQL(t, url)
			want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"control"},"data":{"v":"`+controlMark+`"}}`)
			load := startSecretLoad(t, a)
			defer load.done.Wait()
			stop := sync.OnceFunc(func() { close(load.stop) })
			defer stop()
			load.more(t, 100)
			for i, step := range []struct {
				providers []string
				writes    string // the key that new values are under
				rewrite   bool
			}{
				{[]string{cbcKey, gcmKey}, "aescbc:k1", false},
				{[]string{gcmKey, cbcKey}, "aesgcm:k2", true},
				{[]string{gcmKey, kmsKey(endpoint)}, "aesgcm:k2", false},
				{[]string{kmsKey(endpoint), gcmKey}, "kmsv2:vault", true},
				{[]string{kmsKey(endpoint)}, "kmsv2:vault", false},
			} {
				file.write(t, step.providers...)
				if i%2 == 1 { // else the file is taken up while the server runs
					s.Kill()
					logs += s.Log()
					again, err := s.Again(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(again.Kill)
					s, a = again, newAPI(t, again)
					load.use(a)
				} else {
					eventually(t, "the file is taken up", func() bool {
						return strings.Count(s.Log(), "the encryption configuration has changed and is in use") > i/2-strings.Count(logs, "the encryption configuration has changed and is in use")
					})
				}
				load.more(t, 50)
				if step.rewrite {
					var done struct{ Objects, Written, Left, Past, PastWritten, PastLeft int64 }
					store(t, &done, "rewrite", "--resource", "secrets", "--encryption-provider-config", string(file), "--store", url)
					if done.Objects == 0 || done.Left != 0 || done.Past == 0 || done.PastWritten == 0 || done.PastLeft != 0 {
						t.Errorf("step %d: rewritten %+v", i, done)
					}
					if in := keysInUse(t, db, "objects"); len(in) != 1 || in[step.writes] == 0 {
						t.Errorf("step %d: after that secrets are under %v, want %s", i, in, step.writes)
					}
					if past := keysInUse(t, db, "history"); len(past) != 1 || past[step.writes] == 0 {
						t.Errorf("step %d: after that the past of secrets is under %v, want %s", i, past, step.writes)
					}
				}
				load.check(t, a)
			}
			stop()
			load.done.Wait()
			load.check(t, a)
			// From here on history is not compacted while a slow reader reads it.
			s.Kill()
			logs += s.Log()
			s = harness.StartT(t, withArgs(s.Options(), "--history-log-retention=1h"))

			backup := filepath.Join(t.TempDir(), "backup")
			var taken struct{ Rows int64 }
			store(t, &taken, "backup", backup, "--history", "--store", url)
			folders := []string{filepath.Dir(backup), s.DataDir}
			if path, ok := strings.CutPrefix(url, "sqlite:"); ok {
				folders = append(folders, filepath.Dir(path))
			} else {
				folders = append(folders, dataDirectory(t, db))
				logs += pg.Log()
			}
			if len(holds(t, controlMark, folders...)) == 0 {
				t.Error("the search finds nothing at all")
			}
			for _, mark := range []string{lootMark, base64.StdEncoding.EncodeToString([]byte(lootMark))[:24]} {
				if found := holds(t, mark, folders...); len(found) > 0 {
					t.Errorf("%q is in %v", mark, found)
				}
				if strings.Contains(logs+s.Log(), mark) {
					t.Errorf("%q is in a log", mark)
				}
			}
			none := newEncryptionFile(t, identityKey)
			if out, _, err := storeCommand(t, "verify", "--store", url, "--encryption-provider-config", string(none)); err == nil || !strings.Contains(out, "cannot be decrypted (") {
				t.Errorf("without the right key verify says %v, %.1000s", err, out)
			}
			file.write(t, kmsKey(endpoint), gcmKey, cbcKey)
			var report storeReport
			store(t, &report, "verify", "--store", url, "--encryption-provider-config", string(file))
			if report.Count != 0 || report.Objects == 0 {
				t.Errorf("with all keys verify finds %+v", report)
			}
			if _, errOut, err := storeCommand(t, "verify", "--store", url); err != nil || !strings.Contains(errOut, "give --encryption-provider-config") {
				t.Errorf("without keys verify says %v, %s", err, errOut)
			}
			storeFails(t, "give --encryption-provider-config", "export", "--yaml", "--resource", "secrets", "--store", url)
			if out, _, err := storeCommand(t, "export", "--yaml", "--resource", "secrets", "--store", url, "--encryption-provider-config", string(file)); err != nil || !strings.Contains(out, lootMark) {
				t.Errorf("an export with keys: %v", err)
			}
			swapped(t, s, db, url)
		})
	}
}

// withArgs are options with more flags, which count more than those before.
func withArgs(o harness.Options, args ...string) harness.Options {
	o.Args = append(slices.Clone(o.Args), args...)
	return o
}

func dataDirectory(t testing.TB, db *sql.DB) (path string) {
	t.Helper()
	if err := db.QueryRowContext(t.Context(), "SHOW data_directory").Scan(&path); err != nil {
		t.Fatal(err)
	}
	return path
}

// swapped puts the value of one row into another by hand: it is not taken for the other's.
func swapped(t *testing.T, s *harness.Server, db *sql.DB, store string) {
	t.Helper()
	s.Kill()
	set := "SET "
	if strings.HasPrefix(store, "sqlite") { // its checksum would find it first
		set += "checksum = NULL, "
	}
	_, err := db.ExecContext(t.Context(), `UPDATE kv `+set+`value = (SELECT o.value FROM kv o WHERE o.resource = 'secrets' AND o.superseded_revision IS NULL AND o.name = 'w1-0') `+
		`WHERE resource = 'secrets' AND superseded_revision IS NULL AND name = 'w0-0'`)
	if err != nil {
		t.Fatal(err)
	}
	s, err = s.Again(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Kill)
	a := newAPI(t, s)
	if b := string(want(t, a, 500, http.MethodGet, secretsPath+"/w0-0", "", "")); !strings.Contains(b, "Internal error occurred: the stored bytes were not sealed with this key for this object") || strings.Contains(b, lootMark) {
		t.Errorf("it is %s", b)
	}
	want(t, a, 200, http.MethodGet, secretsPath+"/w1-0", "", "")
}

// TestEncryptionTwoServers: two servers on one database, of which one still has the older
// file. What it cannot read hinders nothing else, and it reads it once it has the file.
func TestEncryptionTwoServers(t *testing.T) {
	t.Parallel()
	url := createDB(t, sharedPostgres(t), "two")
	fresh, old := newEncryptionFile(t, gcmKey, cbcKey), newEncryptionFile(t, cbcKey)
	a := newAPI(t, harness.StartT(t, harness.Options{Store: url, Args: fresh.flags()}))
	b := newAPI(t, harness.StartT(t, harness.Options{Store: url, Args: old.flags()}))
	want(t, a, 201, http.MethodPost, secretsPath, "application/json", secretBody("new", "1"))
	want(t, b, 201, http.MethodPost, secretsPath, "application/json", secretBody("old", "2"))
	want(t, b, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"beside"}}`)
	want(t, a, 200, http.MethodGet, secretsPath+"/old", "", "")
	if text := string(want(t, b, 500, http.MethodGet, secretsPath+"/new", "", "")); !strings.Contains(text, "Internal error occurred: no matching prefix found") {
		t.Errorf("without the key it is %s", text)
	}
	want(t, b, 500, http.MethodGet, secretsPath, "", "")
	want(t, b, 200, http.MethodGet, secretsPath+"/old", "", "")
	want(t, a, 200, http.MethodGet, secretsPath, "", "")
	if v := string(want(t, b, 200, http.MethodGet, "/readyz?verbose", "", "")); !strings.Contains(v, "[!]corrupt-objects: 1 objects") {
		t.Errorf("readyz says %s", v)
	}
	old.write(t, gcmKey, cbcKey)
	eventually(t, "the key comes", func() bool {
		code, _, err := b.do(t.Context(), http.MethodGet, secretsPath, "", "")
		return err == nil && code == http.StatusOK
	})
	if text := string(want(t, b, 200, http.MethodGet, secretsPath+"/new", "", "")); !strings.Contains(text, lootMark) {
		t.Errorf("with the key it is %s", text)
	}
}
