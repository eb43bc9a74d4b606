package history

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"time"
)

// line is one record of the JSON-lines form.
type line struct {
	Op      *Op      `json:"op,omitempty"`
	Earlier *Op      `json:"earlier,omitempty"`
	List    *List    `json:"list,omitempty"`
	Stream  *Stream  `json:"stream,omitempty"`
	Cache   *Cache   `json:"cache,omitempty"`
	Access  *Access  `json:"access,omitempty"`
	Right   *Right   `json:"right,omitempty"`
	Fault   *Fault   `json:"fault,omitempty"`
	Segment *Segment `json:"segment,omitempty"`
	Round   *header  `json:"round,omitempty"`
}

type header struct {
	Number int           `json:"number"`
	Began  time.Duration `json:"began"`
	Ended  time.Duration `json:"ended"`
	Final  uint64        `json:"final"`
	Stuck  []string      `json:"stuck,omitempty"`
	Table  []string      `json:"table,omitempty"`
	Verify []string      `json:"verify,omitempty"`
}

// Write writes a round as JSON lines.
func (r *Round) Write(w io.Writer) error {
	out := bufio.NewWriter(w)
	enc := json.NewEncoder(out)
	lines := []line{{Round: &header{r.Number, r.Began, r.Ended, r.Final, r.Stuck, r.Table, r.Verify}}}
	for _, s := range r.Segments {
		lines = append(lines, line{Segment: s})
	}
	for _, f := range r.Faults {
		lines = append(lines, line{Fault: f})
	}
	for _, o := range r.Earlier {
		lines = append(lines, line{Earlier: o})
	}
	for _, o := range r.Ops {
		lines = append(lines, line{Op: o})
	}
	for _, l := range r.Lists {
		lines = append(lines, line{List: l})
	}
	for _, s := range r.Streams {
		lines = append(lines, line{Stream: s})
	}
	for _, c := range r.Caches {
		lines = append(lines, line{Cache: c})
	}
	for _, a := range r.Rights {
		lines = append(lines, line{Right: a})
	}
	for _, a := range r.Accesses {
		lines = append(lines, line{Access: a})
	}
	for _, l := range lines {
		if err := enc.Encode(l); err != nil {
			return fmt.Errorf("writing a history: %w", err)
		}
	}
	return out.Flush()
}

// Read reads the rounds that Write wrote, one after the other.
func Read(r io.Reader) ([]*Round, error) {
	dec := json.NewDecoder(bufio.NewReader(r))
	var rounds []*Round
	for {
		var l line
		if err := dec.Decode(&l); errors.Is(err, io.EOF) {
			return rounds, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading a history: %w", err)
		}
		if h := l.Round; h != nil {
			rounds = append(rounds, &Round{Number: h.Number, Began: h.Began, Ended: h.Ended, Final: h.Final, Stuck: h.Stuck, Table: h.Table, Verify: h.Verify})
			continue
		}
		if len(rounds) == 0 {
			return nil, errors.New("reading a history: it does not begin with a round")
		}
		round := rounds[len(rounds)-1]
		switch {
		case l.Op != nil:
			round.add(l.Op)
		case l.Earlier != nil:
			round.Earlier = append(round.Earlier, l.Earlier)
		case l.List != nil:
			round.add(l.List)
		case l.Stream != nil:
			round.add(l.Stream)
		case l.Cache != nil:
			round.add(l.Cache)
		case l.Access != nil:
			round.add(l.Access)
		case l.Right != nil:
			round.add(l.Right)
		case l.Fault != nil:
			round.add(l.Fault)
		case l.Segment != nil:
			round.add(l.Segment)
		}
	}
}
