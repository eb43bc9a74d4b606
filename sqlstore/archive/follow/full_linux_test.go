package follow

import (
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// TestDiskFull: while the disk is full, the follower reports it; afterwards it
// continues, with every commit once.
func TestDiskFull(t *testing.T) {
	signal.Ignore(syscall.SIGXFSZ)
	defer signal.Reset(syscall.SIGXFSZ)
	var old syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	o := newOrigin(t)
	dir := filepath.Join(t.TempDir(), "backup")
	r := o.follow(Config{Dir: dir})
	o.write(10)
	o.has(r)
	// No file may grow beyond the present size of the log and a part of the next frame.
	limit := old
	limit.Cur = uint64(r.Stats().Bytes) + 100
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
		t.Fatal(err)
	}
	o.write(50)
	r.until("a failure", func(s Stats) bool { return s.Failures > 0 && strings.Contains(s.LastError, "file too large") })
	if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &old); err != nil {
		t.Fatal(err)
	}
	head := o.head()
	r.until("the head", func(s Stats) bool { return s.Revision == head && s.LastError == "" })
	r.end()
	o.same(dir, Target{}, head)
	if l, err := List(dir); err != nil || len(l.Runs) != 1 || len(l.Problems) > 0 {
		t.Fatalf("%+v %v", l, err)
	}
}
