package freshfile_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/authx/freshfile"
)

// followed is a file with a Follower, and all that happened to them.
type followed struct {
	t      *testing.T
	path   string
	events chan string  // "take TEXT", "left TEXT", "took ERROR", "took ERROR again"
	bad    atomic.Value // the text that is refused
	slow   string       // the text that is never done with
}

func follow(t *testing.T) *followed {
	f := &followed{t: t, path: filepath.Join(t.TempDir(), "file"), events: make(chan string, 100)}
	f.write("one")
	return f
}

func (f *followed) write(text string) {
	f.t.Helper()
	if err := os.WriteFile(f.path, []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

// run follows the file, in a bubble of synctest, until the test ends.
func (f *followed) run(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error)
	follower := &freshfile.Follower{Path: f.path, Seen: []byte("one"), Every: time.Second, Take: f.take, Took: func(err error, repeated bool) {
		text := "took nil"
		if err != nil {
			text = "took " + err.Error()
		}
		if repeated {
			text += " again"
		}
		f.events <- text
	}}
	go func() { done <- follower.Run(ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-done; !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

func (f *followed) take(ctx context.Context, text []byte) error {
	f.events <- "take " + string(text)
	switch string(text) {
	case f.bad.Load():
		return errors.New("refused")
	case f.slow:
		<-ctx.Done()
		f.events <- "left " + string(text)
		return ctx.Err()
	case "one":
		return freshfile.ErrSame
	}
	return nil
}

// after lets time pass and wants these events.
func (f *followed) after(d time.Duration, want ...string) {
	f.t.Helper()
	time.Sleep(d)
	synctest.Wait()
	var got []string
	for len(f.events) > 0 {
		got = append(got, <-f.events)
	}
	if strings.Join(got, "; ") != strings.Join(want, "; ") {
		f.t.Fatalf("got %q, want %q", got, want)
	}
}

// TestFollow: a file that is being written is waited for; a missing one is reported.
func TestFollow(t *testing.T) {
	f := follow(t)
	synctest.Test(t, func(t *testing.T) {
		f.run(t)
		f.write("half")
		f.after(1500 * time.Millisecond) // one look
		f.write("whole")
		f.after(2*time.Second, "take whole", "took nil")
		f.write("torn")
		f.after(time.Second)
		f.write("whole") // as it was
		f.after(10 * time.Minute)
		if err := os.Remove(f.path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(3 * time.Second)
		if text := <-f.events; !strings.Contains(text, "no such file") || strings.HasSuffix(text, "again") {
			t.Fatal(text)
		}
		time.Sleep(time.Minute)
		if text := <-f.events; !strings.Contains(text, "no such file") || !strings.HasSuffix(text, "again") {
			t.Fatal(text)
		}
		f.write("back")
		f.after(3*time.Second, "take back", "took nil")
	})
}

// TestRefusedIsTriedAgain: each minute, though the text is the same, until it is taken.
func TestRefusedIsTriedAgain(t *testing.T) {
	f := follow(t)
	synctest.Test(t, func(t *testing.T) {
		const needy = "needs another file"
		f.bad.Store(needy)
		f.run(t)
		f.write(needy)
		f.after(5*time.Second, "take needs another file", "took refused")
		f.after(50 * time.Second)
		f.after(15*time.Second, "take needs another file", "took refused again")
		f.bad.Store("")
		f.after(time.Minute, "take needs another file", "took nil")
		f.after(10 * time.Minute)
	})
}

// TestOvertaken: a version that waits for something is given up for a newer one, also if
// that is the one in use, or cannot be read.
func TestOvertaken(t *testing.T) {
	f := follow(t)
	synctest.Test(t, func(t *testing.T) {
		f.slow = "waits for ever"
		f.run(t)
		f.write(f.slow)
		f.after(time.Hour, "take waits for ever")
		f.write("correction")
		f.after(3*time.Second, "left waits for ever", "take correction", "took nil")
		f.write(f.slow)
		f.after(3*time.Second, "take waits for ever")
		f.write("one")
		f.after(time.Hour, "left waits for ever", "take one")
		f.write(f.slow)
		f.after(3*time.Second, "take waits for ever")
		f.bad.Store("bad")
		f.write("bad")
		f.after(3*time.Second, "left waits for ever", "take bad", "took refused")
	})
}
