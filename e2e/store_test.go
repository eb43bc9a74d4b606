package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
)

// storeCommand runs `rowlock store ...` and returns what it printed on both streams.
func storeCommand(t testing.TB, args ...string) (out, errOut string, err error) {
	t.Helper()
	cmd := prepareStore(t, args...)
	var o, e bytes.Buffer
	cmd.Stdout, cmd.Stderr = &o, &e
	err = cmd.Run()
	return o.String(), e.String(), err
}

func prepareStore(t testing.TB, args ...string) *exec.Cmd {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, append([]string{"store"}, args...)...)
	cmd.Dir = t.TempDir() // without a data folder to be found by chance
	return cmd
}

// store runs a command that must succeed, with JSON output, into v.
func store(t testing.TB, v any, args ...string) {
	t.Helper()
	out, errOut, err := storeCommand(t, append(args, "--output", "json")...)
	if err != nil {
		t.Fatalf("store %v: %v\n%s%s", args, err, out, errOut)
	}
	if errOut != "" {
		t.Errorf("store %v wrote on standard error: %q", args, errOut)
	}
	if err := json.Unmarshal([]byte(out), v); err != nil {
		t.Fatalf("store %v: %v in\n%s", args, err, out)
	}
}

// storeFails runs a command that must end with code 1 and one line that has text.
func storeFails(t testing.TB, text string, args ...string) {
	t.Helper()
	out, errOut, err := storeCommand(t, args...)
	var exit *exec.ExitError
	if err == nil {
		t.Errorf("store %v succeeded:\n%s", args, out)
	} else if !asExit(err, &exit) || exit.ExitCode() != 1 {
		t.Errorf("store %v: %v, want exit code 1", args, err)
	}
	if strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, text) {
		t.Errorf("store %v: standard error is %q, want one line with %q", args, errOut, text)
	}
}

func asExit(err error, exit **exec.ExitError) bool {
	e, ok := err.(*exec.ExitError)
	*exit = e
	return ok
}

type storeBackup struct {
	File, Driver, ClusterID, SHA256 string
	Revision, Floor, Rows           int64
	Taken                           time.Time
}

type storeStatus struct {
	Driver, ClusterID                                 string
	SchemaVersion                                     uint
	Revision, CompactedRevision, Objects, HistoryRows int64
	DatabaseBytes                                     int64
	OldestSnapshot                                    *time.Time
	Served                                            bool
	Feed                                              struct {
		Server, Reason string
		Applied, Lag   *int64
	}
	Resources []struct {
		Resource       string
		Objects, Bytes int64
	}
}

type storeReport struct {
	From, To, Objects, Changes, Count int64
	Problems                          []struct {
		Key, Reason string
		Revision    int64
	}
}

