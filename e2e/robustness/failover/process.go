//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// process is a program that runs as the user of PostgreSQL.
type process struct {
	start func() *exec.Cmd
	cmd   *exec.Cmd
	done  chan struct{}
}

func (p *process) run() error {
	p.cmd, p.done = p.start(), make(chan struct{})
	if err := p.cmd.Start(); err != nil {
		return fmt.Errorf("starting %s: %w", p.cmd.Path, err)
	}
	go func() {
		_ = p.cmd.Wait() // it was killed, or its log has the reason
		close(p.done)
	}()
	return nil
}

func (p *process) kill() {
	if p != nil && p.cmd != nil && p.cmd.Process != nil {
		_ = p.cmd.Process.Kill()
		<-p.done
	}
}

// program makes a process whose output goes to a file in a folder.
func (c *patroniCluster) program(dir, name string, args ...string) (*process, error) {
	path, err := exec.LookPath(name)
	if err != nil {
		return nil, fmt.Errorf("%w (Debian: apt-get install patroni etcd-server)", err)
	}
	attr := &syscall.SysProcAttr{}
	if os.Geteuid() == 0 { // PostgreSQL refuses to run as root
		u, err := user.Lookup("postgres")
		if err != nil {
			return nil, err
		}
		uid, _ := strconv.Atoi(u.Uid)
		gid, _ := strconv.Atoi(u.Gid)
		attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
		if err := os.Chown(dir, uid, gid); err != nil {
			return nil, err
		}
	}
	return &process{start: func() *exec.Cmd {
		cmd := exec.Command(path, args...)
		cmd.SysProcAttr, cmd.Dir = attr, dir
		if log, err := os.OpenFile(filepath.Join(c.dir, filepath.Base(dir)+"-"+name+".log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600); err == nil {
			cmd.Stdout, cmd.Stderr = log, log // which ends with this program
		}
		return cmd
	}}, nil
}
