package answers

import (
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/server/fair"
)

const (
	// maxTurn is the time for which a piece of a long answer keeps other long answers from a processor.
	// It may take longer, because its client may, but waits for another turn before its next piece.
	maxTurn = 20 * time.Millisecond
	// recent is the time after a short answer for which a TurnScheduler reserves processors for short answers.
	// Clients that elect leaders send a request every two seconds.
	recent = 3 * time.Second
)

// TurnScheduler orders long answers, piece by piece, in turn among users: if a user requests a list a hundred times at
// once, others wait for one piece instead of a hundred. As many pieces are in progress as there are
// processors.
//
// While there are also short answers, half of the processors are reserved for them, because each short answer
// would wait for several pieces, and each turn is followed by a pause of the same length: on small machines,
// the clients of long lists need the same processors again.
type TurnScheduler struct {
	gate       *fair.Gate
	processors int
	began      time.Time
	short      atomic.Int64 // when the last short answer was sent, since began; 0: never
}

// NewTurnScheduler makes a scheduler for a number of processors.
func NewTurnScheduler(processors int) *TurnScheduler {
	l := &TurnScheduler{processors: processors, began: time.Now()}
	l.gate = fair.NewGate(fair.Limits{Open: l.Concurrency, Turn: maxTurn, Pause: l.pause})
	return l
}

// Concurrency returns how many long answers may be in progress at present.
func (l *TurnScheduler) Concurrency() int {
	if l.hasShort() {
		return l.processors - l.processors/2
	}
	return l.processors
}

func (l *TurnScheduler) pause(took time.Duration) time.Duration {
	if l.hasShort() {
		return min(took, maxTurn)
	}
	return 0
}

// hasShort reports whether there have been short answers recently.
func (l *TurnScheduler) hasShort() bool {
	at := l.short.Load()
	return at != 0 && time.Since(l.began)-time.Duration(at) < recent
}

// RecordShort records an answer that did not wait for a turn.
func (l *TurnScheduler) RecordShort() {
	if l != nil {
		l.short.Store(int64(time.Since(l.began)) + 1)
	}
}