// writers changes ConfigMaps from several clients until stop is called.
func writers(t *testing.T, s *harness.Server) (stop func()) {
	t.Helper()
	a := newAPI(t, s)
	ctx, cancel := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	for w := range 4 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("w%d-%d", w, i%40)
				body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"i":"%d"}}`, name, i)
				method, path, want := "POST", "/api/v1/namespaces/default/configmaps", 201
				if i >= 40 {
					method, path, want = "PUT", path+"/"+name, 200
				}
				if i%97 == 96 {
					method, body, want = "DELETE", "", 200
				}
				code, data, err := a.do(ctx, method, path, "application/json", body)
				if err == nil && code != want && code != 404 && code != 409 {
					t.Errorf("%s %s: %d %s", method, path, code, data)
					return
				}
				if code == 404 { // deleted a round ago; 409: there since the last call
					_, _, _ = a.do(ctx, "POST", "/api/v1/namespaces/default/configmaps", "application/json", body)
				}
			}
		})
	}
	stop = func() {
		cancel()
		wg.Wait()
	}
	t.Cleanup(stop)
	return stop
}

func waitForRevision(t testing.TB, url string, revision int64) storeStatus {
	t.Helper()
	for end := time.Now().Add(patience); ; {
		var s storeStatus
		store(t, &s, "status", "--store", url)
		if s.Revision >= revision {
			return s
		}
		if time.Now().After(end) {
			t.Fatalf("the store is at revision %d, want %d", s.Revision, revision)
		}
	}
}

// objectsAt returns a snapshot, by the export for programs.
func objectsAt(t testing.TB, url string, revision int64) string {
	t.Helper()
	out, errOut, err := storeCommand(t, "export", "--sql", "--store", url, "--revision", strconv.FormatInt(revision, 10))
	if err != nil {
		t.Fatalf("exporting: %v\n%s", err, errOut)
	}
	return out
}

func wantClean(t testing.TB, url string) storeReport {
	t.Helper()
	var r storeReport
	store(t, &r, "verify", "--store", url)
	if r.Count != 0 || r.Problems == nil || r.Objects == 0 {
		t.Fatalf("verify found %+v", r)
	}
	return r
}

// TestStoreMovesBetweenDatabases backs a served SQLite up under load, restores it
// into PostgreSQL, serves that under load, and goes back.
func TestStoreMovesBetweenDatabases(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	dir := t.TempDir()
	s := harness.StartT(t, harness.Options{Args: []string{"--history-retention=1h"}})
	from := "sqlite:" + filepath.Join(s.DataDir, "rowlock.db")
	k := s.Kubectl(t)
	k.Run("create", "deployment", "web", "--image=nginx")
	k.Run("create", "service", "clusterip", "web", "--tcp=80")
	for i, to := range []string{createDB(t, pg, "moved"), "sqlite:" + filepath.Join(dir, "back.db")} {
		stop := writers(t, s)
		status := waitForRevision(t, from, waitForRevision(t, from, 0).Revision+400)
		if !status.Served || status.SchemaVersion == 0 || status.HistoryRows == 0 || status.DatabaseBytes == 0 || status.OldestSnapshot == nil {
			t.Errorf("the status of a served store is %+v", status)
		}
		var b, restored storeBackup
		file := filepath.Join(dir, fmt.Sprintf("backup%d", i))
		store(t, &b, "backup", file, "--history", "--store", from)
		store(t, &restored, "restore", file, "--store", to)
		if restored != b || b.Floor >= b.Revision || b.Revision < status.Revision || b.ClusterID != status.ClusterID {
			t.Fatalf("restored %+v\nof a backup %+v\nof a store %+v", restored, b, status)
		}
		wantClean(t, to)
		if r := wantClean(t, from); r.Changes == 0 { // while the server runs
			t.Errorf("verify looked at no history: %+v", r)
		}
		for _, revision := range []int64{b.Revision, (b.Floor + b.Revision) / 2} {
			if got, want := objectsAt(t, to, revision), objectsAt(t, from, revision); got != want || strings.Count(got, "\n") < 10 {
				t.Fatalf("at revision %d there are\n%s\nwant\n%s", revision, got, want)
			}
		}
		stop()
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		o := s.Options()
		o.Store, from = to, to
		next, err := harness.Start(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(next.Kill)
		s = next
		s.Kubectl(t).Want([]string{"nginx"}, "get", "deployment", "web", "-o", "yaml")
		if status := waitForRevision(t, from, b.Revision); status.Objects == 0 {
			t.Errorf("the moved store has the status %+v", status)
		}
	}
}

// TestStoreStatus looks at the shape of the answer and asks the server for its feed.
func TestStoreStatus(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	var st storeStatus
	eventually(t, "a feed that is not behind", func() bool { // the server may just be writing by itself
		st = storeStatus{}
		store(t, &st, "status", "--data-dir", s.DataDir)
		return st.Feed.Lag != nil && *st.Feed.Lag == 0
	})
	if !st.Served || *st.Feed.Applied < st.Revision || st.Feed.Server != s.URL {
		t.Errorf("the feed of a running server is %+v", st)
	}
	counts := map[string]int64{}
	var sum int64
	for _, r := range st.Resources {
		counts[r.Resource] = r.Objects
		if sum += r.Objects; r.Bytes <= 0 {
			t.Errorf("%s has %d bytes", r.Resource, r.Bytes)
		}
	}
	if counts["namespaces"] < 4 || counts["services"] != 1 || sum != st.Objects {
		t.Errorf("the objects are %v, in all %d", counts, st.Objects)
	}
	out, _, err := storeCommand(t, "status", "--data-dir", s.DataDir)
	if err != nil || !strings.Contains(out, "by a running server") || !strings.Contains(out, " behind\n") {
		t.Errorf("the table is %v\n%s", err, out)
	}
	// On a terminal, a line counts the progress, and is removed at the end.
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	shown, err := exec.Command(needs.Program(t, "script"), "-qec", fmt.Sprintf("'%s' store verify --data-dir '%s'", bin, s.DataDir), os.DevNull).CombinedOutput()
	if text := string(shown); err != nil || !strings.HasPrefix(text, "\r\x1b[Kverifying: ") || !strings.Contains(text, " rows (") || !strings.Contains(text, "%)\r\x1b[Klooked at ") {
		t.Errorf("on a terminal: %v %q", err, text)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	store(t, &st, "status", "--data-dir", s.DataDir)
	if st.Served || st.Feed.Lag != nil || st.Feed.Reason == "" {
		t.Errorf("the feed without a server is %+v", st)
	}
}

// TestStoreCompact compacts while a server runs, which continues to answer.
func TestStoreCompact(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--history-retention=1h"}})
	url := "sqlite:" + filepath.Join(s.DataDir, "rowlock.db")
	stop := writers(t, s)
	waitForRevision(t, url, 300)
	stop()
	head := waitForRevision(t, url, 0).Revision
	var c struct{ CompactedRevision, DeletedRows int64 }
	store(t, &c, "compact", "--to", "200", "--store", url)
	if c.CompactedRevision != 200 || c.DeletedRows == 0 {
		t.Errorf("compacting gave %+v", c)
	}
	storeFails(t, "revision 199 is compacted", "export", "--yaml", "--revision", "199", "--store", url)
	storeFails(t, "in the future", "compact", "--to", strconv.FormatInt(head+10_000, 10), "--store", url)
	var st storeStatus
	eventually(t, "no history after compacting all", func() bool { // the server may just have renewed its lease
		store(t, &c, "compact", "--keep", "0s", "--store", url)
		if st = waitForRevision(t, url, 0); st.HistoryRows > 10 {
			t.Errorf("compacting all leaves more than a few leases: %+v", st)
		}
		return st.HistoryRows == 0
	})
	if st.CompactedRevision < head {
		t.Errorf("after compacting all the status is %+v", st)
	}
	wantClean(t, url)
	s.Kubectl(t).Want([]string{"default"}, "get", "namespaces")
	for _, args := range [][]string{{"compact"}, {"compact", "--to", "5", "--keep", "1h"}} {
		storeFails(t, "want either --to or --keep", args...)
	}
	storeFails(t, "--to 0", "compact", "--to", "0")
	storeFails(t, "--keep", "compact", "--keep", "-1h")
}

// TestStoreVerifyFindsDamage damages rows behind the store's back.
func TestStoreVerifyFindsDamage(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	k := s.Kubectl(t)
	for _, name := range []string{"a", "b", "c", "d", "e"} {
		k.Run("create", "configmap", name, "--from-literal=k=v")
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(s.DataDir, "rowlock.db")
	wantClean(t, "sqlite:"+path)
	db, err := sql.Open("sqlite", path)
	if err != nil {
		t.Fatal(err)
	}
	for _, damage := range []string{
		`UPDATE kv SET checksum = NULL, value = 'nonsense' WHERE resource = 'configmaps' AND name = 'a'`,
		`UPDATE kv SET checksum = NULL, value = replace(CAST(value AS TEXT), '"data":{"k":"v"}', '"data":{"k":5}') WHERE resource = 'configmaps' AND name = 'b'`,
		`UPDATE kv SET checksum = NULL, value = (SELECT value FROM kv WHERE resource = 'configmaps' AND name = 'e') WHERE resource = 'configmaps' AND name = 'c'`,
		`UPDATE kv SET checksum = NULL, value = replace(CAST(value AS TEXT), 'ConfigMap', 'Secret') WHERE resource = 'configmaps' AND name = 'd'`,
	} {
		if _, err := db.Exec(damage); err != nil {
			t.Fatal(err)
		}
	}
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}
	out, errOut, err := storeCommand(t, "verify", "--store", "sqlite:"+path, "--output", "json")
	var exit *exec.ExitError
	if !asExit(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errOut, "damaged: problems found: 4") {
		t.Errorf("verify of a damaged store gave %v, %q", err, errOut)
	}
	var r storeReport
	if err := json.Unmarshal([]byte(out), &r); err != nil {
		t.Fatal(err)
	}
	reasons := map[string]string{}
	for _, p := range r.Problems {
		reasons[p.Key] = p.Reason
	}
	for name, want := range map[string]string{"a": "not valid JSON", "b": "cannot unmarshal number", "c": `calls itself "e"`, "d": "a Secret of v1"} {
		if got := reasons["configmaps/default/"+name]; !strings.Contains(got, want) {
			t.Errorf("what is wrong with %s is %q, want %q", name, got, want)
		}
	}
}

// TestStoreInterrupted stops commands half way. Named pipes hold them there.
func TestStoreInterrupted(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--history-retention=1h"}})
	a := newAPI(t, s)
	for i := range 60 { // more than pipes and buffers hold
		var noise []byte
		for x := uint32(i + 1); len(noise) < 100_000; {
			x ^= x << 13
			x ^= x >> 17
			x ^= x << 5
			noise = strconv.AppendUint(noise, uint64(x), 36)
		}
		body := fmt.Sprintf(`{"metadata":{"name":"big%d"},"data":{"noise":%q}}`, i, noise)
		if code, data, err := a.do(t.Context(), "POST", "/api/v1/namespaces/default/configmaps", "application/json", body); err != nil || code != 201 {
			t.Fatalf("creating: %d %s %v", code, data, err)
		}
	}
	dir := t.TempDir()
	url := "sqlite:" + filepath.Join(s.DataDir, "rowlock.db")
	file := filepath.Join(dir, "backup")
	t.Run("backup", func(t *testing.T) {
		pipe := filepath.Join(dir, "cut.partial")
		if err := syscall.Mkfifo(pipe, 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := prepareStore(t, "backup", filepath.Join(dir, "cut"), "--store", url)
		errOut := begin(t, cmd)
		r, err := os.Open(pipe)
		if err != nil {
			t.Fatal(err)
		}
		defer r.Close()
		if _, err := io.CopyN(io.Discard, r, 100_000); err != nil {
			t.Fatal(err)
		}
		interrupt(t, cmd, errOut, func() { _, _ = io.Copy(io.Discard, r) }, "interrupted: no backup was made")
		for _, path := range []string{pipe, filepath.Join(dir, "cut")} {
			if _, err := os.Lstat(path); !os.IsNotExist(err) {
				t.Errorf("%s was left behind: %v", path, err)
			}
		}
	})
	var b storeBackup
	store(t, &b, "backup", file, "--store", url)
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("a backup has the mode %v, %v", info.Mode(), err)
	}
	pg := sharedPostgres(t)
	for name, to := range map[string]string{"sqlite": "sqlite:" + filepath.Join(dir, "new.db"), "postgres": createDB(t, pg, "new")} {
		t.Run("restore into "+name, func(t *testing.T) {
			pipe := filepath.Join(dir, "pipe-"+name)
			if err := syscall.Mkfifo(pipe, 0o600); err != nil {
				t.Fatal(err)
			}
			cmd := prepareStore(t, "restore", pipe, "--store", to)
			errOut := begin(t, cmd)
			w, err := os.OpenFile(pipe, os.O_WRONLY, 0)
			if err != nil {
				t.Fatal(err)
			}
			defer w.Close()
			half := len(data) / 2
			if _, err := w.Write(data[:half]); err != nil {
				t.Fatal(err)
			}
			interrupt(t, cmd, errOut, func() {
				for rest := data[half:]; len(rest) > 4096; rest = rest[4096:] {
					if _, err := w.Write(rest[:4096]); err != nil {
						return // it has ended
					}
				}
				w.Close()
			}, "interrupted: the database is as empty as before")
			var st storeStatus
			if store(t, &st, "status", "--store", to); st.Revision != 0 || st.Objects != 0 {
				t.Errorf("after an interrupted restore the store is %+v", st)
			}
			var again storeBackup
			if store(t, &again, "restore", file, "--store", to); again != b {
				t.Errorf("restored %+v, want %+v", again, b)
			}
			wantClean(t, to)
			storeFails(t, "the database is in use", "restore", file, "--store", to)
		})
	}
	t.Run("damaged", func(t *testing.T) {
		bad := filepath.Join(dir, "bad")
		if err := os.WriteFile(bad, data[:len(data)-9], 0o600); err != nil {
			t.Fatal(err)
		}
		to := "sqlite:" + filepath.Join(dir, "other.db")
		storeFails(t, "damaged backup", "restore", bad, "--store", to)
		storeFails(t, "damaged backup", "restore", "--check", bad)
		var st storeStatus
		if store(t, &st, "status", "--store", to); st.Revision != 0 {
			t.Errorf("after a damaged backup the store is %+v", st)
		}
		var checked storeBackup
		store(t, &checked, "restore", "--check", file)
		if checked != b {
			t.Errorf("the check reports %+v, want %+v", checked, b)
		}
	})
}

func begin(t *testing.T, cmd *exec.Cmd) *bytes.Buffer {
	t.Helper()
	var errOut bytes.Buffer
	cmd.Stderr = &errOut
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // it has ended where the test went well
	return &errOut
}

// interrupt sends SIGINT, lets the command go on, and waits for its end.
func interrupt(t *testing.T, cmd *exec.Cmd, errOut *bytes.Buffer, goOn func(), want string) {
	t.Helper()
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	goOn()
	err := cmd.Wait()
	var exit *exec.ExitError
	if !asExit(err, &exit) || exit.ExitCode() != 1 || !strings.Contains(errOut.String(), want) || strings.Count(errOut.String(), "\n") != 1 {
		t.Errorf("interrupted it gave %v and %q, want %q", err, errOut, want)
	}
}

// TestStoreExportApplies takes a snapshot of the past from one server to another.
func TestStoreExportApplies(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--history-retention=1h"}})
	k := s.Kubectl(t)
	k.Run("create", "namespace", "shop")
	k.Run("create", "deployment", "web", "-n", "shop", "--image=nginx:1")
	k.Run("create", "configmap", "big", "-n", "shop", "--from-literal=n=12345678901234567890")
	k.Run("create", "job", "import", "-n", "shop", "--image=busybox")
	k.Run("create", "service", "nodeport", "web", "-n", "shop", "--tcp=80")
	k.Run("apply", "-f", "testdata/manifests/17-storage.yaml")
	var st storeStatus
	store(t, &st, "status", "--data-dir", s.DataDir)
	k.Run("set", "image", "deployment/web", "-n", "shop", "nginx=nginx:2")
	out, _, err := storeCommand(t, "export", "--yaml", "--as-stored", "--resource", "deployments.apps", "--namespace", "shop", "--data-dir", s.DataDir)
	if err != nil || !strings.Contains(out, "image: nginx:2") || !strings.Contains(out, "uid:") || strings.Count(out, "\n---\n") != 1 {
		t.Errorf("an export as stored is %v\n%s", err, out)
	}
	k.Run("delete", "namespace", "shop", "--wait=false")
	file := filepath.Join(t.TempDir(), "shop.yaml")
	var e struct {
		File, Format      string
		Revision, Objects int64
	}
	store(t, &e, "export", "--yaml", file, "--revision", strconv.FormatInt(st.Revision, 10), "--data-dir", s.DataDir)
	if e.Revision != st.Revision || e.Objects == 0 || e.File != file || e.Format != "yaml" {
		t.Errorf("the export reports %+v", e)
	}
	other := harness.StartT(t, harness.Options{}).Kubectl(t)
	other.Want([]string{"deployment.apps/web created", "namespace/shop created", "job.batch/import created", "service/web created"}, "apply", "-f", file)
	other.Want([]string{"image: nginx:1"}, "get", "deployment", "web", "-n", "shop", "-o", "yaml")
	other.Want([]string{`"12345678901234567890"`}, "get", "configmap", "big", "-n", "shop", "-o", "yaml")
	storeFails(t, "want either --sql or --yaml", "export")
	storeFails(t, "future", "export", "--sql", "--revision", "999999", "--data-dir", s.DataDir)
}

// TestStoreSchemaMessages meets databases that are not there, empty, older and newer.
func TestStoreSchemaMessages(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "rowlock.db")
	schema := createDB(t, pg, "schema")
	for _, c := range []struct{ driver, url, source, absent string }{
		{"sqlite", "sqlite:" + path, path, "does not exist"},
		{"pgx", schema, schema, "the database is empty"},
	} {
		for _, cmd := range []string{"status", "verify", "export --sql", "compact --keep 1h", "backup " + dir + "/none"} {
			storeFails(t, c.absent, append(strings.Fields(cmd), "--store", c.url)...)
		}
		var m struct{ From, To uint }
		if store(t, &m, "migrate", "--store", c.url); m.From != 0 || m.To == 0 {
			t.Errorf("the first migration reports %+v", m)
		}
		newest := m.To
		if store(t, &m, "migrate", "--store", c.url); m.From != newest || m.To != newest {
			t.Errorf("the second migration reports %+v", m)
		}
		change := func(statement string) {
			t.Helper()
			db, err := sql.Open(c.driver, c.source)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			if _, err := db.Exec(statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		change("UPDATE schema_migrations SET version = 1")
		storeFails(t, "run `rowlock store migrate`", "status", "--store", c.url)
		if store(t, &m, "migrate", "--store", c.url); m.From != 1 || m.To != newest {
			t.Errorf("the migration of an older schema reports %+v", m)
		}
		change("UPDATE schema_migrations SET version = 900")
		var st storeStatus
		if store(t, &st, "status", "--store", c.url); st.SchemaVersion != 900 { // newer, and compatible
			t.Errorf("the schema is %d", st.SchemaVersion)
		}
		column := map[string]string{"sqlite": "value", "pgx": "number"}[c.driver]
		change("UPDATE kv_meta SET " + column + " = 900 WHERE key = 'schema_compatible'")
		for _, cmd := range []string{"status", "migrate"} {
			storeFails(t, "use the newer version of rowlock", cmd, "--store", c.url)
		}
	}
	storeFails(t, "names no known store", "status", "--store", "mysql://x")
	storeFails(t, "--output", "status", "--output", "xml")
	if out, _, err := storeCommand(t, "--help"); err != nil || !strings.Contains(out, "backup") {
		t.Errorf("the help is %v\n%s", err, out)
	}
}
