package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/database"
	"github.com/rowlock/rowlock/sqlstore"
)

// terminal opens a pseudo-terminal; written returns the text that was written to it until it was closed.
func terminal(t *testing.T) (tty *os.File, written func() string) {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	if err := unix.IoctlSetPointerInt(int(master.Fd()), unix.TIOCSPTLCK, 0); err != nil {
		t.Fatal(err)
	}
	n, err := unix.IoctlGetInt(int(master.Fd()), unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	if tty, err = os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0); err != nil {
		t.Fatal(err)
	}
	all := make(chan string, 1)
	go func() {
		text, _ := io.ReadAll(master) // it ends with EIO when the other side is closed
		all <- string(text)
	}()
	return tty, func() string {
		_ = tty.Close()
		text := <-all
		_ = master.Close()
		return text
	}
}

// TestProgress: long work shows on a terminal how much of how much is done, in one line that is
// taken away at the end.
func TestProgress(t *testing.T) {
	folder := t.TempDir()
	file, backup := filepath.Join(folder, "rowlock.db"), filepath.Join(folder, "backup")
	d, err := database.Open(t.Context(), "sqlite:"+file, database.Migrate)
	if err != nil {
		t.Fatal(err)
	}
	var batch, again []sqlstore.Txn
	for i := range 1500 {
		key := sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: fmt.Sprint("c", i)}
		value := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q,"namespace":"default","uid":"u%d"}}`, key.Name, i)
		batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: []byte(value)}}})
		again = append(again, sqlstore.Txn{Ops: []sqlstore.Op{{Verb: sqlstore.Update, Key: key, Value: []byte(value), Expect: int64(i + 1)}}})
	}
	_, err = d.Apply(t.Context(), batch, time.Now())
	if err == nil {
		_, err = d.Apply(t.Context(), again, time.Now())
	}
	if e := d.Close(); err != nil || e != nil {
		t.Fatal(err, e)
	}
	snapshot := filepath.Join(folder, "snapshot")
	store := "--store=sqlite:" + file
	for _, c := range []struct {
		want string
		args []string
	}{
		{`backing up: \d+ of 1500 rows \(\d+ %\)`, []string{"store", "backup", backup, store}},
		{`verifying: \d+ of 3000 rows \(\d+ %\)`, []string{"store", "verify", store}},
		{`rewriting: .* looked at: \d+ of 3000 rows \(\d+ %\)`, []string{"store", "rewrite", "--all", store}},
		{`looking: \d+ of 1500 rows \(\d+ %\)`, []string{"store", "repair", "--list", store}},
		{`exporting: \d+ of 1500 rows \(\d+ %\)`, []string{"store", "export", "--yaml", filepath.Join(folder, "yaml"), store}},
		{`exporting: \d+ of 1500 rows \(\d+ %\)`, []string{"export", "etcd-snapshot", snapshot, store}},
		{`restoring: \d+ of \d{3,} bytes \(\d+ %\)`, []string{"store", "restore", backup, "--store=sqlite:" + filepath.Join(folder, "restored.db")}},
		{`reading: \d+ of 1500 rows \(\d+ %\)`, []string{"import", "etcd-snapshot:" + snapshot, "--data-dir=" + filepath.Join(folder, "data"), "--store=sqlite:" + filepath.Join(folder, "imported.db")}},
		{`reading 127\.0\.0\.1:\d+ \(configmaps, 1 of 1 resources\): \d+ of 1500 objects \(\d+ %\)`, []string{"import", "--from-cluster", counted(t, 1500), "--dry-run", "--data-dir=" + filepath.Join(folder, "dry"), "--store=sqlite:" + filepath.Join(folder, "dry.db")}},
		{`compacting, at most: \d+ of \d{4,} rows \(\d+ %\)`, []string{"store", "compact", "--to=2900", store}},
	} {
		tty, written := terminal(t)
		cmd := command()
		cmd.SetArgs(c.args)
		cmd.SetOut(io.Discard)
		cmd.SetErr(tty)
		err := cmd.ExecuteContext(t.Context())
		text := written()
		if err != nil {
			t.Errorf("%q: %v\n%s", c.args, err, text)
			continue
		}
		if !regexp.MustCompile(c.want).MatchString(text) {
			t.Errorf("%q: want %s on the terminal:\n%q", c.args, c.want, text)
		}
		lines := strings.SplitAfter(text, "\r\x1b[K")
		for _, line := range lines[:max(0, len(lines)-1)] {
			if strings.Contains(line, "\n") {
				t.Errorf("%q: progress is more than one line:\n%q", c.args, text)
			}
		}
	}
}

// counted returns a server that reports n objects, and its kubeconfig. Its lists end earlier.
func counted(t *testing.T, n int) (kubeconfig string) {
	t.Helper()
	answers := map[string]string{
		"/api":    `{"kind":"APIVersions","versions":["v1"]}`,
		"/apis":   `{"kind":"APIGroupList","groups":[]}`,
		"/api/v1": `{"kind":"APIResourceList","groupVersion":"v1","resources":[{"name":"configmaps","kind":"ConfigMap","namespaced":true,"verbs":["list"]}]}`,
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if r.URL.Path == "/api/v1/configmaps" {
			rest := ""
			if r.URL.Query().Get("limit") == "1" {
				rest = fmt.Sprintf(`,"continue":"t","remainingItemCount":%d`, n-1)
			}
			answer, ok = fmt.Sprintf(`{"kind":"ConfigMapList","apiVersion":"v1","metadata":{"resourceVersion":"9"%s},"items":[{"metadata":{"name":"x","namespace":"a","uid":"u","resourceVersion":"7"}}]}`, rest), true
		}
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, answer)
	}))
	t.Cleanup(server.Close)
	kubeconfig = filepath.Join(t.TempDir(), "kubeconfig")
	text := `{"apiVersion":"v1","kind":"Config","current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],"clusters":[{"name":"c","cluster":{"server":"` + server.URL + `"}}],"users":[{"name":"u","user":{}}]}`
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return kubeconfig
}
