package freshfile

import (
	"bytes"
	"context"
	"os"
	"time"
)

// Text follows the text of one file for a loop that acts on its changes.
type Text struct {
	path       string
	every      time.Duration
	last, told state
}

// state is what one look at a file found.
type state struct {
	text   []byte
	failed bool
}

func (s state) equal(other state) bool {
	return s.failed == other.failed && bytes.Equal(s.text, other.text)
}

// NewText follows a file that has been read already; seen is its text. It is looked
// at as often as every says.
func NewText(path string, seen []byte, every time.Duration) *Text {
	s := state{text: seen}
	return &Text{path: path, every: every, last: s, told: s}
}

// Next blocks until the file has another text than before, and two looks in a row
// have found it so: what is being written is waited for. An error says that the file
// cannot be read any more, which is told once, or that ctx has ended.
func (t *Text) Next(ctx context.Context) ([]byte, error) {
	tick := time.NewTicker(t.every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-tick.C:
		}
		text, err := os.ReadFile(t.path)
		found := state{text: text, failed: err != nil}
		if found.failed {
			found.text = nil
		}
		if !found.equal(t.last) {
			t.last = found
			continue
		}
		if found.equal(t.told) {
			continue
		}
		t.told = found
		return found.text, err
	}
}
