package sqlstore

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// TestRefusalsAreSaidOnce: however often the database refuses, the log has few lines, each with its words; a
// refusal that is not repeated ends after a while.
func TestRefusalsAreSaidOnce(t *testing.T) {
	var log bytes.Buffer
	var now time.Duration
	counted := map[string]int{}
	r := newRefusals(Config{Log: slog.New(slog.NewTextHandler(&log, nil)), Elapsed: func() time.Duration { return now }, Observer: counting{by: counted}})
	s := &Store{refused: r, driver: timed{Driver: noDriver{}}}
	full := fmt.Errorf("writing: %w: %w", ErrFull, errors.New("no space left on device"))
	lines := func() int { return strings.Count(log.String(), "\n") }
	for range 1000 {
		r.record(OpWrite, full)
	}
	if n := lines(); n != 1 || !strings.Contains(log.String(), "no space left on device") || !strings.Contains(log.String(), "level=ERROR") {
		t.Fatalf("%d lines: %s", n, &log)
	}
	if err := s.Writable(); !errors.Is(err, ErrFull) || s.Readable() != nil {
		t.Errorf("writes: %v, reads: %v", err, s.Readable())
	}
	r.record(OpWrite, nil)
	if n := lines(); n != 2 || !strings.Contains(log.String(), "refused=1000") || s.Writable() != nil {
		t.Fatalf("%d lines: %s", n, &log)
	}
	for range 1000 { // by turns
		r.record(OpWrite, full)
		r.record(OpWrite, nil)
	}
	if n := lines(); n != 2 {
		t.Fatalf("%d lines of a store that is full by turns: %s", n, &log)
	}
	now += time.Minute
	r.record(OpWrite, full)
	for range 1000 {
		r.record(OpWrite, fmt.Errorf("%w: now for another reason", ErrFull))
	}
	r.record("lead", fmt.Errorf("%w: permission denied for table kv_lead", ErrRefused))
	if n := lines(); n != 4 {
		t.Fatalf("%d lines a minute later: %s", n, &log)
	}
	now += time.Minute
	r.record(OpWrite, fmt.Errorf("%w: now for another reason", ErrFull))
	if n := lines(); n != 5 || !strings.Contains(log.String(), "now for another reason") {
		t.Fatalf("%d lines once there is another reason: %s", n, &log)
	}
	if err := s.Readable(); err != nil {
		t.Errorf("reads: %v", err)
	}
	now += refusedFor + 1
	if err := s.Writable(); err != nil || len(s.Refusals()) != 0 {
		t.Errorf("long after the last write: %v", err)
	}
	if n := lines(); n != 7 {
		t.Errorf("%d lines: %s", n, &log)
	}
	r.record(OpWrite, errors.New("a value that cannot be stored"))
	if err := s.Writable(); err != nil {
		t.Errorf("one value that is rejected: %v", err)
	}
	r.record("scan", &CorruptError{Key: Key{Resource: "pods", Name: "a"}})
	r.record("read", &NotFoundError{})
	r.record("scan", ErrClosed)
	if err := s.Readable(); err != nil {
		t.Errorf("answers: %v", err)
	}
	r.record("scan", &CorruptError{Revision: 3})
	if err := s.Readable(); KindOf(err) != KindDamaged {
		t.Errorf("a damaged log: %v", err)
	}
	if counted["write full"] != 3002 || counted["lead refused"] != 1 || counted["write rejected"] != 1 || counted["scan damaged"] != 1 || len(counted) != 4 {
		t.Errorf("counted %v", counted)
	}
}

// counting counts refusals.
type counting struct {
	nopObserver
	by map[string]int
}

func (c counting) Refused(operation string, kind Kind) { c.by[operation+" "+string(kind)]++ }
