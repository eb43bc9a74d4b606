package ratelog_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/ratelog"
)

func TestLine(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	now := time.Unix(1000, 0)
	l := ratelog.Line{Clock: func() time.Time { return now }}
	for range 100 {
		l.Log(context.Background(), log, slog.LevelWarn, "down", "error", "x")
	}
	if n := strings.Count(out.String(), "msg=down"); n != 1 || strings.Contains(out.String(), "leftOut") {
		t.Fatalf("%d lines: %s", n, &out)
	}
	several := ratelog.Line{Most: 5, Clock: l.Clock}
	for range 100 {
		several.Log(context.Background(), log, slog.LevelWarn, "failed")
	}
	if n := strings.Count(out.String(), "msg=failed"); n != 5 {
		t.Errorf("%d lines of 5", n)
	}
	now = now.Add(time.Minute)
	l.Log(context.Background(), log, slog.LevelWarn, "down")
	if n := strings.Count(out.String(), "msg=down"); n != 2 || !strings.Contains(out.String(), "leftOut=99") {
		t.Errorf("%d lines: %s", n, &out)
	}
}
