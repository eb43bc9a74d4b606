package storetest

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

var crashes = flag.Int("storetest.crashes", 12, "how often the crash test kills its child")

const (
	crashEnv     = "ROWLOCK_STORETEST_CRASH"
	packEnv      = "ROWLOCK_STORETEST_PACK" // the child packs as well
	crashWriters = 8
	crashKept    = 365 * 24 * time.Hour
)

// CrashChild is called first in the TestMain of a driver. In the child of a crash test it writes until it is
// killed, and reports each acknowledged write on its standard output; else it returns at once. open takes the
// argument of Crash.
func CrashChild(open func(ctx context.Context, where string) (sqlstore.Driver, error)) {
	where := os.Getenv(crashEnv)
	if where == "" {
		return
	}
	err := crashChild(context.Background(), where, open)
	fmt.Fprintln(os.Stderr, "the child of the crash test ended:", err)
	os.Exit(3)
}

func crashChild(ctx context.Context, where string, open func(context.Context, string) (sqlstore.Driver, error)) error {
	var d sqlstore.Driver
	err := patiently(func() (err error) { d, err = open(ctx, where); return err })
	if err != nil {
		return err
	}
	var b sqlstore.Bounds
	if err = patiently(func() (err error) { b, err = d.Bounds(ctx); return err }); err != nil {
		return err
	}
	// Nothing expires by its age: the test looks for all writes since the first crash.
	s := sqlstore.New(d, sqlstore.Config{Retention: crashKept, LogRetention: crashKept})
	failed := make(chan error, crashWriters+2)
	if os.Getenv(packEnv) != "" {
		go func() { failed <- crashPacker(ctx, d) }()
	}
	go func() { failed <- s.Run(ctx, b.Head, NewRecorder(b.Head)) }()
	for w := range crashWriters {
		go func() { failed <- crashWriter(ctx, s, w, b.Head) }()
	}
	return <-failed
}

// patiently repeats writes that fail because the database is busy: on a busy machine, a store gives up writes
// that would have succeeded a moment later, and the child does not test that.
func patiently(do func() error) error {
	for {
		err := do()
		if errors.Is(err, sqlstore.ErrUncertain) || !errors.Is(err, sqlstore.ErrBusy) && !errors.Is(err, sqlstore.ErrUnavailable) {
			return err
		}
		fmt.Fprintln(os.Stderr, "the child of the crash test waits:", err)
		time.Sleep(50 * time.Millisecond)
	}
}

// crashWriter creates, updates and deletes a few objects in turn.
func crashWriter(ctx context.Context, s *sqlstore.Store, w int, round int64) error {
	for i := 0; ; i++ {
		size := i % 3000
		if w == 0 && i%16 == 1 {
			size += sqlstore.LargeValue
		}
		value := fmt.Sprintf(`"%d/%d/%d %s"`, round, w, i, strings.Repeat("x", size))
		k := pod(fmt.Sprintf("%d-%d", w, i%5))
		op := sqlstore.Op{Verb: sqlstore.Create, Key: k, Value: []byte(value)}
		var row sqlstore.Row
		err := patiently(func() (err error) { row, err = s.Read(ctx, k, 0); return err })
		var gone *sqlstore.NotFoundError
		switch {
		case err == nil && i%7 == 0:
			op.Verb, op.Expect = sqlstore.Delete, row.Revision
		case err == nil:
			op.Verb, op.Expect = sqlstore.Update, row.Revision
		case !errors.As(err, &gone):
			return err
		}
		var out sqlstore.Outcome
		if err = patiently(func() (err error) { out, err = s.Write(ctx, op); return err }); err != nil {
			return err
		}
		fmt.Printf("%d %s %d %s\n", out.Revisions[0], k.Name, op.Verb, strings.Fields(value)[0])
	}
}

// crashPacker packs the latest writes, over and over, and keeps all of them.
func crashPacker(ctx context.Context, d sqlstore.Driver) error {
	for {
		if err := patiently(func() error { return crashPack(ctx, d) }); err != nil {
			return err
		}
	}
}

func crashPack(ctx context.Context, d sqlstore.Driver) error {
	b, err := d.Bounds(ctx)
	if err != nil {
		return err
	}
	if _, err = d.Retain(ctx, sqlstore.Floors{Log: b.Head - 50, Past: map[string]int64{"": 0}}); err != nil {
		return err
	}
	return sqlstore.Pack(ctx, d, 1, func(sqlstore.Packed) {})
}

