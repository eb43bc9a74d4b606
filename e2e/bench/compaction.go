package main

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite"

	"github.com/rowlock/rowlock/e2e/harness"
)

const pace = 500 // writes a second

// measurePast measures pages of 500 at exact revisions, from the newest to the oldest, of 2,000 objects with
// little and with much history.
func measurePast(e *env) error {
	const n = 2000
	for _, versions := range []int{3, 11, 51} {
		if err := e.past(n, versions); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) past(n, versions int) error {
	dir, err := os.MkdirTemp("", "rowlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := e.newStore(dir)
	if err != nil {
		return err
	}
	if err := seed(dir, store, n, versions); err != nil {
		return err
	}
	s, err := harness.Start(e.ctx, harness.Options{DataDir: filepath.Join(dir, "data"), Store: store, Args: []string{"--history-retention=24h"}})
	if err != nil {
		return err
	}
	defer s.Kill()
	for _, at := range []struct {
		name     string
		revision int
	}{{"newest", versions * n}, {"500 writes back", versions*n - 500}, {"middle", (versions + 1) / 2 * n}, {"oldest", n}} {
		path := fmt.Sprintf("%s?limit=500&resourceVersionMatch=Exact&resourceVersion=%d", configMaps, at.revision)
		r, err := drive(s, 1, e.seconds/2, func(c *client, _, _ int) (int64, error) { return c.do("GET", path, "", "", nil) })
		if err != nil {
			return err
		}
		e.report(fmt.Sprintf("page of 500 of 2,000 at the %s revision, %d rows of history", at.name, (versions-1)*n), "%v", r)
	}
	return nil
}

// measureCompaction measures the compaction of all but one past version of each object, under 500 writes a
// second. Objects have 2 KB.
func measureCompaction(e *env) error {
	dir, err := os.MkdirTemp("", "rowlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	store, err := e.newStore(dir)
	if err != nil {
		return err
	}
	began := time.Now()
	versions := e.history + 1
	if err := e.seedOnce(dir, store, e.objects, versions); err != nil {
		return err
	}
	n := e.objects
	e.report(fmt.Sprintf("restore %d objects and %d rows of history", n, n*(versions-1)), "%v", time.Since(began).Round(time.Millisecond))
	began = time.Now()
	s, err := harness.Start(e.ctx, harness.Options{DataDir: filepath.Join(dir, "data"), Store: store, Args: []string{"--history-retention=24h"}})
	if err != nil {
		return err
	}
	e.report(fmt.Sprintf("ready with %d objects of 2 KB, first start", n), "%v   cpu %v   resident %.0f MB", time.Since(began).Round(time.Millisecond), processorTime(s.Pid()), resident(s.Pid()))
	if _, err := updates(s, n, e.seconds/2, nil); err != nil { // warm up
		return err
	}
	before, err := updates(s, n, 2*e.seconds, nil)
	if err != nil {
		return err
	}
	e.report("500 updates/s without compaction", "%v", before)
	if err := s.Stop(); err != nil {
		return err
	}
	began = time.Now()
	again := s.Options()
	again.Args = []string{"--history-retention=1h"}
	if s, err = harness.Start(e.ctx, again); err != nil {
		return err
	}
	defer s.Kill()
	e.report(fmt.Sprintf("ready with %d objects of 2 KB", n), "%v   cpu %v   resident %.0f MB", time.Since(began).Round(time.Millisecond), processorTime(s.Pid()), resident(s.Pid()))
	return e.whileCompacting(s, store, n, versions, before)
}

func (e *env) whileCompacting(s *harness.Server, store string, n, versions int, before result) error {
	db, err := openStore(store)
	if err != nil {
		return err
	}
	defer db.Close()
	var failed error
	began := time.Now()
	during, err := updates(s, n, 20*time.Minute, func() bool {
		var left bool
		query := fmt.Sprintf(`SELECT EXISTS (SELECT 1 FROM kv WHERE superseded_revision IS NOT NULL AND superseded_revision <= %d)`, (versions-1)*n)
		failed = db.QueryRow(query).Scan(&left)
		return failed != nil || !left
	})
	if err = errors.Join(err, failed); err != nil {
		return err
	}
	took := time.Since(began)
	e.report("500 updates/s while compacting", "%v   p99 %.1f times", during, float64(during.p99)/float64(before.p99))
	e.report(fmt.Sprintf("compact %d rows meanwhile", n*(versions-2)), "%v   %.0f rows/s", took.Round(time.Second), float64(n*(versions-2))/took.Seconds())
	return nil
}

// updates writes at a steady pace until d has passed or done returns true. The latency of a write counts from
// the time when it was due.
func updates(s *harness.Server, objects int, d time.Duration, done func() bool) (result, error) {
	const workers = 32
	var clients []*client
	for range workers {
		c, err := newClient(s)
		if err != nil {
			return result{}, err
		}
		clients = append(clients, c)
	}
	body := strings.Repeat("y", 2000)
	began, late, asked := time.Now(), until(d), time.Now()
	over := func() bool {
		if late() || done == nil || time.Since(asked) < 500*time.Millisecond { // done runs a statement
			return late()
		}
		asked = time.Now()
		return done()
	}
	return steady(clients, pace, over, func(c *client, w, i int) error {
		name := objectName((i*workers+w)*31, objects)
		patch := fmt.Appendf(nil, `{"data":{"payload":"%d %d%s"}}`, began.UnixNano(), i, body)
		_, err := c.do("PATCH", configMaps+"/"+name, "application/merge-patch+json", "", patch)
		return err
	})
}

// objectName maps successive writes to scattered keys.
func objectName(i, objects int) string { return fmt.Sprintf("c%07d", i*7919%objects) }

// seedOnce is like seed, but keeps a SQLite file as -seed and copies it in later runs: filling a large one
// takes minutes.
func (e *env) seedOnce(dir, store string, objects, versions int) error {
	path, ok := strings.CutPrefix(store, "sqlite:")
	if e.seed == "" || !ok {
		return seed(dir, store, objects, versions)
	}
	if _, err := os.Stat(e.seed); errors.Is(err, os.ErrNotExist) {
		if err := seed(dir, "sqlite:"+e.seed, objects, versions); err != nil {
			return err
		}
	}
	if err := copyFile(path, e.seed); err != nil {
		return err
	}
	syscall.Sync() // the copy's dirty pages must not disturb the measurement
	return nil
}

func copyFile(to, from string) error {
	in, err := os.Open(from)
	if err != nil {
		return err
	}
	defer in.Close()
	out, err := os.Create(to)
	if err != nil {
		return err
	}
	_, err = io.Copy(out, in)
	return errors.Join(err, out.Close())
}

// seed writes a backup of ConfigMaps, and restores it into an empty store.
func seed(dir, store string, objects, versions int) error {
	path := filepath.Join(dir, "seed")
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := writeSeed(f, objects, versions); err != nil {
		return err
	}
	defer os.Remove(path)
	bin, err := harness.Binary()
	if err != nil {
		return err
	}
	if out, err := exec.Command(bin, "store", "restore", path, "--store", store).CombinedOutput(); err != nil {
		return fmt.Errorf("restoring the seed: %w\n%s", err, out)
	}
	return nil
}

// writeSeed writes a backup in which all but the newest version of each object are two hours old.
func writeSeed(f io.Writer, objects, versions int) error {
	zip, err := gzip.NewWriterLevel(f, gzip.BestSpeed)
	if err != nil {
		return err
	}
	sum := sha256.New()
	out := io.MultiWriter(zip, sum)
	now := time.Now().UTC()
	stamp := func(t time.Time) string { return t.Format(time.RFC3339Nano) }
	fmt.Fprintf(out, `{"format":"rowlock-backup","version":1,"driver":"bench","clusterID":"bench","revision":%d,"floor":0,"taken":%q}`+"\n", versions*objects, stamp(now))
	// As compressible as manifests, which have repeated words, names and digests.
	digest := sha256.Sum256([]byte("seed"))
	payload := strings.Repeat("some words of a manifest ", 34)
	unlike := make([]byte, 400)
	for v := range versions {
		at := stamp(now.Add(-2 * time.Hour))
		if v == versions-1 {
			at = stamp(now)
		}
		for i := range objects {
			superseded := ""
			if v < versions-1 {
				superseded = fmt.Sprintf(`"superseded":%d,`, (v+1)*objects+i+1)
			}
			name := objectName(i, objects)
			for j := 0; j < len(unlike); j += len(digest) {
				digest = sha256.Sum256(digest[:])
				copy(unlike[j:], digest[:])
			}
			_, err := fmt.Fprintf(out, `{"resource":"configmaps","namespace":"default","name":%q,"revision":%d,"created":%d,%s"writtenAt":%q,`+
				`"value":{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"default","uid":"00000000-0000-4000-8000-%012d","creationTimestamp":"2026-01-01T00:00:00Z"},"data":{"payload":"%d%s%x"}}}`+"\n",
				name, v*objects+i+1, i+1, superseded, at, name, i, v, payload, unlike)
			if err != nil {
				return err
			}
		}
	}
	fmt.Fprintf(zip, `{"rows":%d,"sha256":%q}`+"\n", versions*objects, hex.EncodeToString(sum.Sum(nil)))
	return zip.Close()
}
