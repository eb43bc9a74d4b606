package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// stormWrite is one write of an object, of which only its writer knows.
type stormWrite struct {
	value string
	sent  time.Time
	acked time.Time // zero: never
}

// backupStorm is writers that write objects of their own one after another, and remember when
// they sent and were answered.
type backupStorm struct {
	t      *testing.T
	mu     sync.Mutex
	writes map[string][]stormWrite
}

// stormWriters is the number of concurrent writers.
const stormWriters = 6

// answered returns how many objects are there, as their writers know.
func (s *backupStorm) answered() (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, writes := range s.writes {
		if !writes[0].acked.IsZero() {
			n++
		}
	}
	return n
}

// run writes until ctx ends or the server does.
func (s *backupStorm) run(ctx context.Context, server *harness.Server, round int) {
	var wg sync.WaitGroup
	for w := range stormWriters {
		wg.Go(func() {
			a := newAPI(s.t, server)
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("storm-%d-%d-%d", round, w, i/20%5)
				if !s.write(ctx, a, name, fmt.Sprintf("%d-%d", w, i)) {
					return
				}
				time.Sleep(stormPause)
			}
		})
	}
	wg.Wait()
}

func (s *backupStorm) write(ctx context.Context, a *api, name, value string) bool {
	s.mu.Lock()
	known := len(s.writes[name])
	s.writes[name] = append(s.writes[name], stormWrite{value: value, sent: time.Now()})
	s.mu.Unlock()
	method, path, want := http.MethodPost, configMaps, http.StatusCreated
	if known > 0 {
		method, path, want = http.MethodPut, configMaps+"/"+name, http.StatusOK
	}
	body := fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"v":%q}}`, name, value)
	code, answer, err := a.do(context.WithoutCancel(ctx), method, path, "application/json", body)
	if err != nil { // the server was killed
		return false
	}
	if code != want {
		s.t.Errorf("%s %s: %d %s", method, path, code, answer)
		return false
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.writes[name][known].acked = time.Now()
	return true
}

// clocksDiffer bounds how far the clock of PostgreSQL, as servers know it, and that of the test may
// be apart.
const clocksDiffer = 20 * time.Millisecond

// check wants a store to have each object as it was at a time: with what had been answered
// by then, and nothing that was sent after it. exact is false for a time that is only the
// earliest that the state can be of.
func (s *backupStorm) check(store string, at time.Time, exact bool) (found int) {
	s.t.Helper()
	server := harness.StartT(s.t, harness.Options{Store: store, Dir: s.t.TempDir()})
	defer server.Kill()
	code, body, err := newAPI(s.t, server).do(s.t.Context(), http.MethodGet, configMaps, "", "")
	if err != nil || code != http.StatusOK {
		s.t.Fatalf("%d %s %v", code, body, err)
	}
	var list configMapList
	if err := json.Unmarshal(body, &list); err != nil {
		s.t.Fatal(err)
	}
	got := map[string]string{}
	for _, item := range list.Items {
		got[item.Metadata.Name] = item.Data["v"]
	}
	for name, writes := range s.writes {
		least, most, is := -1, -1, -1
		for i, w := range writes {
			if !w.acked.IsZero() && w.acked.Before(at.Add(-clocksDiffer)) {
				least = i
			}
			if !exact || w.sent.Before(at.Add(clocksDiffer)) {
				most = i
			}
			if got[name] == w.value {
				is = i
			}
		}
		if is < least || is > most {
			s.t.Errorf("%s: has write %d (%q), and by %s %d was answered, %d sent", name, is, got[name], at.Format(time.RFC3339Nano), least, most)
		}
		if is >= 0 {
			found++
		}
	}
	return found
}

// runBinary runs the binary, and wants it to end well.
func runBinary(t *testing.T, args ...string) []byte {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	var errOut bytes.Buffer
	cmd := exec.CommandContext(t.Context(), bin, args...)
	cmd.Stderr = &errOut
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", args, err, out, errOut.String())
	}
	return out
}

// startFollower runs `store backup --follow` in a separate process; kill ends it at once.
func startFollower(t *testing.T, store, dir string) (kill func()) {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(bin, "store", "backup", "--follow", dir, "--store", store, "--base-every=2s")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var once sync.Once
	kill = func() {
		once.Do(func() {
			_ = cmd.Process.Kill() // it may have ended by itself, which the folder then shows
			_ = cmd.Wait()
		})
	}
	t.Cleanup(kill)
	return kill
}

// TestBackupSurvivesKills kills server and followers in the middle of storms, and restores
// into both databases: a second of the storm, as its writers knew it, and the newest, which
// has all that was answered by the time that the folder named right before the end. (How late
// that may be, sqlstore/archive/follow tests.)
func TestBackupSurvivesKills(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for _, kind := range []string{"sqlite", "postgres"} {
		t.Run(kind, func(t *testing.T) {
			t.Parallel()
			dir := t.TempDir()
			file := func(name string) string { return "sqlite:" + filepath.Join(dir, name) }
			store, other := file("live.db"), newDatabase(t, pg)
			if kind == "postgres" {
				store, other = newDatabase(t, pg), file("restored.db")
			}
			inside, outside := filepath.Join(dir, "inside"), filepath.Join(dir, "outside")
			o := harness.Options{Store: store, Dir: t.TempDir(), Args: []string{"--backup-dir=" + inside, "--backup-base-every=2s"}}
			s := &backupStorm{t: t, writes: map[string][]stormWrite{}}
			var second time.Time
			held := map[string]time.Time{}
			for round := range 2 {
				server := harness.StartT(t, o)
				o = server.Options()
				waitForBackup(t, server)
				kill := startFollower(t, store, outside)
				ctx, stop := context.WithCancel(t.Context())
				ended := make(chan struct{})
				go func() { defer close(ended); s.run(ctx, server, round) }()
				time.Sleep(2 * time.Second)
				eventually(t, "each writer has written", func() bool { return s.answered() >= stormWriters*(round+1) })
				time.Sleep(clocksDiffer)
				second = time.Now()
				time.Sleep(time.Second + 137*time.Millisecond)
				for _, dir := range []string{inside, outside} {
					eventually(t, "what was answered by then is in "+filepath.Base(dir), func() bool { return heldBy(t, dir).After(second) })
				}
				for _, dir := range []string{inside, outside} {
					held[dir] = heldBy(t, dir)
				}
				kill()
				server.Kill()
				stop()
				<-ended
			}
			at := second.UTC().Format(time.RFC3339Nano)
			runBinary(t, "store", "restore", inside, "--to", at, "--store", other)
			if n := s.check(other, second, true); n < 2*stormWriters {
				t.Errorf("only %d objects were restored", n)
			}
			for i, dir := range []string{inside, outside} {
				target := file("newest" + strconv.Itoa(i) + ".db")
				runBinary(t, "store", "restore", dir, "--store", target)
				s.check(target, held[dir], false)
				wantWhole(t, dir, store)
			}
			runBinary(t, "store", "restore", outside, "--to", at, "--store", file("second.db"))
			s.check(file("second.db"), second, true)
		})
	}
}

// waitForBackup waits until a server writes the backup: on PostgreSQL one that was killed
// is only followed when its lead has run out.
func waitForBackup(t *testing.T, server *harness.Server) {
	t.Helper()
	a := newAPI(t, server)
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		code, body, err := a.do(t.Context(), http.MethodGet, "/metrics", "", "")
		if err != nil || code != http.StatusOK {
			t.Fatalf("%d %v", code, err)
		}
		if bytes.Contains(body, []byte("\nrowlock_backup_lag_revisions 0\n")) && bytes.Contains(body, []byte("\nrowlock_backup_active 1\n")) {
			want(t, a, http.StatusOK, http.MethodGet, "/readyz/backup", "", "")
			return
		}
	}
	t.Fatal("no server writes the backup")
}

// heldBy returns the time up to which a folder is complete, as it reports.
func heldBy(t *testing.T, dir string) (at time.Time) {
	t.Helper()
	var l struct{ Runs []struct{ Until time.Time } }
	if err := json.Unmarshal(runBinary(t, "store", "backup", "list", dir, "--output=json"), &l); err != nil {
		t.Fatal(err)
	}
	for _, run := range l.Runs {
		at = run.Until
	}
	return at
}

// wantWhole verifies the newest state of a folder against the database, and that there was
// no gap.
func wantWhole(t *testing.T, dir, store string) {
	t.Helper()
	var a struct {
		OK       bool
		Compared struct{ Objects, Count int64 }
	}
	if err := json.Unmarshal(runBinary(t, "store", "restore", "--verify-latest", dir, "--store", store, "--output=json"), &a); err != nil || !a.OK || a.Compared.Objects < 50 || a.Compared.Count != 0 {
		t.Errorf("%+v %v", a, err)
	}
	var l struct {
		Runs     []json.RawMessage
		Problems []string
	}
	if err := json.Unmarshal(runBinary(t, "store", "backup", "list", dir, "--output=json"), &l); err != nil || len(l.Runs) != 1 || len(l.Problems) > 0 {
		t.Errorf("%d runs, %v, %v", len(l.Runs), l.Problems, err)
	}
}