// CrashPacking is Crash of a child that packs its writes: each written state exists exactly once, in a pack
// or as a row.
func CrashPacking(t *testing.T, db Database, where string) {
	t.Setenv(packEnv, "yes")
	acknowledged := make(map[int64]string)
	db.Open(t).Close()
	packed := false
	for round := range (*crashes + 2) / 3 { // Crash tests the same without packs
		crashOnce(t, where, acknowledged)
		if s, ok := db.(Sessions); ok {
			s.Ended(t)
		}
		d := db.Open(t)
		checkOnce(t, d, acknowledged)
		CheckTable(t, d)
		s, err := d.Stats(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		packed = packed || s.PackedRows > 0
		d.Close()
		if t.Failed() {
			t.Fatalf("after crash %d", round+1)
		}
	}
	if !packed {
		t.Error("nothing was packed")
	}
}

// checkOnce checks that each revision up to the head has one row with the acknowledged write.
func checkOnce(t *testing.T, d sqlstore.Driver, acknowledged map[int64]string) {
	t.Helper()
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	seen := make(map[int64]bool)
	rows := append(olderAll(t, d, b.Head, 500), scanAll(t, d, sqlstore.ScanRequest{Limit: 1000})...)
	for _, row := range rows {
		if seen[row.Revision] {
			t.Errorf("revision %d is there twice", row.Revision)
		}
		seen[row.Revision] = true
		verb := sqlstore.Update
		if row.Deleted {
			verb = sqlstore.Delete
		} else if row.Created == row.Revision {
			verb = sqlstore.Create
		}
		is := fmt.Sprintf("%s %d %s", row.Key.Name, verb, strings.Fields(string(row.Value))[0])
		if want, ok := acknowledged[row.Revision]; ok && want != is {
			t.Errorf("revision %d was acknowledged as %q and is %q", row.Revision, want, is)
		}
	}
	for revision := int64(1); revision <= b.Head; revision++ {
		if !seen[revision] {
			t.Fatalf("revision %d of %d is lost (%q)", revision, b.Head, acknowledged[revision])
		}
	}
	for revision := range acknowledged {
		if revision > b.Head {
			t.Errorf("revision %d was acknowledged, and the head is %d", revision, b.Head)
		}
	}
}

// Crash kills a writing child process in mid-write, many times, and looks each
// time whether every acknowledged write is there, nothing else is, and the
// revisions have no hole. where names the database to the child.
func Crash(t *testing.T, db Database, where string) {
	acknowledged := make(map[int64]string)
	db.Open(t).Close() // makes the schema, and the first lines come soon
	unseen := 0
	for round := range *crashes {
		crashOnce(t, where, acknowledged)
		unseen += crashWriters
		if s, ok := db.(Sessions); ok {
			s.Ended(t) // otherwise a last commit may come while the table is read
		}
		d := db.Open(t)
		checkAcknowledged(t, d, acknowledged, unseen)
		CheckTable(t, d)
		d.Close()
		if t.Failed() {
			t.Fatalf("after crash %d", round+1)
		}
	}
	t.Logf("%d crashes, %d acknowledged writes", *crashes, len(acknowledged))
}

// crashOnce kills a child when it has acknowledged some writes, however long the first of them takes. A child
// that ends before that was not killed in mid-write, and reports why.
func crashOnce(t *testing.T, where string, acknowledged map[int64]string) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), crashEnv+"="+where)
	var stderr bytes.Buffer
	cmd.Stderr = io.MultiWriter(os.Stderr, &stderr)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	n, most := 0, 1+rand.IntN(1500)
	for lines.Scan() {
		var revision int64
		var rest string
		if number, text, ok := strings.Cut(lines.Text(), " "); ok {
			if _, err := fmt.Sscan(number, &revision); err == nil && strings.Count(text, " ") == 2 {
				rest = text
			}
		}
		if rest == "" {
			continue // the last line may be cut
		}
		acknowledged[revision] = rest
		if n++; n == most {
			cmd.Process.Kill() // SIGKILL; its earlier output is still read
		}
	}
	err = cmd.Wait()
	if n < most {
		t.Fatalf("the child ended by itself when it had acknowledged %d writes of %d: %v: %s", n, most, err, stderr.Bytes())
	}
}

func checkAcknowledged(t *testing.T, d sqlstore.Driver, acknowledged map[int64]string, unseen int) {
	t.Helper()
	log := changes(t, d, 0)
	contiguous(t, log, 0)
	found := 0
	for _, c := range log {
		verb := sqlstore.Update
		if c.Deleted {
			verb = sqlstore.Delete
		} else if c.PrevRevision == 0 {
			verb = sqlstore.Create
		}
		is := fmt.Sprintf("%s %d %s", c.Key.Name, verb, strings.Fields(string(c.Value))[0])
		want, ok := acknowledged[c.Revision]
		if ok && want != is {
			t.Errorf("revision %d was acknowledged as %q and is %q", c.Revision, want, is)
		}
		if ok {
			found++
		}
	}
	if found != len(acknowledged) {
		t.Errorf("%d writes were acknowledged, %d of them are there", len(acknowledged), found)
	}
	if extra := len(log) - found; extra > unseen {
		t.Errorf("%d writes are there without an acknowledgement; at most %d can be", extra, unseen)
	}
}

// CheckTable checks on any data that the log above the floor has no hole, that playing it leads to the live
// rows, and that each row names the right row as the one it replaced.
func CheckTable(t testing.TB, d sqlstore.Driver) {
	t.Helper()
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	state := make(map[sqlstore.Key]sqlstore.Row)
	if b.Floor > 0 {
		for _, row := range scanAll(t, d, sqlstore.ScanRequest{Limit: 1000, Revision: b.Floor}) {
			state[row.Key] = row
		}
	}
	log := changes(t, d, b.Floor)
	contiguous(t, log, b.Floor)
	if len(log) != int(b.Head-b.Floor) {
		t.Errorf("the log has %d entries between %d and %d", len(log), b.Floor, b.Head)
	}
	for _, c := range log {
		old, had := state[c.Key]
		if had != (c.PrevRevision != 0) || had && (c.PrevRevision != old.Revision || c.Created != old.Created || string(c.PrevValue) != string(old.Value)) || !had && c.Created != c.Revision {
			t.Errorf("revision %d of %s (created %d, after %d) does not follow revision %d", c.Revision, c.Key, c.Created, c.PrevRevision, old.Revision)
		}
		state[c.Key] = c.Row
		if c.Deleted {
			delete(state, c.Key)
		}
	}
	rows := scanAll(t, d, sqlstore.ScanRequest{Limit: 1000})
	for _, row := range rows {
		if want := state[row.Key]; want.Revision != row.Revision || string(want.Value) != string(row.Value) || row.Superseded != 0 {
			t.Errorf("%s is live at revision %d, the log says %d", row.Key, row.Revision, want.Revision)
		}
	}
	if len(rows) != len(state) {
		t.Errorf("%d rows are live, the log says %d", len(rows), len(state))
	}
}
