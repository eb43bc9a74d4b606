package answers

import (
	"context"
	"io"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/request"
)

const (
	// unpaced is how much of an answer is written without asking anybody.
	unpaced = 1 << 20
	// lap is how much of it is written in one turn after that, at most.
	lap = 4 << 20
)

// Pace makes a long answer, or the beginning of a watch, take turns with those of other
// users. Short ones never wait. End must be called.
type Pace struct {
	line  *fair.Gate // nil: nobody waits
	ctx   context.Context
	scope *request.Scope
	user  string
	left  int
	place *fair.Place
}

// Pace is that of the answer to a request.
func (a *Answers) Pace(q *Request) Pace {
	var line *fair.Gate
	if a.Line != nil {
		line = a.Line.gate
	}
	return Pace{line: line, ctx: q.R.Context(), scope: q.Scope, user: q.User(), left: unpaced}
}

// Next is asked before n bytes more are made. The error is that of the request's context.
func (p *Pace) Next(n int) error {
	if p.left -= n; p.left >= 0 && !p.place.Over() {
		return nil
	}
	p.End()
	if p.scope != nil {
		p.scope.Long = true
	}
	place, err := p.line.Enter(p.ctx, p.user, 0)
	if err != nil {
		return err
	}
	p.left, p.place = lap, place
	return nil
}

// End gives the turn back.
func (p *Pace) End() {
	p.place.Leave()
	p.place = nil
}

// paced writes at a pace.
type paced struct {
	io.Writer
	Pace
	gone bool // the client is
}

func (p *paced) Write(data []byte) (int, error) {
	if err := p.Next(len(data)); err != nil {
		return 0, err
	}
	n, err := p.Writer.Write(data)
	p.gone = err != nil
	return n, err
}
