package freshfile

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// watched is a file, a Value of its text, and a clock for both.
type watched struct {
	t       *testing.T
	path    string
	now     time.Time
	elapsed time.Duration
	value   *Value[string]
	failed  []error
}

func watch(t *testing.T) *watched {
	w := &watched{t: t, path: filepath.Join(t.TempDir(), "file"), now: time.Now()}
	w.write("one", w.now)
	var err error
	w.value, err = New(func() (string, error) {
		text, err := os.ReadFile(w.path)
		if strings.HasPrefix(string(text), "bad") {
			return "", errors.New("cannot be read: " + string(text))
		}
		return string(text), err
	}, func(err error) { w.failed = append(w.failed, err) }, w.path)
	if err != nil {
		t.Fatal(err)
	}
	w.value.clock = func() time.Time { return w.now }
	w.value.elapsed = func() time.Duration { return w.elapsed }
	w.value.next.Store(int64(interval))
	return w
}

func (w *watched) write(text string, at time.Time) {
	w.t.Helper()
	if err := os.WriteFile(w.path, []byte(text), 0o600); err != nil {
		w.t.Fatal(err)
	}
	if err := os.Chtimes(w.path, at, at); err != nil {
		w.t.Fatal(err)
	}
}

func (w *watched) pass(d time.Duration) {
	w.now = w.now.Add(d)
	w.elapsed += d
}

// after lets time pass and wants a value.
func (w *watched) after(d time.Duration, want string) {
	w.t.Helper()
	w.pass(d)
	if got := w.value.Get(); got != want {
		w.t.Fatalf("%q, want %q", got, want)
	}
}

func TestChange(t *testing.T) {
	w := watch(t)
	w.write("two", w.now.Add(-time.Hour))
	w.after(interval/2, "one") // not looked at again yet
	w.after(interval/2, "two") // written long ago: taken at once
}

// TestWriting: a file that is being written is not used, however often it is read.
func TestWriting(t *testing.T) {
	w := watch(t)
	w.pass(interval)
	for _, part := range []string{"", "t", "th", "thr", "thre"} {
		w.write(part, w.now)
		w.after(settled/2, "one")
		w.after(settled/4, "one")
	}
	w.write("three", w.now)
	w.after(0, "one")
	w.after(settled, "three")
}

// TestSetClock: a change is found soon, whatever the clock was set to before.
func TestSetClock(t *testing.T) {
	for _, ahead := range []time.Duration{9 * time.Hour, -9 * time.Hour} {
		w := watch(t)
		w.now = w.now.Add(ahead)
		w.after(interval, "one")
		w.now = w.now.Add(-ahead) // it is right again
		w.write("two", w.now.Add(-time.Minute))
		w.after(interval, "two")
	}
}

// TestFailures: the last good value stays, and each failure is reported once.
func TestFailures(t *testing.T) {
	w := watch(t)
	for _, text := range []string{"bad", "bad", "bad too"} {
		w.write(text, w.now.Add(-time.Minute))
		w.after(interval, "one")
		w.after(interval, "one")
	}
	if len(w.failed) != 2 {
		t.Errorf("reported %v", w.failed)
	}
	if err := os.Remove(w.path); err != nil {
		t.Fatal(err)
	}
	w.after(interval, "one")
	w.after(interval, "one")
	if len(w.failed) != 3 || !errors.Is(w.failed[2], os.ErrNotExist) {
		t.Errorf("reported %v", w.failed)
	}
	w.write("two", w.now.Add(-time.Minute))
	w.after(interval, "two")
}

func TestBadFromTheStart(t *testing.T) {
	if _, err := New(func() (int, error) { return 0, errors.New("no") }, nil); err == nil {
		t.Fatal("made of what cannot be read")
	}
}
