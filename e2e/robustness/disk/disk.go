//go:build unix

// Package disk is a disk below SQLite with the faults of real ones: it loses pages that were not synced, fails syncs and then
// lacks their pages, is slow, and is full. It is a file system of FUSE in a process of its own, over
// an ordinary folder.
package disk

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"
)

// Disk is a mounted disk. Close unmounts it.
type Disk struct {
	cmd     *exec.Cmd
	in      io.WriteCloser
	answers *bufio.Reader
	mu      sync.Mutex
}

// Mount starts the process that serves a disk: program with arguments that end in Serve. It fails where FUSE cannot be used.
func Mount(program string, args ...string) (*Disk, error) {
	d := &Disk{cmd: exec.Command(program, args...)}
	var err error
	if d.in, err = d.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := d.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	var said strings.Builder
	d.cmd.Stderr = &said
	d.answers = bufio.NewReader(out)
	if err := d.cmd.Start(); err != nil {
		return nil, err
	}
	if line, err := d.answers.ReadString('\n'); err != nil || line != "ready\n" {
		_ = d.in.Close()
		_ = d.cmd.Wait() // its output has the reason
		return nil, fmt.Errorf("no disk could be mounted: %s", strings.TrimSpace(said.String()))
	}
	return d, nil
}

func (d *Disk) command(name string, n int64) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, err := fmt.Fprintln(d.in, name, n); err != nil {
		return 0, err
	}
	line, err := d.answers.ReadString('\n')
	if err != nil {
		return 0, err
	}
	var answer int
	if _, err := fmt.Sscanf(line, "ok %d", &answer); err != nil {
		return 0, errors.New(strings.TrimSpace(line))
	}
	return answer, nil
}

// Slow makes each sync last up to a time; 0 ends that.
func (d *Disk) Slow(most time.Duration) error {
	_, err := d.command("slow", int64(most))
	return err
}

// FailSyncs fails the next n syncs: their pages are not on the disk, even after a later sync that succeeds. It returns
// how many of those asked for before did not come.
func (d *Disk) FailSyncs(n int) (left int, err error) { return d.command("fail", int64(n)) }

// Full sets whether files can no longer grow.
func (d *Disk) Full(on bool) error {
	n := int64(0)
	if on {
		n = 1
	}
	_, err := d.command("full", n)
	return err
}

// Lose takes back pages that no sync brought to the disk, as a power loss does, and returns how many. No process may have
// the files open.
func (d *Disk) Lose(seed uint64) (pages int, err error) {
	return d.command("lose", int64(seed>>1))
}

// Close unmounts the disk. No process may have a file open.
func (d *Disk) Close() error {
	_ = d.in.Close()
	done := make(chan error, 1)
	go func() { done <- d.cmd.Wait() }()
	select {
	case err := <-done:
		return err
	case <-time.After(20 * time.Second):
		_ = d.cmd.Process.Signal(os.Kill)
		return errors.New("the disk did not end")
	}
}
