package server_test

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestWrittenValues: no write changes what another one stored, was answered, or sent to watches, though the
// buffers that requests are read and encoded in are used again.
func TestWrittenValues(t *testing.T) {
	file, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "db"), sqlite.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	for name, on := range map[string]func(*server.Config){
		"SQLite": servertest.On(file, sqlstore.Config{}), "encrypted": servertest.On(storetest.NewShared().Open(), sqlstore.Config{Sealer: storetest.NewTestSealer("one")}),
	} {
		t.Run(name, func(t *testing.T) { writtenValues(t, servertest.Start(t, servertest.Plain(nil), on)) })
	}
}

func writtenValues(t *testing.T, s *servertest.Server) {
	const path = "/api/v1/namespaces/default/configmaps"
	const writers, writes = 8, 60
	check := func(data []byte, want string) error {
		var got corev1.ConfigMap
		if err := json.Unmarshal(data, &got); err != nil {
			return fmt.Errorf("%w: %s", err, data)
		}
		if got.Data["a"] != want {
			return fmt.Errorf("%q instead of %q", got.Data["a"], want)
		}
		return nil
	}
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			name := fmt.Sprint("w", w)
			var kept [][2]string // answers, and what they must hold
			for i := range writes {
				payload := strings.Repeat(string(rune('a'+w)), 1+(i*i*37+w*901)%5000) + fmt.Sprint(i)
				method, to, kind := "PATCH", path+"/"+name, "application/merge-patch+json"
				switch {
				case i == 0:
					method, to, kind = "POST", path, "application/json"
				case i%3 == 1:
					kind = "application/apply-patch+yaml"
					to += "?force=true&fieldManager=m"
				case i%5 == 0: // nothing new
					payload = kept[i-1][1]
				}
				body := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"` + name + `"},"data":{"a":"` + payload + `"}}`
				answer := s.Do(method, to, body, "Content-Type", kind)
				if answer.Code >= 300 {
					t.Errorf("%s %s: %d %s", method, to, answer.Code, answer.Body)
					return
				}
				kept = append(kept, [2]string{answer.Body.String(), payload})
				row, err := s.Store.Read(context.Background(), sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: name}, 0)
				if err == nil {
					err = check(row.Value, payload)
				}
				if err != nil {
					t.Errorf("stored: %v", err)
				}
				if err := check(s.Do("GET", path+"/"+name, "").Body.Bytes(), payload); err != nil {
					t.Errorf("served: %v", err)
				}
			}
			for _, k := range kept {
				if err := check([]byte(k[0]), k[1]); err != nil {
					t.Errorf("answered: %v", err)
				}
			}
		})
	}
	all.Wait()
	seen := map[string]int{}
	for last := 1; len(seen) < writers && last <= 64; last *= 2 { // seconds: on a busy machine the first event may take one
		clear(seen)
		for line := range strings.Lines(watched(t, s, fmt.Sprintf("%s?watch=true&resourceVersion=1&timeoutSeconds=%d", path, last))) {
			var event struct{ Object corev1.ConfigMap }
			if err := json.Unmarshal([]byte(line), &event); err != nil {
				t.Fatal(err)
			}
			c := &event.Object
			letter := strings.TrimRight(c.Data["a"], "0123456789")
			if w := int(c.Name[1] - '0'); letter != strings.Repeat(string(rune('a'+w)), len(letter)) {
				t.Errorf("an event of %s has %q", c.Name, c.Data["a"])
			}
			seen[c.Name]++
		}
	}
	if len(seen) != writers {
		t.Errorf("events: %v", seen)
	}
}

// watched returns all that a watch is sent until it ends.
func watched(t *testing.T, s *servertest.Server, path string) string {
	t.Helper()
	return string(s.Must("GET", path, ""))
}
