package history

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Round is a part of a run that begins and ends when all is quiet.
type Round struct {
	Number   int           `json:"number"`
	Began    time.Duration `json:"began"`
	Ended    time.Duration `json:"ended"`
	Final    uint64        `json:"final"` // the newest revision when all was quiet
	Segments []*Segment    `json:"segments,omitempty"`
	Floors   []Floor       `json:"floors,omitempty"` // by time
	Reloads  []*Reload     `json:"reloads,omitempty"`
	Losses   []*Loss       `json:"losses,omitempty"`
	Leads    []Lead        `json:"leads,omitempty"`    // by time
	Holders  int           `json:"holders,omitempty"`  // how many holders of leads were read
	Misdated time.Duration `json:"misdated,omitempty"` // until when, in earlier rounds, the clock of the database was wrong, or it lacked commits
	Faults   []*Fault      `json:"faults,omitempty"`
	Stalls   []*Stall      `json:"stalls,omitempty"`
	Earlier  []*Op         `json:"earlier,omitempty"` // of earlier rounds, without an answer: they may come to pass in this one
	Ops      []*Op         `json:"ops,omitempty"`
	Lists    []*List       `json:"lists,omitempty"`
	Streams  []*Stream     `json:"streams,omitempty"`
	Caches   []*Cache      `json:"caches,omitempty"`
	Accesses []*Access     `json:"accesses,omitempty"`
	Rights   []*Right      `json:"rights,omitempty"`
	Refusals []*Refusal    `json:"refusals,omitempty"`
	Holds    []*Hold       `json:"holds,omitempty"`
	Lives    []*Life       `json:"lives,omitempty"`
	Moments  []*Moment     `json:"moments,omitempty"`
	Rests    []*Rest       `json:"rests,omitempty"`
	Pasts    []*Past       `json:"pasts,omitempty"`
	Dues     []*Due        `json:"dues,omitempty"`
	Checks   []*Check      `json:"checks,omitempty"`
	Audits   []*Audited    `json:"audits,omitempty"`
	Stuck    []string      `json:"stuck,omitempty"`  // clients that did not reach the end
	Table    []string      `json:"table,omitempty"`  // errors in the table's revisions
	Verify   []string      `json:"verify,omitempty"` // problems that store verify and restored backups found
}

// Write writes a round as JSON.
func (r *Round) Write(w io.Writer) error {
	if err := json.NewEncoder(w).Encode(r); err != nil {
		return fmt.Errorf("writing a history: %w", err)
	}
	return nil
}

// Read reads the rounds that Write wrote, one after the other.
func Read(r io.Reader) (rounds []*Round, err error) {
	dec := json.NewDecoder(r)
	dec.DisallowUnknownFields() // of a file that is not a history
	for {
		round := &Round{}
		if err := dec.Decode(round); errors.Is(err, io.EOF) {
			return rounds, nil
		} else if err != nil {
			return nil, fmt.Errorf("reading a history: %w", err)
		}
		rounds = append(rounds, round)
	}
}

// Recorder collects a round. It is safe for concurrent use.
type Recorder struct {
	began time.Time
	mu    sync.Mutex
	round *Round
	ids   int64
}

// NewRecorder begins a run.
func NewRecorder() *Recorder {
	r := &Recorder{began: time.Now()}
	r.Begin(1)
	return r
}

// Now returns the time since the run began.
func (r *Recorder) Now() time.Duration { return time.Since(r.began) }

// At returns the time since the run began, of a time of the wall clock.
func (r *Recorder) At(t time.Time) time.Duration { return t.Sub(r.began) }

// Begin begins a round.
func (r *Recorder) Begin(number int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round = &Round{Number: number, Began: r.Now()}
}

// End ends the round and returns it.
func (r *Recorder) End() *Round {
	r.mu.Lock()
	defer r.mu.Unlock()
	round := r.round
	round.Ended = r.Now()
	r.round = &Round{Number: round.Number + 1, Began: r.Now()}
	return round
}

// idPrefix begins the ID of each operation, before its number.
const idPrefix = "op"

// IsID reports whether a text has the form of the ID of an operation.
func IsID(text string) bool {
	number, ok := strings.CutPrefix(text, idPrefix)
	_, err := strconv.ParseInt(number, 36, 64)
	return ok && err == nil
}

// ID is a name for an operation that no other operation of the run has.
func (r *Recorder) ID() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids++
	return idPrefix + strconv.FormatInt(r.ids, 36)
}

// Add adds to the round: an *Op, *List, *Stream, *Cache, *Access, *Right, *Refusal, *Hold, *Life, *Moment, *Rest, *Past, *Due, *Check, *Loss, *Stall or *Fault.
func (r *Recorder) Add(record any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	switch v := record.(type) {
	case *Op:
		r.round.Ops = append(r.round.Ops, v)
	case *List:
		r.round.Lists = append(r.round.Lists, v)
	case *Stream:
		r.round.Streams = append(r.round.Streams, v)
	case *Cache:
		r.round.Caches = append(r.round.Caches, v)
	case *Access:
		r.round.Accesses = append(r.round.Accesses, v)
	case *Right:
		r.round.Rights = append(r.round.Rights, v)
	case *Refusal:
		r.round.Refusals = append(r.round.Refusals, v)
	case *Hold:
		r.round.Holds = append(r.round.Holds, v)
	case *Life:
		r.round.Lives = append(r.round.Lives, v)
	case *Moment:
		r.round.Moments = append(r.round.Moments, v)
	case *Rest:
		r.round.Rests = append(r.round.Rests, v)
	case *Past:
		r.round.Pasts = append(r.round.Pasts, v)
	case *Due:
		r.round.Dues = append(r.round.Dues, v)
	case *Check:
		r.round.Checks = append(r.round.Checks, v)
	case *Loss:
		r.round.Losses = append(r.round.Losses, v)
	case *Stall:
		r.round.Stalls = append(r.round.Stalls, v)
	case *Fault:
		r.round.Faults = append(r.round.Faults, v)
	default:
		panic(fmt.Sprintf("history: a record of type %T", record))
	}
}

// Lost reports whether the database has lost commits in the round.
func (r *Recorder) Lost() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.round.Losses) > 0
}

// Stuck notes a client that did not reach the end of the round.
func (r *Recorder) Stuck(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round.Stuck = append(r.round.Stuck, text)
}

// Problem notes an error that a check of the database found.
func (r *Recorder) Problem(text string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.round.Verify = append(r.round.Verify, text)
}
