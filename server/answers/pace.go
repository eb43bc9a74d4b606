package answers

import (
	"context"
	"io"

	"github.com/rowlock/rowlock/codecs/budget"
)

const (
	// unpaced is how much of an answer is written without asking anybody.
	unpaced = 1 << 20
	// lap is how much of it is written in one turn after that.
	lap = 4 << 20
)

// Pace makes a long answer, or the beginning of a watch, take turns with those of other
// users. Short ones never wait. End must be called.
type Pace struct {
	line  *budget.Line
	ctx   context.Context
	user  string
	left  int
	leave func() // nil: it has no turn
}

// Pace is that of the answer to a request.
func (a *Answers) Pace(q *Request) Pace {
	return Pace{line: a.Line, ctx: q.R.Context(), user: q.User(), left: unpaced}
}

// Next is asked before n bytes more are made. The error is that of the request's context.
func (p *Pace) Next(n int) error {
	if p.left -= n; p.left >= 0 {
		return nil
	}
	p.End()
	leave, err := p.line.Enter(p.ctx, p.user)
	if err != nil {
		return err
	}
	p.left, p.leave = lap, leave
	return nil
}

// End gives the turn back.
func (p *Pace) End() {
	if p.leave != nil {
		p.leave()
	}
	p.leave = nil
}

// paced writes at a pace.
type paced struct {
	io.Writer
	Pace
}

func (p *paced) Write(data []byte) (int, error) {
	if err := p.Next(len(data)); err != nil {
		return 0, err
	}
	return p.Writer.Write(data)
}
