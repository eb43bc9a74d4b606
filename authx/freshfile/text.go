package freshfile

import (
	"bytes"
	"context"
	"errors"
	"os"
	"time"
)

// again is how soon a version that was refused is tried once more, unless a Follower says
// otherwise: what it needs besides itself may be there by then.
const again = time.Minute

// ErrSame: a version says nothing that is not in use already.
var ErrSame = errors.New("nothing new")

// Follower applies the versions of one file as they appear. It promises: what is
// being written is waited for; a version that is refused is tried again, though the file
// did not change; a newer version is never kept waiting by an older one.
type Follower struct {
	Path  string
	Seen  []byte        // the text that is in use already
	Every time.Duration // how often the file is looked at; two looks in a row must find the same
	Again time.Duration // how soon a refused version is tried again; 0: after a minute
	// Take takes over a version, which may take its time: ctx ends once there is a newer
	// one, and no newer one is taken over before Take has returned. An error refuses it.
	Take func(ctx context.Context, text []byte) error
	// Took gets the result, and the error if the file cannot be read; not that of a version that a newer
	// one replaced, nor ErrSame. repeated says that the last report was the same.
	Took func(err error, repeated bool)
}

// state is what one look at a file found.
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
		under *attempt
		due   time.Time // when it is tried again; zero: it was taken over
		told  string    // what Took reported of it
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
			told = f.tell(err, told)
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
			told = ""
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

// tell reports the end of an attempt, and returns the report.
func (f *Follower) tell(err error, told string) string {
	if f.Took == nil || errors.Is(err, ErrSame) {
		return told
	}
	if err == nil {
		f.Took(nil, false)
		return ""
	}
	f.Took(err, told == err.Error())
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
