//go:build unix

package cluster_test

import (
	"bytes"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

// TestFindReloads finds reloads in log lines with the messages that sqlstore has.
func TestFindReloads(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile(filepath.Join("..", "..", "..", "sqlstore", "feed.go"))
	if err != nil {
		t.Fatal(err)
	}
	var messages []string
	for _, m := range regexp.MustCompile(`"([^"]*all objects [a-z]+ loaded anew[^"]*)"`).FindAllSubmatch(source, -1) {
		messages = append(messages, string(m[1]))
	}
	if len(messages) != 3 {
		t.Fatalf("sqlstore/feed.go logs %q, want two beginnings and an end", messages)
	}
	began := time.Now()
	var log bytes.Buffer
	l := slog.New(slog.NewTextHandler(&log, nil))
	l.Info("unrelated")
	l.Warn(messages[0], "applied", 3, "floor", 5)
	l.Warn(messages[2], "revision", 9)
	l.Warn(messages[1], "applied", 9, "floor", 5)
	found := cluster.FindReloads(log.String(), 2, func(at time.Time) time.Duration { return at.Sub(began) }, math.MaxInt64)
	if len(found) != 2 || found[0].Server != 2 || found[1].End != math.MaxInt64 {
		t.Fatalf("%v in\n%s", found, log.String())
	}
	for _, r := range found[:1] {
		if r.Begin < -time.Second || r.End < r.Begin || r.End > time.Minute {
			t.Errorf("a reload lasts from %s to %s", r.Begin, r.End)
		}
	}
}
