package servertest_test

import (
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

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

// TestIdle: no controller makes what is usually made in a new namespace.
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

var played = regexp.MustCompile(`servertest\.Recorded(?:By)?\(t(?:, [a-z]+)?((?:, "[^"]+")+)\)`)

// TestEveryRecordingIsPlayed: each scenario about kinds is replayed beside the code of
// one of them.
func TestEveryRecordingIsPlayed(t *testing.T) {
	times := map[string]int{}
	for _, family := range []string{"core", "groups"} {
		files, err := filepath.Glob("../../e2e/testdata/parity/" + family + "-*.json")
		if err != nil || len(files) < 70 {
			t.Fatalf("%d files of %s: %v", len(files), family, err)
		}
		for _, file := range files {
			times[strings.TrimSuffix(filepath.Base(file), ".json")] = 0
		}
	}
	err := filepath.WalkDir("..", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() != "recorded_test.go" {
			return err
		}
		text, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		call := played.FindSubmatch(text)
		if call == nil {
			t.Errorf("%s plays nothing that can be read off", path)
			return nil
		}
		for _, quoted := range strings.Split(strings.TrimPrefix(string(call[1]), ", "), ", ") {
			pattern := strings.Trim(quoted, `"`)
			for name := range times {
				if ok, err := filepath.Match(pattern, name); err != nil {
					return err
				} else if ok {
					times[name]++
				}
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for name, n := range times {
		if n == 0 {
			t.Errorf("%s is played beside no code", name)
		}
	}
}
