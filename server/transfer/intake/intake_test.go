package intake_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/transfer"
	"github.com/rowlock/rowlock/server/transfer/intake"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/foreign"
	"github.com/rowlock/rowlock/sqlstore/foreign/foreigntest"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

func configMap(name string, revision int64) foreign.Entry {
	return foreign.Entry{Key: "/registry/configmaps/a/" + name, ModRevision: revision, CreateRevision: 1, Value: fmt.Appendf(nil, `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":"u"}}`, name)}
}

func service(name string, revision int64, port int) foreign.Entry {
	return foreign.Entry{Key: "/registry/services/specs/a/" + name, ModRevision: revision, Value: fmt.Appendf(nil,
		`{"kind":"Service","apiVersion":"v1","metadata":{"name":%q,"namespace":"a","uid":"u"},"spec":{"type":"NodePort","clusterIP":"10.0.0.%d","clusterIPs":["10.0.0.%d"],"ports":[{"port":80,"nodePort":30000}]}}`, name, port, port)}
}

func job(t *testing.T, entries ...foreign.Entry) *intake.Job {
	return &intake.Job{Source: foreigntest.New(50, entries...), Keys: sqlstore.NoEncryption{}, Options: transfer.Options{}, Spool: filepath.Join(t.TempDir(), "import")}
}

func content(t *testing.T, d sqlstore.Driver) (list []string) {
	t.Helper()
	rows, err := d.Scan(t.Context(), sqlstore.ScanRequest{Limit: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for _, r := range rows {
		list = append(list, fmt.Sprintf("%s@%d/%d", r.Key, r.Created, r.Revision))
	}
	return list
}

func load(t *testing.T, s *intake.Spooled) sqlstore.Driver {
	t.Helper()
	d := memory.New(memory.Config{}).Open()
	t.Cleanup(func() { d.Close() })
	if err := s.Load(t.Context(), d, nil); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestRevisions: objects keep their revisions where they are alone with it; claims and the
// others get new ones, above which the log begins.
func TestRevisions(t *testing.T) {
	j := job(t, configMap("x", 7), configMap("y", 7), configMap("z", 50), service("s", 9, 1), service("t", 9, 2))
	s, err := j.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	d := load(t, s)
	const want = "configmaps/a/x@1/7 configmaps/a/y@1/51 configmaps/a/z@1/50 services/a/s@9/9 services/a/t@9/55 ~serviceips/10.0.0.1@52/52 ~serviceips/10.0.0.2@54/54 ~serviceports/30000@53/53"
	if got := strings.Join(content(t, d), " "); got != want {
		t.Errorf("there are\n%s, want\n%s", got, want)
	}
	b, err := d.Bounds(t.Context())
	if err != nil || b != (sqlstore.Bounds{Floor: 56, Head: 56}) || s.Head != 56 {
		t.Errorf("bounds %+v, %v", b, err)
	}
	if w := s.Report.Warnings; len(w) != 1 || !strings.Contains(w[0], "30000 is held by the services a/s and a/t") {
		t.Errorf("warnings %q", w)
	}
	if err := s.Load(t.Context(), d, nil); !errors.Is(err, sqlstore.ErrNotEmpty) {
		t.Errorf("loaded twice: %v", err)
	}
}

// TestSharedPorts: however many services hold the same port, only so many are named.
func TestSharedPorts(t *testing.T) {
	var entries []foreign.Entry
	for i := range 1010 {
		entries = append(entries, service(fmt.Sprintf("s-%04d", i), 9, 1))
	}
	j := job(t, entries...)
	j.Spool = ""
	s, err := j.Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Each after the first shares an address and a port.
	if w := s.Report.Warnings; len(w) != 1001 || w[1000] != "1018 more addresses and ports are held by two services" {
		t.Errorf("%d warnings, the last %q", len(w), w[len(w)-1])
	}
}

// TestGoesOn: a spool that was finished is used again, by the same job alone and as long as
// it is whole.
func TestGoesOn(t *testing.T) {
	first := job(t, configMap("x", 7))
	if s, err := first.Read(t.Context()); err != nil || s.Reused {
		t.Fatalf("%+v, %v", s, err)
	}
	again := *first
	s, err := again.Read(t.Context())
	if err != nil || !s.Reused || s.Report.Objects != 1 {
		t.Fatalf("again: %+v, %v", s, err)
	}
	if got := content(t, load(t, s)); len(got) != 1 {
		t.Errorf("%q", got)
	}
	other := *first
	other.Mark = "another file of keys"
	if s, err := other.Read(t.Context()); err != nil || s.Reused {
		t.Errorf("another job: %+v, %v", s, err)
	}
	text, err := os.ReadFile(first.Spool + ".rows")
	if err == nil {
		err = os.WriteFile(first.Spool+".rows", text[:len(text)-9], 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s, err := other.Read(t.Context()); err != nil || s.Reused {
		t.Errorf("a damaged spool: %+v, %v", s, err)
	}
	if err := s.Remove(); err != nil {
		t.Fatal(err)
	}
	nothingLeft(t, first)
}

func nothingLeft(t *testing.T, j *intake.Job) {
	t.Helper()
	if left, err := os.ReadDir(filepath.Dir(j.Spool)); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}

// TestRefused: a value that cannot be read ends the work, or is left out; no file remains.
func TestRefused(t *testing.T) {
	bad := foreign.Entry{Key: "/registry/configmaps/a/bad", ModRevision: 3, Value: []byte("?")}
	j := job(t, configMap("x", 7), bad)
	s, err := j.Read(t.Context())
	var undecodable *intake.UndecodableError
	if !errors.As(err, &undecodable) || undecodable.Count != 1 || s.Report.Problems[0].Key != bad.Key {
		t.Errorf("%+v, %v", s, err)
	}
	nothingLeft(t, j)
	j.SkipUndecodable = true
	if s, err := j.Read(t.Context()); err != nil || s.Report.Objects != 1 || s.Report.Undecodable != 1 {
		t.Errorf("%+v, %v", s, err)
	}

	broken := job(t, configMap("x", 7))
	broken.Source.(*foreigntest.Memory).Fail = errors.New("the disk is gone")
	if _, err := broken.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "the disk is gone") {
		t.Error(err)
	}
	nothingLeft(t, broken)
	future := job(t, configMap("x", 51))
	if _, err := future.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "newer than 50") {
		t.Error(err)
	}
	large := job(t, configMap("x", 7))
	large.Source = foreigntest.New(math.MaxInt64, configMap("x", 7))
	if _, err := large.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "no room for later ones") {
		t.Error(err)
	}
	twice := job(t, configMap("x", 7), configMap("x", 8))
	if _, err := twice.Read(t.Context()); err == nil || !strings.Contains(err.Error(), "a/x: the source gives it twice") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	ended := job(t, configMap("x", 7))
	if _, err := ended.Read(ctx); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	nothingLeft(t, ended)
}
