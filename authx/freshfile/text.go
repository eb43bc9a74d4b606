package freshfile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"
)

// again is the default of Follower.Again. A version that was refused for lack of something else may
// be acceptable by then.
const again = time.Minute

// ErrSame reports that a new version of a file has the same settings as the one in use.
var ErrSame = errors.New("nothing new")

// Follower applies the versions of one file as they appear. It waits until a file is completely
// written, retries a version that Take refused even if the file does not change, and interrupts Take
// once there is a newer version.
type Follower struct {
	Path  string
	Seen  []byte        // the text that is in use already
	Every time.Duration // how often the file is checked; two checks in a row must find the same
	Again time.Duration // how soon a refused version is tried again; 0: after a minute
	// Take applies a version, and may be slow: ctx ends once there is a newer version, which
	// the Follower applies only after Take has returned. An error refuses the version.
	Take func(ctx context.Context, text []byte) error
	// Took receives the result of Take, or the error if the file cannot be read. It does not receive ErrSame,
	// nor the result of a version that a newer one replaced. repeated: Took received the same error before.
	Took func(err error, repeated bool)
}

// state is the result of checking a file once.
type state struct {
	text []byte
	err  error
}

func (s state) equal(other state) bool {
	return (s.err == nil) == (other.err == nil) && bytes.Equal(s.text, other.text)
}

// attempt is a version that is being taken over. It owns a goroutine, which ends with it.
type attempt struct {
	stop  context.CancelFunc
	ended chan error
}

// Run follows the file until ctx ends.
func (f *Follower) Run(ctx context.Context) error {
	tick := time.NewTicker(f.Every)
	defer tick.Stop()
	looked := state{text: f.Seen}
	tried := looked // the version that was handed on last
	var (
		under    *attempt
		due      time.Time // when Take is tried again; zero: it has succeeded
		reported string    // the last error passed to Took for it
	)
	defer func() { under.abandon() }()
	for {
		select {
		case <-ctx.Done():
			return ctx.Err()
		case err := <-under.result():
			under, due = nil, time.Time{}
			if err != nil && !errors.Is(err, ErrSame) {
				due = time.Now().Add(f.pause())
			}
			reported = f.report(err, reported)
			continue
		case <-tick.C:
		}
		found := f.look()
		switch {
		case !found.equal(looked):
			looked = found
			continue
		case !found.equal(tried):
			under.abandon()
			reported = ""
		case under != nil || due.IsZero() || time.Now().Before(due):
			continue
		}
		tried, due = found, time.Time{}
		under = f.begin(ctx, found)
	}
}

func (f *Follower) pause() time.Duration {
	if f.Again == 0 {
		return again
	}
	return f.Again
}

func (f *Follower) look() state {
	text, err := os.ReadFile(f.Path)
	if err != nil {
		return state{err: err}
	}
	return state{text: text}
}

// report passes the result of an attempt to Took, and returns the last reported error.
func (f *Follower) report(err error, reported string) string {
	if f.Took == nil || errors.Is(err, ErrSame) {
		return reported
	}
	if err == nil {
		f.Took(nil, false)
		return ""
	}
	f.Took(err, reported == err.Error())
	return err.Error()
}

func (f *Follower) begin(ctx context.Context, found state) *attempt {
	ctx, stop := context.WithCancel(ctx)
	a := &attempt{stop: stop, ended: make(chan error, 1)}
	go func() {
		if found.err != nil {
			a.ended <- found.err
			return
		}
		a.ended <- f.Take(ctx, found.text)
	}()
	return a
}

// result is nil, which is never ready, while no attempt is in progress.
func (a *attempt) result() <-chan error {
	if a == nil {
		return nil
	}
	return a.ended
}

// abandon ends an attempt and waits for its end.
func (a *attempt) abandon() {
	if a == nil {
		return
	}
	a.stop()
	<-a.ended
}
