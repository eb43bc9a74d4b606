//go:build unix

// Package mariadbtest starts a MariaDB server from the installed binaries, for tests. MariaDB refuses to run as
// root, so tests of root run it as the user "mysql". The caller of Start must call Stop.
package mariadbtest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// Server is one MariaDB instance with its own data folder.
type Server struct {
	Port int
	dir  string
	log  *os.File
	cmd  *exec.Cmd
	done chan error
}

// Start makes a data folder and starts a server on it, which answers when Start returns.
func Start(ctx context.Context) (*Server, error) {
	if err := Installed(); err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rowlock-mariadb-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, done: make(chan error, 1)}
	if err := s.start(ctx); err != nil {
		text, _ := os.ReadFile(filepath.Join(dir, "log"))
		return nil, errors.Join(fmt.Errorf("MariaDB: %w\n%s", err, text), s.Stop())
	}
	return s, nil
}

// Installed returns an error that names the programs that are missing to start a server.
func Installed() error {
	for _, name := range []string{"mariadb-install-db", "mariadbd"} {
		if _, err := binary(name); err != nil {
			return err
		}
	}
	return nil
}

func binary(name string) (string, error) {
	for _, dir := range []string{"/usr/sbin", "/usr/bin"} {
		if path, err := exec.LookPath(filepath.Join(dir, name)); err == nil {
			return path, nil
		}
	}
	path, err := exec.LookPath(name)
	if err != nil {
		err = fmt.Errorf("MariaDB's %s is not installed (Debian: apt-get install mariadb-server): %w", name, err)
	}
	return path, err
}

func (s *Server) start(ctx context.Context) (err error) {
	if s.log, err = os.Create(filepath.Join(s.dir, "log")); err != nil {
		return err
	}
	if s.Port, err = pgtest.FreePort(); err != nil {
		return err
	}
	attr, err := s.attr()
	if err != nil {
		return err
	}
	run := func(name string, args ...string) (*exec.Cmd, error) {
		path, err := binary(name)
		if err != nil {
			return nil, err
		}
		cmd := exec.CommandContext(context.WithoutCancel(ctx), path, append([]string{"--no-defaults", "--datadir=" + filepath.Join(s.dir, "data"), "--innodb-log-file-size=8M", "--innodb-buffer-pool-size=32M"}, args...)...)
		cmd.Dir, cmd.Stdout, cmd.Stderr, cmd.SysProcAttr = s.dir, s.log, s.log, attr
		return cmd, nil
	}
	install, err := run("mariadb-install-db", "--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve")
	if err != nil {
		return err
	}
	if err := install.Run(); err != nil {
		return fmt.Errorf("mariadb-install-db: %w", err)
	}
	if s.cmd, err = run("mariadbd", "--bind-address=127.0.0.1", "--port="+strconv.Itoa(s.Port), "--socket="+filepath.Join(s.dir, "socket"),
		"--innodb-flush-log-at-trx-commit=0", "--skip-log-bin", "--skip-name-resolve", "--pid-file="+filepath.Join(s.dir, "pid")); err != nil {
		return err
	}
	if err := s.cmd.Start(); err != nil {
		s.cmd = nil
		return err
	}
	go func() { s.done <- s.cmd.Wait() }()
	return s.ready(ctx)
}

// attr runs the server as a user that it accepts, who owns its folder.
func (s *Server) attr() (*syscall.SysProcAttr, error) {
	attr := &syscall.SysProcAttr{Setpgid: true}
	if os.Getuid() != 0 {
		return attr, nil
	}
	u, err := user.Lookup("mysql")
	if err != nil {
		return nil, err
	}
	uid, err1 := strconv.ParseUint(u.Uid, 10, 32)
	gid, err2 := strconv.ParseUint(u.Gid, 10, 32)
	attr.Credential = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
	return attr, errors.Join(err1, err2, os.Chown(s.dir, int(uid), int(gid)), os.Chmod(s.dir, 0o700))
}

func (s *Server) ready(ctx context.Context) error {
	db, err := s.open("")
	if err != nil {
		return err
	}
	defer db.Close()
	for deadline := time.Now().Add(time.Minute); ; {
		if err = db.PingContext(ctx); err == nil {
			return nil
		}
		select {
		case e := <-s.done:
			s.done <- e
			return fmt.Errorf("it ended: %w", errors.Join(e, err))
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
		if time.Now().After(deadline) {
			return err
		}
	}
}

func (s *Server) open(database string) (*sql.DB, error) {
	cfg := mysql.NewConfig()
	cfg.User, cfg.Net, cfg.Addr, cfg.DBName = "root", "tcp", "127.0.0.1:"+strconv.Itoa(s.Port), database
	cfg.Logger = log.New(io.Discard, "", 0)
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// Create makes an empty database and returns it, with its URL as kine would be given it.
func (s *Server) Create(ctx context.Context, name string) (db *sql.DB, url string, err error) {
	server, err := s.open("")
	if err != nil {
		return nil, "", err
	}
	defer server.Close()
	if _, err := server.ExecContext(ctx, "CREATE DATABASE "+name); err != nil {
		return nil, "", err
	}
	db, err = s.open(name)
	return db, fmt.Sprintf("mysql://root@tcp(127.0.0.1:%d)/%s", s.Port, name), err
}

// Stop ends the server and removes its data.
func (s *Server) Stop() error {
	var err error
	if s.cmd != nil {
		err = s.cmd.Process.Kill()
		<-s.done
		s.cmd = nil
		if errors.Is(err, os.ErrProcessDone) {
			err = nil
		}
	}
	if s.log != nil {
		err = errors.Join(err, s.log.Close())
	}
	return errors.Join(err, os.RemoveAll(s.dir))
}
