package sqlstore

import (
	"context"
	"errors"
	"fmt"
)

// Unstaged has the methods of a driver that writes large values no slower than many small ones. Such drivers embed it.
type Unstaged struct{}

// Stage implements Writer.
func (Unstaged) Stage(context.Context, []Op) error { return nil }

// Unstage implements Writer.
func (Unstaged) Unstage([]Op, bool) {}

// Simple has the methods of a driver whose database only its process can reach: it cannot move, be damaged or
// go back, has no disk to wait for, and attests to no cache file. Such drivers embed it.
type Simple struct{ Unstaged }

// Healthy implements Writer.
func (Simple) Healthy() error { return nil }

// RelaxedStats implements Writer.
func (Simple) RelaxedStats() RelaxedStats { return RelaxedStats{} }

// RewindCount implements Log.
func (Simple) RewindCount() int64 { return 0 }

// Rewinds implements Log.
func (Simple) Rewinds() Rewinds { return Rewinds{} }

// RewindNotices implements Log.
func (Simple) RewindNotices() <-chan struct{} { return nil }

// AllEnded implements History.
func (Simple) AllEnded(context.Context, Cursor, int) ([]Row, error) {
	return nil, fmt.Errorf("reading all history: %w", errors.ErrUnsupported)
}

// ReplaceEnded implements History.
func (Simple) ReplaceEnded(context.Context, []Row) (int, error) {
	return 0, fmt.Errorf("storing the past in another form: %w", errors.ErrUnsupported)
}

// ChecksRows implements Admin.
func (Simple) ChecksRows() bool { return false }

// CheckRows implements Admin.
func (Simple) CheckRows(context.Context, bool, func([]Row) error) error { return nil }

// Attestor implements Admin.
func (Simple) Attestor() Attestor { return nil }

// SkipRevisions implements Admin.
func (Simple) SkipRevisions(context.Context, int64) (from, to int64, err error) {
	return 0, 0, fmt.Errorf("leaving out revisions: %w", errors.ErrUnsupported)
}
