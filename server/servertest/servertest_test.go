package servertest_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/recorded"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestWhoIsKnown: the token's bearer is a master, and others are refused, in process and
// over the network.
func TestWhoIsKnown(t *testing.T) {
	s := servertest.Start(t, servertest.Idle)
	for token, want := range map[string]int{servertest.Token: 200, "other": 401, "": 401} {
		if w := s.Do("GET", "/api/v1/namespaces", "", "Authorization", "Bearer "+token); w.Code != want {
			t.Errorf("%q in process: %d, want %d", token, w.Code, want)
		}
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/api/v1/namespaces", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		resp, err := s.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode != want {
			t.Errorf("%q over the network: %d, want %d", token, resp.StatusCode, want)
		}
	}
}

// TestIdle: no controller makes the usual objects in a new namespace.
func TestIdle(t *testing.T) {
	const path = "/api/v1/namespaces/n/serviceaccounts/default"
	for name, c := range map[string]struct {
		options []func(*server.Config)
		there   bool
	}{"idle": {[]func(*server.Config){servertest.Idle}, false}, "complete": {[]func(*server.Config){servertest.Complete(t)}, true}} {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, c.options...)
			s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"n"}}`)
			if c.there {
				servertest.Eventually(t, func() bool { return s.Do("GET", path, "").Code == 200 })
			} else if w := s.Do("GET", path, ""); w.Code != 404 {
				t.Errorf("%d %s", w.Code, w.Body)
			}
		})
	}
}

var played = regexp.MustCompile(`servertest\.Recorded\(t((?:, "[^"]+")+)\)`)

var promise = regexp.MustCompile(`recorded answers that come back the same: (\d+) of (\d+)`)

// TestEveryRecordingIsPlayed: each scenario is replayed by a package in its own process, or by the built
// binary if outside.txt gives a reason. Of each package's, one is replayed by the binary too. So all
// steps of all scenarios get the same answers, as README.md promises.
func TestEveryRecordingIsPlayed(t *testing.T) {
	const folder = "../../e2e/testdata/parity"
	all, err := recorded.LoadAll(folder + "/*.json")
	if err != nil {
		t.Fatal(err)
	}
	steps, inside := 0, map[string]int{}
	for _, scenario := range all {
		steps += len(scenario.Steps)
		inside[scenario.Name] = 0
	}
	listed, err := recorded.LoadOutside(folder)
	if err != nil {
		t.Fatal(err)
	}
	outside := map[string]string{}
	for _, o := range listed {
		if _, ok := inside[o.Name]; !ok {
			t.Errorf("outside.txt names %s, which is not there", o.Name)
		}
		outside[o.Name] = o.Only
	}
	err = filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		calls := played.FindAllSubmatch(text, -1)
		if len(calls) == 0 && d.Name() == "recorded_test.go" {
			t.Errorf("%s plays nothing that can be read off", path)
		}
		for _, call := range calls {
			both := false
			for _, quoted := range strings.Split(strings.TrimPrefix(string(call[1]), ", "), ", ") {
				for name := range inside {
					ok, err := filepath.Match(strings.Trim(quoted, `"`), name)
					if err != nil {
						return err
					}
					if ok {
						inside[name]++
						_, out := outside[name]
						both = both || out
					}
				}
			}
			if !both {
				t.Errorf("outside.txt names no recording that %s plays", path)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range inside {
		if only := outside[name]; (n == 0) != (only != "") {
			t.Errorf("%s is played by %d packages in their processes, and outside.txt has: %q", name, n, only)
		}
	}
	readme, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if m := promise.FindSubmatch(readme); m == nil || string(m[1]) != strconv.Itoa(steps) || string(m[2]) != strconv.Itoa(steps) {
		t.Errorf("README.md says %q of %d recorded answers, each of which comes back the same", m, steps)
	}
}

// replayed matches a call of Released, with the patterns of what it plays.
var replayed = regexp.MustCompile(`servertest\.Released\(t((?:, "[^"]+")+)\)`)

// TestEveryReleasedRecordingIsPlayed finds answers of later releases that no package replays.
func TestEveryReleasedRecordingIsPlayed(t *testing.T) {
	const folder = "../../e2e/testdata/releases"
	unplayed := map[string]bool{}
	err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if name, ok := strings.CutSuffix(path, ".json"); ok {
			unplayed[strings.TrimPrefix(name, folder+"/")] = true
		}
		return err
	})
	if err != nil || len(unplayed) == 0 {
		t.Fatalf("%d recordings: %v", len(unplayed), err)
	}
	err = filepath.WalkDir("..", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, call := range replayed.FindAllSubmatch(text, -1) {
			for _, quoted := range strings.Split(strings.TrimPrefix(string(call[1]), ", "), ", ") {
				for name := range unplayed {
					if ok, err := filepath.Match(strings.Trim(quoted, `"`), name); ok || err != nil {
						delete(unplayed, name)
					}
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name := range unplayed {
		t.Errorf("no package replays %s", name)
	}
}
