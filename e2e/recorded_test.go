package e2e

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/extension"
	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
	"github.com/rowlock/rowlock/e2e/recorded"
)

const (
	recordings      = "testdata/parity"
	atOnce          = 16 // concurrent scenarios: most of their time they wait
	aloneAtOnce     = 4  // servers for those that must be alone
	filesVariable   = "ROWLOCK_RECORDED"
	allVariable     = "ROWLOCK_RECORDED_ALL"
	flagsVariable   = "ROWLOCK_RECORDED_FLAGS"
	releaseVariable = "ROWLOCK_RECORDED_RELEASE"
	releaseAnswers  = "testdata/releases/answers.json.gz"
	strictFamilies  = "protocol-" // replayed on PostgreSQL too
)

// TestRecordedAnswers holds the recorded answers of a stock server against this one: the recordings that
// outside.txt names, since packages replay the others in their own processes, and all of them where
// ROWLOCK_RECORDED_ALL is set.
// ROWLOCK_RECORDED names other files (a pattern, or several by spaces): then those
// are replayed, and every step of theirs has to come back the same, by servers with the
// flags that ROWLOCK_RECORDED_FLAGS names. Those that want an aggregated server get one of
// package extension, unless ROWLOCK_EXT_IP, ROWLOCK_EXT_PORT and ROWLOCK_EXT_CA name
// another one.
// ROWLOCK_RECORDED_RELEASE names a release. Servers then emulate it, and their answers to all recordings, or to
// those that ROWLOCK_RECORDED names, are compared with the release's; differences do not fail the test.
func TestRecordedAnswers(t *testing.T) {
	t.Parallel()
	if release := os.Getenv(releaseVariable); release != "" {
		releases, err := recorded.LoadReleases(releaseAnswers)
		if err != nil {
			t.Fatal(err)
		}
		patterns := strings.Fields(cmp.Or(os.Getenv(filesVariable), recordings+"/*.json"))
		diffs := replayAll(t, "", releases.Of(release, scenarios(t, patterns...)), strings.Fields(os.Getenv(flagsVariable))...)
		for _, name := range slices.Sorted(maps.Keys(diffs)) {
			t.Logf("%s %s", name, strings.Join(diffs[name], "\n    "))
		}
		return
	}
	if pattern := os.Getenv(filesVariable); pattern != "" {
		for name, diffs := range replayAll(t, "", scenarios(t, strings.Fields(pattern)...), strings.Fields(os.Getenv(flagsVariable))...) {
			t.Errorf("%s:\n%s", name, strings.Join(diffs, "\n"))
		}
		return
	}
	known := knownDifferences(t)
	onSQLite, onPostgres := []string{recordings + "/*.json"}, []string{recordings + "/" + strictFamilies + "*.json"}
	all := os.Getenv(allVariable) != ""
	if !all {
		onSQLite = playedOutside(t)
		onPostgres = onSQLite
	}
	t.Run("SQLite", func(t *testing.T) {
		t.Parallel()
		list := scenarios(t, onSQLite...)
		diffs := replayAll(t, "", list, "--http2=own")
		if failUnlisted(t, known, diffs); all {
			wantPromised(t, list, diffs)
		}
	})
	t.Run("PostgreSQL", func(t *testing.T) {
		t.Parallel()
		url := createDB(t, sharedPostgres(t), "recorded")
		// Servers with other flags would serve the same database at the same time.
		list := slices.DeleteFunc(scenarios(t, onPostgres...), func(s *recorded.Scenario) bool { return len(s.Flags()) > 0 })
		failUnlisted(t, known, replayAll(t, url, list, "--http2=standard"))
	})
}

// playedOutside returns the files that outside.txt names.
func playedOutside(t *testing.T) []string {
	t.Helper()
	list, err := recorded.LoadOutside(recordings)
	if err != nil {
		t.Fatal(err)
	}
	files := make([]string, 0, len(list))
	for _, o := range list {
		files = append(files, filepath.Join(recordings, o.Name+".json"))
	}
	return files
}

// wantPromised compares how many steps come back the same with what README.md promises.
func wantPromised(t *testing.T, all []*recorded.Scenario, diffs map[string][]string) {
	t.Helper()
	total := 0
	for _, s := range all {
		total += len(s.Steps)
	}
	floor, of := promisedCount(t)
	if of != total {
		t.Errorf("README.md speaks of %d recorded answers, there are %d", of, total)
	}
	if got := total - len(diffs); got < floor {
		t.Errorf("%d recorded answers come back the same; README.md promises %d", got, floor)
	}
}

