// Package ratelog limits log lines that clients cause. Of each Line at most a certain number a minute are
// written at the level that operators see, the first of which also has the number of those omitted in the minute
// before; all others are written at the debug level. A line costs a client nothing, so any client could fill
// a disk otherwise.
package ratelog

import (
	"context"
	"log/slog"
	"sync"
	"time"
)

const every = time.Minute

// Line is a log line that may repeat often. Its zero value is ready.
type Line struct {
	Most  int              // lines a minute; 0: one
	Clock func() time.Time // nil: time.Now

	mu     sync.Mutex
	since  time.Time // of the minute
	logged int       // in it
	left   int64
}

// Log writes the line, now or at the debug level.
func (l *Line) Log(ctx context.Context, log *slog.Logger, level slog.Level, message string, args ...any) {
	left, due := l.due()
	switch {
	case !due:
		level = slog.LevelDebug
	case left > 0:
		args = append(args, "leftOut", left)
	}
	log.Log(ctx, level, message, args...)
}

// due reports whether it is time, and how many lines were left out before.
func (l *Line) due() (left int64, due bool) {
	now := time.Now
	if l.Clock != nil {
		now = l.Clock
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := now(); l.since.IsZero() || at.Sub(l.since) >= every {
		left, l.since, l.logged, l.left = l.left, at, 1, 0
		return left, true
	}
	if l.logged < l.Most {
		l.logged++
		return 0, true
	}
	l.left++
	return 0, false
}
