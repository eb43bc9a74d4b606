package verbs

import (
	"context"
	"io"
)

const (
	// unpaced is how much of an answer is written without asking anybody.
	unpaced = 1 << 20
	// lap is how much of it is written in one turn after that.
	lap = 4 << 20
)

// pace makes a long answer, or the beginning of a watch, take turns with those of other
// users. Short ones never wait.
type pace struct {
	h     *Handler
	ctx   context.Context
	user  string
	left  int
	leave func() // nil: it has no turn
}

func (h *Handler) pace(c *Call) pace {
	return pace{h: h, ctx: c.R.Context(), user: visitor(c), left: unpaced}
}

// next is asked before n bytes more are made. The error is that of the request's context.
func (p *pace) next(n int) error {
	if p.left -= n; p.left >= 0 {
		return nil
	}
	p.end()
	leave, err := p.h.Long.Enter(p.ctx, p.user)
	if err != nil {
		return err
	}
	p.left, p.leave = lap, leave
	return nil
}

// end gives the turn back.
func (p *pace) end() {
	if p.leave != nil {
		p.leave()
	}
	p.leave = nil
}

// paced writes at a pace.
type paced struct {
	io.Writer
	pace
}

func (p *paced) Write(data []byte) (int, error) {
	if err := p.next(len(data)); err != nil {
		return 0, err
	}
	return p.Writer.Write(data)
}