// TestRecordedAudit holds the events of requests against those that a stock server is documented to
// record, on both databases.
func TestRecordedAudit(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(t *testing.T) string{
		"SQLite":     func(*testing.T) string { return "" },
		"PostgreSQL": func(t *testing.T) string { return createDB(t, sharedPostgres(t), "audited") },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for name, diffs := range replayAll(t, store(t), scenarios(t, "testdata/audit/*.json")) {
				t.Errorf("%s:\n%s", name, strings.Join(diffs, "\n"))
			}
		})
	}
}

func scenarios(t *testing.T, patterns ...string) []*recorded.Scenario {
	t.Helper()
	list, err := recorded.LoadAll(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	return list
}

// replayAll replays scenarios against fresh servers, in addition to flags of the caller: for each
// set of flags that they name one for those that can share a server, and, on
// stores of their own, some more for those that cannot. Keys of the answer are
// "file:step".
func replayAll(t *testing.T, store string, list []*recorded.Scenario, flags ...string) map[string][]string {
	t.Helper()
	r := &replay{diffs: map[string][]string{}, counts: map[string][2]int{}}
	vars := knownVars(t, list)
	server := func(store string, sc *recorded.Scenario, more ...string) recorded.Server {
		recording, events, err := sc.AuditLog(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		s := harness.StartT(t, harness.Options{Store: store, Args: slices.Concat(withFiles(t, sc.Flags()), flags, more, recording)})
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		return recorded.Server{URL: s.URL, Client: client, Token: harness.AdminToken, Vars: vars, Events: events}
	}
	var group sync.WaitGroup
	defer group.Wait()
	for _, of := range recorded.ByFlags(list) {
		for _, part := range apart(of, store) {
			srv := server(store, of[0])
			group.Go(func() { r.all(t, srv, part) })
		}
	}
	group.Wait()
	for _, l := range r.late {
		if store != "" {
			store = createDB(t, sharedPostgres(t), "late")
		}
		leniency.Note(t, "%s took %s, and is replayed without controllers: %s", l.scenario.Name, l.took, strings.Join(l.diff, "; "))
		r.take(t, l.scenario, recorded.Replay(t.Context(), server(store, l.scenario, "--controllers=serviceaccount"), l.scenario))
	}
	r.report(t)
	return r.diffs
}

// apart deals scenarios to servers: those that must be alone to some that do them one
// after another, the rest to one more. Servers on one store would not be apart.
func apart(list []*recorded.Scenario, store string) [][]*recorded.Scenario {
	if store != "" {
		return [][]*recorded.Scenario{list}
	}
	parts := make([][]*recorded.Scenario, 1+aloneAtOnce)
	next := 0
	for _, sc := range list {
		if !sc.Alone() {
			parts[aloneAtOnce] = append(parts[aloneAtOnce], sc)
			continue
		}
		parts[next%aloneAtOnce] = append(parts[next%aloneAtOnce], sc)
		next++
	}
	return slices.DeleteFunc(parts, func(part []*recorded.Scenario) bool { return len(part) == 0 })
}

// withFiles completes flags that name no file: those of the certificate that aggregated
// servers know this one by.
func withFiles(t *testing.T, flags []string) []string {
	files := map[string]string{}
	for i, flag := range flags {
		if strings.Contains(flag, "=") || !strings.HasSuffix(flag, "-file") {
			continue
		}
		if len(files) == 0 {
			dir, ca := t.TempDir(), harness.NewAuthority(t, "aggregation")
			cert, key := harness.Files(t, ca.Client(t, "aggregator"))
			for name, data := range map[string][]byte{"proxy-client-cert": cert, "proxy-client-key": key, "requestheader-client-ca": ca.PEM} {
				files["--"+name+"-file"] = filepath.Join(dir, name)
				if err := os.WriteFile(filepath.Join(dir, name), data, 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if files[flag] == "" {
			t.Fatalf("nobody knows what file %s wants", flag)
		}
		flags[i] = flag + "=" + files[flag]
	}
	return flags
}

// knownVars returns the variables of scenarios for a server outside the test's process.
func knownVars(t *testing.T, list []*recorded.Scenario) map[string]string {
	t.Helper()
	if os.Getenv("ROWLOCK_EXT_IP") != "" {
		known := map[string]string{}
		for _, name := range []string{"EXT_IP", "EXT_PORT", "EXT_CA"} {
			known[name] = os.Getenv("ROWLOCK_" + name)
		}
		return known
	}
	if !slices.ContainsFunc(list, func(s *recorded.Scenario) bool { return len(s.Vars) > 0 }) {
		return nil
	}
	e, err := extension.Start()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	})
	return e.Vars()
}

// all replays scenarios against a server: those that must be alone one after another,
// then the rest concurrently, those that wait for long first.
func (r *replay) all(t *testing.T, srv recorded.Server, list []*recorded.Scenario) {
	work := make(chan *recorded.Scenario)
	var group sync.WaitGroup
	var beside []*recorded.Scenario
	for _, sc := range list {
		if sc.Alone() {
			r.run(t, srv, sc)
		} else {
			beside = append(beside, sc)
		}
	}
	slices.SortStableFunc(beside, func(a, b *recorded.Scenario) int { return cmp.Compare(b.Waits(), a.Waits()) })
	for range min(atOnce, len(beside)) {
		group.Go(func() {
			for sc := range work {
				r.run(t, srv, sc)
			}
		})
	}
	for _, sc := range beside {
		work <- sc
	}
	close(work)
	group.Wait()
}

type replay struct {
	mu     sync.Mutex
	diffs  map[string][]string
	counts map[string][2]int // by family: equal, all
	late   []late
}

// late is a scenario whose client was too slow to see what a stock server shows.
type late struct {
	scenario *recorded.Scenario
	took     time.Duration
	diff     []string
}

func (r *replay) run(t *testing.T, srv recorded.Server, sc *recorded.Scenario) {
	results := recorded.Replay(t.Context(), srv, sc)
	r.mu.Lock()
	defer r.mu.Unlock()
	if took, is := recorded.Late(results); is {
		l := late{scenario: sc, took: took}
		for i := range results {
			l.diff = append(l.diff, results[i].Diff...)
		}
		r.late = append(r.late, l)
		return
	}
	r.take(t, sc, results)
}

// take counts the result of a scenario. r.mu is held, or not needed yet.
func (r *replay) take(t *testing.T, sc *recorded.Scenario, results []recorded.Result) {
	t.Helper()
	family, _, _ := strings.Cut(sc.Name, "-")
	n := r.counts[family]
	for i := range results {
		if results[i].Again > 0 {
			leniency.Note(t, "%s: step %d was sent again %d times", sc.Name, results[i].Index, results[i].Again)
		}
		n[1]++
		if results[i].Equal() {
			n[0]++
		} else {
			r.diffs[fmt.Sprintf("%s:%d", sc.Name, results[i].Index)] = append([]string{results[i].Do}, results[i].Diff...)
		}
	}
	r.counts[family] = n
}

func (r *replay) report(t *testing.T) {
	var equal, all int
	for _, family := range slices.Sorted(maps.Keys(r.counts)) {
		n := r.counts[family]
		t.Logf("%4d of %4d  %s", n[0], n[1], family)
		equal, all = equal+n[0], all+n[1]
	}
	t.Logf("%4d of %4d  recorded answers come back the same", equal, all)
}

// failUnlisted fails for each difference that differences.txt gives no reason for.
func failUnlisted(t *testing.T, known map[string]string, diffs map[string][]string) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(diffs)) {
		if known[name] == "" {
			t.Errorf("%s %s", name, strings.Join(diffs[name], "\n    "))
		}
	}
}

// knownDifferences reads differences.txt: "file:step reason", one a line.
func knownDifferences(t *testing.T) map[string]string {
	t.Helper()
	data, err := os.ReadFile(recordings + "/differences.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{}
	for n, line := range strings.Split(string(data), "\n") {
		if line == "" || line[0] == '#' {
			continue
		}
		name, reason, _ := strings.Cut(line, " ")
		if reason == "" {
			t.Fatalf("differences.txt:%d: no reason is given", n+1)
		}
		known[name] = reason
	}
	return known
}

var promise = regexp.MustCompile(`recorded answers that come back the same: (\d+) of (\d+)`)

// promisedCount reads the number of recorded answers from the project's README.
func promisedCount(t *testing.T) (floor, of int) {
	t.Helper()
	data, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	m := promise.FindSubmatch(data)
	if m == nil {
		t.Fatal("README.md does not say how many recorded answers come back the same")
	}
	floor, _ = strconv.Atoi(string(m[1])) // the pattern holds digits only
	of, _ = strconv.Atoi(string(m[2]))
	return floor, of
}
