package servertest

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/leniency"
	"github.com/rowlock/rowlock/e2e/recorded"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/controllers"
)

// recordings holds the recorded answers, below the top of the repository.
const recordings = "e2e/testdata/parity"

// answersOfReleases are the answers of later releases.
const answersOfReleases = "e2e/testdata/releases/answers.json.gz"

// Recorded compares recorded answers of a stock server with those of this one, for the scenarios in
// e2e/testdata/parity whose names, without ".json", match one of the patterns. ROWLOCK_RECORDED names other files to
// replay instead (patterns separated by spaces).
//
// Scenarios with the same flags share a server, except those that must run alone. All of them run concurrently, as they
// mostly wait for controllers. Controllers run with defaults: they act a second after a client's write. A scenario that
// is too slow for a controller's deadline is replayed without controllers, and package leniency counts that.
//
// With ROWLOCK_RECORDED_RELEASE=1.36 (or an earlier release) the servers are that release, and the answers
// wanted are those of a stock server of it. A difference that e2e/testdata/releases/differences.txt names is
// logged; any other fails.
func Recorded(t *testing.T, patterns ...string) {
	t.Helper()
	RecordedBy(t, func(*server.Config) {}, patterns...)
}

// RecordedBy is Recorded for servers that are changed by an option.
func RecordedBy(t *testing.T, option func(*server.Config), patterns ...string) {
	t.Helper()
	replay(t, recordings, option, patterns...)
}

// Audited replays the scenarios in e2e/testdata/audit, whose steps want audit events, against this server.
func Audited(t *testing.T, patterns ...string) {
	t.Helper()
	replay(t, "e2e/testdata/audit", func(*server.Config) {}, patterns...)
}

// Released replays the scenarios in e2e/testdata/releases that name the release of their answers, and maybe feature gates,
// against servers of that release.
func Released(t *testing.T, patterns ...string) {
	t.Helper()
	t.Setenv("ROWLOCK_RECORDED_RELEASE", "")
	replay(t, "e2e/testdata/releases", func(*server.Config) {}, patterns...)
}

func replay(t *testing.T, folder string, option func(*server.Config), patterns ...string) {
	t.Helper()
	for i, pattern := range patterns {
		patterns[i] = filepath.Join(root(t), folder, pattern+".json")
	}
	if others := os.Getenv("ROWLOCK_RECORDED"); others != "" {
		patterns = strings.Fields(others)
	}
	list, err := recorded.LoadAll(patterns...)
	if err != nil {
		t.Fatal(err)
	}
	release := os.Getenv("ROWLOCK_RECORDED_RELEASE")
	if release != "" {
		releases, err := recorded.LoadReleases(filepath.Join(root(t), answersOfReleases))
		if err != nil {
			t.Fatal(err)
		}
		list = releases.Of(release, list)
	}
	tolerated := differences(t)
	shared := map[string]recorded.Server{}
	results := make([][]recorded.Result, len(list))
	var group sync.WaitGroup
	for i, scenario := range list {
		key := scenario.Kind()
		srv, ok := shared[key]
		if !ok || scenario.Alone() {
			srv = answering(t, option, scenario)
		}
		if !scenario.Alone() {
			shared[key] = srv
		}
		group.Go(func() { results[i] = recorded.Replay(t.Context(), srv, scenario) })
	}
	group.Wait()
	equal, all := 0, 0
	for i, scenario := range list {
		t.Run(scenario.Name, func(t *testing.T) {
			if took, late := recorded.Late(results[i]); late {
				leniency.Note(t, "the scenario took %s, and is replayed without controllers", took)
				results[i] = recorded.Replay(t.Context(), answering(t, both(unmanaged, option), scenario), scenario)
			}
			for _, r := range results[i] {
				if r.Again > 0 {
					leniency.Note(t, "step %d was sent again %d times", r.Index, r.Again)
				}
				all++
				switch {
				case r.Equal():
					equal++
				case tolerated[fmt.Sprint(release, " ", scenario.Name, " ", r.Index)]:
					t.Logf("step %d %s\n    %s", r.Index, r.Do, strings.Join(r.Diff, "\n    "))
				default:
					t.Errorf("step %d %s\n    %s", r.Index, r.Do, strings.Join(r.Diff, "\n    "))
				}
			}
		})
	}
	if release != "" {
		t.Logf("%d of %d answers of release %s come back the same", equal, all, release)
	}
}

// differences returns the steps of recordings of later releases whose answers are known to differ, as "1.36 SCENARIO STEP".
func differences(t *testing.T) map[string]bool {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root(t), "e2e/testdata/releases/differences.txt"))
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{}
	for line := range strings.Lines(string(text)) {
		if step, _, ok := strings.Cut(line, ":"); ok && !strings.HasPrefix(line, "#") {
			known[step] = true
		}
	}
	return known
}

// answering starts a server for the requests of a scenario.
func answering(t testing.TB, option func(*server.Config), scenario *recorded.Scenario) recorded.Server {
	t.Helper()
	recording := func(*server.Config) {}
	var events func(id string) ([][]byte, error)
	if len(scenario.Audit) > 0 {
		policy, err := audit.Parse(scenario.Audit)
		if err != nil {
			t.Fatalf("%s: %v", scenario.Name, err)
		}
		kept := &AuditEvents{}
		events = func(id string) ([][]byte, error) { return recorded.EventsOf(kept.All(), id), nil }
		recording = kept.Record(policy)
	}
	s := Start(t, Complete(t, scenario.Flags()...), recording, option)
	return recorded.Server{URL: s.URL, Client: s.Client, Token: Token, Events: events}
}

// AuditEvents keeps audit events.
type AuditEvents struct {
	mu  sync.Mutex
	all [][]byte
}

// Record returns an option: the audit policy decides which requests are recorded.
func (e *AuditEvents) Record(policy *audit.Policy) func(*server.Config) {
	return func(c *server.Config) {
		c.Audit = &audit.Auditor{Policy: policy, Sinks: []audit.Sink{e}, Metrics: audit.NewMetrics(), Clock: time.Now}
	}
}

// Take implements audit.Sink.
func (e *AuditEvents) Take(event []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.all = append(e.all, event)
	return nil
}

// All returns the events so far.
func (e *AuditEvents) All() [][]byte {
	e.mu.Lock()
	defer e.mu.Unlock()
	return slices.Clone(e.all)
}

// both is two options in one.
func both(first, second func(*server.Config)) func(*server.Config) {
	return func(c *server.Config) { first(c); second(c) }
}

// unmanaged is an option: nothing is done that a kube-controller-manager does, as where the answers were
// recorded.
func unmanaged(c *server.Config) {
	byDefault, named := controllers.Switches()
	c.Controllers.Runs = func(name string) bool { return !slices.Contains(byDefault, name) && !slices.Contains(named, name) }
}

// root returns the top of the repository.
func root(t testing.TB) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			t.Fatal(fmt.Errorf("no go.mod above %s", dir))
		}
		dir = parent
	}
}
