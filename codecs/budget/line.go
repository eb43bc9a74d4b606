package budget

import (
	"context"
	"sync"
	"sync/atomic"
	"time"
)

const (
	// Lap is for how long who has a turn in a Line keeps the others from a processor. It
	// may take longer, as its client may, but goes back into the line before its next piece.
	Lap = 20 * time.Millisecond
	// Lately is for how long after a short answer a Line leaves processors to such as it.
	// Those who elect leaders ask every two seconds.
	Lately = 3 * time.Second
)

// Line puts long answers in order, piece by piece, in turn among users: so what a user lists
// a hundred times at once takes a processor from others for a piece, and not for a hundred
// of them. As many are worked on at once as there are processors.
//
// While there are short answers too, which would wait for each piece, several times each,
// half of the processors are left to those, and each turn is followed by a rest as long as
// it was: on machines that are small, who lists wants the same processors once more.
type Line struct {
	gate   Gate
	others int // processors that short answers have for themselves while there are any
	began  time.Time
	short  atomic.Int64 // when the last short answer was sent, since began; 0: never
}

// NewLine makes a line for a number of processors.
func NewLine(processors int) *Line {
	l := &Line{
		gate:   Gate{atOnce: processors, turn: Lap, users: map[string]*visitor{}},
		others: processors / 2, began: time.Now(),
	}
	l.gate.most = l.Turns
	return l
}

// Turns is how many long answers are worked on at once, for now.
func (l *Line) Turns() int {
	if l.shorts() {
		return l.gate.atOnce - l.others
	}
	return l.gate.atOnce
}

// shorts says whether there are short answers these days.
func (l *Line) shorts() bool {
	at := l.short.Load()
	return at != 0 && time.Since(l.began)-time.Duration(at) < Lately
}

// Short notes that an answer was sent that did not wait in the line.
func (l *Line) Short() {
	if l != nil {
		l.short.Store(int64(time.Since(l.began)) + 1)
	}
}

// Place is a place in a line that was waited for, with a turn. The zero Place is none.
type Place struct {
	line  *Line
	user  string
	entry *entry
	turn  *turn
}

// turn ends once: when it is given back, or by itself.
type turn struct {
	end   func()
	timer *time.Timer
	over  atomic.Bool
}

// Enter waits for the user's turn. Leave must follow. The error is that of the context. A
// nil Line does not make anybody wait.
func (l *Line) Enter(ctx context.Context, user string) (Place, error) {
	if l == nil {
		return Place{}, nil
	}
	e, err := l.gate.wait(ctx, user, 0)
	if err != nil {
		return Place{}, err
	}
	t, came := &turn{}, time.Now()
	t.end = sync.OnceFunc(func() {
		t.over.Store(true)
		if took := time.Since(came); l.shorts() {
			time.AfterFunc(min(took, Lap), l.gate.stepAside)
			return
		}
		l.gate.stepAside()
	})
	t.timer = time.AfterFunc(l.gate.turn, t.end)
	return Place{l, user, e, t}, nil
}

// Over says whether the turn has taken so long that somebody else has one now.
func (p *Place) Over() bool { return p.turn != nil && p.turn.over.Load() }

// Leave gives the turn back. More than once does nothing.
func (p *Place) Leave() {
	if p.turn == nil {
		return
	}
	p.turn.timer.Stop()
	p.turn.end()
	p.line.gate.leave(p.user, p.entry)
	*p = Place{}
}
