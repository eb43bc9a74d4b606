//go:build unix

package pgtest

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Run starts the process again after Kill or Shutdown and waits until it answers.
func (s *Server) Run(ctx context.Context) error {
	attr, err := asUser(s.dir)
	if err != nil {
		return err
	}
	logFile, err := os.OpenFile(filepath.Join(s.dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer logFile.Close()
	cmd := exec.Command(filepath.Join(s.bin, "postgres"), "-D", s.data())
	cmd.SysProcAttr, cmd.Dir = attr, s.dir
	cmd.Stdout, cmd.Stderr = logFile, logFile
	if err := startPinned(cmd); err != nil {
		return fmt.Errorf("postgres: %w", err)
	}
	done := make(chan struct{})
	s.cmd, s.done = cmd, done
	go func() {
		_ = cmd.Wait() // the reason is in its log
		close(done)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, s.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-done:
			return fmt.Errorf("postgres ended: %s", s.Log())
		case <-ctx.Done():
			return fmt.Errorf("postgres does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// startPinned starts cmd from a thread that lives as long as the process:
// Pdeathsig fires when the thread that forked ends, not the process.
func startPinned(cmd *exec.Cmd) error {
	errs := make(chan error)
	starter.do(func() { errs <- cmd.Start() })
	return <-errs
}

// Crash sends SIGKILL to all processes of the server, which cannot clean up.
func (s *Server) Crash() {
	parent := s.cmd.Process.Pid
	_ = s.cmd.Process.Signal(syscall.SIGSTOP) // so that it starts no processes
	children := childrenOf(parent)
	for _, pid := range children {
		_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
	}
	_ = s.cmd.Process.Kill()
	<-s.done
	// While one is on its way out the shared memory is in use, and no server starts.
	for deadline := time.Now().Add(2 * time.Minute); slices.ContainsFunc(children, alive) && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
}

func alive(pid int) bool { return syscall.Kill(pid, 0) == nil }

// childrenOf lists the processes whose parent is pid.
func childrenOf(pid int) (list []int) {
	stats, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, path := range stats {
		b, err := os.ReadFile(path)
		if err != nil {
			continue // it has ended
		}
		// pid (name) state parent ...; a name may hold anything.
		_, rest, _ := strings.Cut(string(b[strings.LastIndexByte(string(b), ')')+1:]), " ")
		fields := strings.Fields(rest)
		if len(fields) > 1 && fields[1] == strconv.Itoa(pid) {
			child, _ := strconv.Atoi(filepath.Base(filepath.Dir(path)))
			list = append(list, child)
		}
	}
	return list
}

// Suspend stops all its processes where they are: connections stay open, the system accepts new
// ones for them, and nothing is answered until Continue.
func (s *Server) Suspend() { s.signalAll(syscall.SIGSTOP) }

// Continue continues the processes that Suspend stopped.
func (s *Server) Continue() { s.signalAll(syscall.SIGCONT) }

// signalAll sends a signal to the parent first: once stopped, it starts no further children.
func (s *Server) signalAll(signal syscall.Signal) {
	_ = s.cmd.Process.Signal(signal) // it may have ended
	for _, pid := range childrenOf(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, signal)
	}
}

// Kill ends all its processes at once, as an immediate shutdown does: its log is
// recovered at the next start.
func (s *Server) Kill() {
	_ = s.cmd.Process.Signal(syscall.SIGQUIT) // immediate shutdown; it may have ended
	select {
	case <-s.done:
	case <-time.After(10 * time.Second):
		s.Crash() // with its children, which would hold the shared memory
	}
}

// Shutdown ends it as an administrator would: sessions are cut, data is kept.
func (s *Server) Shutdown() {
	_ = s.cmd.Process.Signal(syscall.SIGINT) // it may have ended
	<-s.done
}

// LimitFiles limits the size of each file, to simulate a full disk. If size is not a multiple of a page
// (8 KiB), PostgreSQL reports a write beyond it as it reports a full disk. The limit applies to the processes
// that run now, and must leave room for a segment of the log. A negative size lifts it.
func (s *Server) LimitFiles(size int64) error {
	attr, err := asUser(s.dir) // prlimit needs no privileges as the user of the server
	if err != nil {
		return err
	}
	soft := "unlimited"
	if size >= 0 {
		soft = strconv.FormatInt(size, 10)
	}
	for _, pid := range append([]int{s.cmd.Process.Pid}, childrenOf(s.cmd.Process.Pid)...) {
		cmd := exec.Command("prlimit", "--pid", strconv.Itoa(pid), "--fsize="+soft+":")
		cmd.SysProcAttr, cmd.Dir = attr, s.dir
		if out, err := cmd.CombinedOutput(); err != nil && alive(pid) {
			return fmt.Errorf("limiting process %d: %w\n%s", pid, err, out)
		}
	}
	return nil
}

// asUser gives dir to the user that PostgreSQL runs as, and returns the attributes of a process of that user.
func asUser(dir string) (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{}
	endWithTest(attr)
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("postgres")
	if err != nil {
		if u, err = user.Lookup("nobody"); err != nil {
			return nil, err
		}
	}
	uid, err := strconv.Atoi(u.Uid)
	if err != nil {
		return nil, err
	}
	gid, err := strconv.Atoi(u.Gid)
	if err != nil {
		return nil, err
	}
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, os.Chown(dir, uid, gid)
}
