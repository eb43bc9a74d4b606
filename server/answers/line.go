package answers

import (
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/server/fair"
)

const (
	// turn is for how long a piece of a long answer keeps the others from a processor. It
	// may take longer, as its client may, but waits for another turn before its next piece.
	turn = 20 * time.Millisecond
	// recent is for how long after a short answer a Line leaves processors to such as it.
	// Those who elect leaders ask every two seconds.
	recent = 3 * time.Second
)

// Line puts long answers in order, piece by piece, in turn among users: so what a user lists
// a hundred times at once takes a processor from others for a piece, and not for a hundred
// of them. As many are worked on at once as there are processors.
//
// While there are short answers too, which would wait for each piece, several times each,
// half of the processors are left to those, and each turn is followed by a rest as long as
// it was: on machines that are small, who lists wants the same processors once more.
type Line struct {
	gate       *fair.Gate
	processors int
	began      time.Time
	short      atomic.Int64 // when the last short answer was sent, since began; 0: never
}

// NewLine makes a line for a number of processors.
func NewLine(processors int) *Line {
	l := &Line{processors: processors, began: time.Now()}
	l.gate = fair.NewGate(fair.Limits{Open: l.Turns, Turn: turn, Rest: l.rest})
	return l
}

// Turns is how many long answers are worked on at once, for now.
func (l *Line) Turns() int {
	if l.shorts() {
		return l.processors - l.processors/2
	}
	return l.processors
}

func (l *Line) rest(took time.Duration) time.Duration {
	if l.shorts() {
		return min(took, turn)
	}
	return 0
}

// shorts says whether there are short answers these days.
func (l *Line) shorts() bool {
	at := l.short.Load()
	return at != 0 && time.Since(l.began)-time.Duration(at) < recent
}

// Short notes that an answer was sent that did not wait in the line.
func (l *Line) Short() {
	if l != nil {
		l.short.Store(int64(time.Since(l.began)) + 1)
	}
}
