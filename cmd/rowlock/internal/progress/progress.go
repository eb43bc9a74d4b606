// Package progress shows how far long work is: on a terminal as one line that renews itself,
// otherwise as a line each half minute.
package progress

import (
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/term"
)

const (
	renewed  = 100 * time.Millisecond // on a terminal
	repeated = 30 * time.Second       // elsewhere
)

// Line is the progress of one piece of work. The goroutine that does the work calls it.
type Line struct {
	out      io.Writer
	terminal bool
	what     string
	unit     string
	total    int64
	more     bool // there may be more than total
	last     time.Time
	shown    bool
}

// New begins a line on out: "what: n unit".
func New(out io.Writer, what, unit string) *Line {
	l := &Line{out: out, what: what, unit: unit, last: time.Now()}
	if f, ok := out.(*os.File); ok && term.IsTerminal(int(f.Fd())) {
		l.terminal, l.last = true, time.Time{}
	}
	return l
}

// Total sets the amount of work; 0: unknown.
func (l *Line) Total(n int64) { l.total = n }

// AtLeast is Total where there may be more than is known.
func (l *Line) AtLeast(n int64) { l.total, l.more = n, true }

// What names the present step.
func (l *Line) What(text string) { l.what = text }

// Show reports the amount of work done. It limits its own output, so callers may call it often.
func (l *Line) Show(n int64) {
	every := repeated
	if l.terminal {
		every = renewed
	}
	now := time.Now()
	if now.Sub(l.last) < every {
		return
	}
	l.last, l.shown = now, true
	text := fmt.Sprintf("%s: %d %s", l.what, n, l.unit)
	switch {
	case l.total == 0 || l.more && n > l.total: // the total is unknown
	case l.more:
		text = fmt.Sprintf("%s: %d of at least %d %s", l.what, n, l.total, l.unit)
	default:
		l.total = max(l.total, n) // the total may have grown since
		text = fmt.Sprintf("%s: %d of %d %s (%d %%)", l.what, n, l.total, l.unit, int64(float64(n)/float64(l.total)*100))
	}
	if l.terminal {
		fmt.Fprint(l.out, "\r\x1b[K"+text)
	} else {
		fmt.Fprintln(l.out, text)
	}
}

// Of is Show and Total.
func (l *Line) Of(n, total int64) {
	l.Total(total)
	l.Show(n)
}

// Bytes returns a reader that shows how much of a file was read.
func (l *Line) Bytes(in io.Reader) io.Reader { return &reader{in: in, line: l} }

type reader struct {
	in   io.Reader
	line *Line
	read int64
}

func (r *reader) Read(p []byte) (int, error) {
	n, err := r.in.Read(p)
	r.read += int64(n)
	r.line.Show(r.read)
	return n, err
}

// End takes the line of a terminal away.
func (l *Line) End() {
	if l.terminal && l.shown {
		fmt.Fprint(l.out, "\r\x1b[K")
	}
}
