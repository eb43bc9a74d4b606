//go:build linux && amd64

package wallclock_test

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/wallclock"
)

// reader is the variable by which the test's program becomes a process that prints its clocks.
const reader = "ROWLOCK_TEST_READS_CLOCK"

func TestMain(m *testing.M) {
	if os.Getenv(reader) == "" {
		os.Exit(m.Run())
	}
	began := time.Now()
	for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
		now := time.Now()
		fmt.Println(now.UnixMilli(), int64(now.Sub(began)))
	}
}

// TestSet: the wall clock of another process is set ahead and back, and its elapsed time goes on.
func TestSet(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), reader+"=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now() // before the process takes its first reading
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	first, answered := time.Duration(-1), began
	off := func(want time.Duration) {
		t.Helper()
		asked := time.Now()
		fmt.Fprintln(in)
		var wall int64
		var elapsed time.Duration
		if _, err := fmt.Fscan(out, &wall, &elapsed); err != nil {
			t.Fatal(err)
		}
		const most = time.Minute // between its reading and this one, on the busiest machine
		if got := time.Until(time.UnixMilli(wall)); got > want+most || got < want-most {
			t.Errorf("the clock is off by %s, want %s", got, want)
		}
		if first < 0 {
			first, answered = elapsed, time.Now()
			return
		}
		if least, most := asked.Sub(answered), time.Since(began); elapsed-first < least || elapsed > most {
			t.Errorf("%s have passed in the process, and here between %s and %s", elapsed-first, least, most)
		}
	}
	off(0)
	for range 2 { // the second finds what the first has prepared
		clock, err := wallclock.Open(cmd.Process.Pid)
		if err != nil {
			t.Fatal(err)
		}
		off(0)
		for _, ahead := range []time.Duration{5 * time.Hour, -72 * time.Hour, 365 * 24 * time.Hour, 0} {
			if err := clock.Set(ahead); err != nil {
				t.Fatal(err)
			}
			off(ahead)
		}
		if err := clock.Set(200 * 365 * 24 * time.Hour); err == nil {
			t.Error("a clock is set by more than it can be")
		}
		if err := clock.Close(); err != nil {
			t.Error(err)
		}
	}
	in.Close()
	if err := cmd.Wait(); err != nil {
		t.Error(err)
	}
}

// TestNoGo: a process that is no program of Go keeps its clock.
func TestNoGo(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	if c, err := wallclock.Open(cmd.Process.Pid); err == nil {
		t.Errorf("%+v", c)
	}
}
