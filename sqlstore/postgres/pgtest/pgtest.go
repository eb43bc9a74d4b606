//go:build unix

// Package pgtest starts a PostgreSQL server of its own from the installed
// binaries, for tests. PostgreSQL refuses to run as root, so root's tests run it
// as the user "postgres".
//
// Whoever calls Start owns the process and must Stop it.
package pgtest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"sort"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// Options change how the server runs.
type Options struct {
	Settings map[string]string // of postgresql.conf
	Files    map[string]string // put into the data folder, for the server alone; also in place of what is there
	Port     int               // default: a free one
	Segment  int               // of the write-ahead log, in MiB; default 16
}

// Server is one PostgreSQL instance with its own data folder.
type Server struct {
	Port int
	dir  string
	bin  string
	opts Options
	cmd  *exec.Cmd
	done chan struct{}
}

// BinariesVariable names the environment variable that says which release of PostgreSQL tests
// run: the folder of its initdb and postgres. Without it they run the newest that is installed.
const BinariesVariable = "ROWLOCK_POSTGRES_BIN"

// Binaries finds the folder that holds initdb and postgres.
func Binaries() (string, error) {
	if dir := os.Getenv(BinariesVariable); dir != "" {
		for _, program := range []string{"initdb", "postgres"} {
			if _, err := os.Stat(filepath.Join(dir, program)); err != nil {
				return "", fmt.Errorf("%s=%s: %w", BinariesVariable, dir, err)
			}
		}
		return filepath.Abs(dir)
	}
	found, _ := filepath.Glob("/usr/lib/postgresql/*/bin/initdb")
	sort.Slice(found, func(i, j int) bool { return release(found[i]) > release(found[j]) })
	for _, f := range found {
		return filepath.Dir(f), nil
	}
	if p, err := exec.LookPath("initdb"); err == nil {
		return filepath.Dir(p), nil
	}
	return "", errors.New("PostgreSQL's initdb is not installed (Debian: apt-get install postgresql)")
}

func release(path string) int {
	n, _ := strconv.Atoi(filepath.Base(filepath.Dir(filepath.Dir(path))))
	return n
}

// Start makes a data folder and starts a server on it.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin, err := Binaries()
	if err != nil {
		return nil, err
	}
	// Not below the test's own folder: that is root's alone.
	dir, err := os.MkdirTemp("", "rowlock-pg-")
	if err != nil {
		return nil, err
	}
	s := &Server{dir: dir, bin: bin, opts: o, Port: o.Port}
	if err := s.init(ctx); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	if err := s.Run(ctx); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return s, nil
}

func (s *Server) data() string { return filepath.Join(s.dir, "data") }

func (s *Server) init(ctx context.Context) error {
	attr, err := asUser(s.dir)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "initdb"), "-D", s.data(), "-U", "postgres", "-A", "trust", "-E", "UTF8", "--no-sync", "--locale=C", fmt.Sprintf("--wal-segsize=%d", cmp.Or(s.opts.Segment, 16)))
	cmd.SysProcAttr = attr
	cmd.Dir = s.dir
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("initdb: %w\n%s", err, out)
	}
	settings := map[string]string{
		"listen_addresses": "'127.0.0.1'", "unix_socket_directories": "'" + s.dir + "'",
		"max_connections": "100", "shared_buffers": "'64MB'", "logging_collector": "off",
	}
	maps.Copy(settings, s.opts.Settings)
	if err := s.configure(settings); err != nil {
		return err
	}
	for name, text := range s.opts.Files {
		path := filepath.Join(s.data(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if _, err := asUser(path); err != nil {
			return err
		}
	}
	return nil
}

// configure appends settings, which count more than those before, and chooses a port
// where there is none.
func (s *Server) configure(settings map[string]string) error {
	if s.Port == 0 {
		var err error
		if s.Port, err = FreePort(); err != nil {
			return err
		}
	}
	settings["port"] = strconv.Itoa(s.Port)
	var conf strings.Builder
	for k, v := range settings {
		fmt.Fprintf(&conf, "%s = %s\n", k, v)
	}
	f, err := os.OpenFile(filepath.Join(s.data(), "postgresql.conf"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = f.WriteString(conf.String())
	return err
}

// Standby starts a server that follows s. From then on s acknowledges no commit before
// the standby has it.
func (s *Server) Standby(ctx context.Context) (*Server, error) {
	dir, err := os.MkdirTemp("", "rowlock-pg-")
	if err != nil {
		return nil, err
	}
	follower := &Server{dir: dir, bin: s.bin, opts: s.opts}
	if err := follower.follow(ctx, s); err != nil {
		os.RemoveAll(dir)
		return nil, err
	}
	return follower, s.exec(ctx, "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
}

// follow copies the data folder of a primary that runs, as pg_basebackup would, which not every
// package of PostgreSQL has.
func (s *Server) follow(ctx context.Context, primary *Server) error {
	if _, err := asUser(s.dir); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, primary.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	start, stop := "SELECT pg_backup_start('standby', true)", "SELECT labelfile FROM pg_backup_stop()"
	if strings.HasPrefix(conn.PgConn().ParameterStatus("server_version"), "13") || strings.HasPrefix(conn.PgConn().ParameterStatus("server_version"), "14") {
		start, stop = "SELECT pg_start_backup('standby', true, false)", "SELECT labelfile FROM pg_stop_backup(false)"
	}
	if _, err := conn.Exec(ctx, start); err != nil {
		return fmt.Errorf("%s: %w", start, err)
	}
	if err := copyFolder(s.data(), primary.data(), "postmaster.pid", "postmaster.opts"); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
		return fmt.Errorf("%s: %w", stop, err)
	}
	// What was written meanwhile, to the end of the copy.
	if err := copyFolder(filepath.Join(s.data(), "pg_wal"), filepath.Join(primary.data(), "pg_wal")); err != nil {
		return err
	}
	for name, text := range map[string]string{"backup_label": label, "standby.signal": ""} {
		path := filepath.Join(s.data(), name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			return err
		}
		if _, err := asUser(path); err != nil {
			return err
		}
	}
	err = s.configure(map[string]string{
		"unix_socket_directories": "'" + s.dir + "'",
		"primary_conninfo":        fmt.Sprintf("'host=127.0.0.1 port=%d user=postgres'", primary.Port),
	})
	if err != nil {
		return err
	}
	return s.Run(ctx)
}

// copyFolder copies files and folders, but for those that end meanwhile.
func copyFolder(to, from string, without ...string) error {
	return filepath.WalkDir(from, func(path string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && slices.Contains(without, e.Name()) {
			return nil
		}
		if err != nil {
			return err
		}
		rest, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		copied := filepath.Join(to, rest)
		switch {
		case e.IsDir():
			err = os.MkdirAll(copied, 0o700)
		case e.Type().IsRegular():
			var data []byte
			if data, err = os.ReadFile(path); errors.Is(err, fs.ErrNotExist) {
				return nil
			}
			if err == nil {
				err = os.WriteFile(copied, data, 0o600)
			}
		default:
			return nil
		}
		if err == nil {
			_, err = asUser(copied)
		}
		return err
	})
}

// CutOff has a standby follow its primary no more, which goes on without it: what is committed from then on the standby
// never has.
func (s *Server) CutOff(ctx context.Context, primary *Server) error {
	if err := primary.exec(ctx, "ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	if err := s.exec(ctx, "ALTER SYSTEM SET primary_conninfo = ''", "SELECT pg_reload_conf()"); err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for follows := true; follows; time.Sleep(10 * time.Millisecond) {
		if err := conn.QueryRow(ctx, "SELECT EXISTS (SELECT FROM pg_stat_wal_receiver)").Scan(&follows); err != nil {
			return err
		}
	}
	return nil
}

// Promote makes a standby the primary.
func (s *Server) Promote(ctx context.Context) error { return s.exec(ctx, "SELECT pg_promote()") }

// ReadOnly lets transactions write no more, or again, in sessions that are open too.
func (s *Server) ReadOnly(ctx context.Context, on bool) error {
	return s.exec(ctx, fmt.Sprintf("ALTER SYSTEM SET default_transaction_read_only = %v", on), "SELECT pg_reload_conf()")
}

func (s *Server) exec(ctx context.Context, statements ...string) error {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	for _, text := range statements {
		if _, err := conn.Exec(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// asUser makes dir belong to the user that PostgreSQL runs as.
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
		_ = cmd.Wait() // its log says why
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

// URL is the connection string of a database.
func (s *Server) URL(db string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.Port, db)
}

// CreateDB makes an empty database and returns its URL.
func (s *Server) CreateDB(ctx context.Context, name string) (string, error) {
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return "", err
	}
	defer conn.Close(ctx)
	if _, err := conn.Exec(ctx, "create database "+pgx.Identifier{name}.Sanitize()); err != nil {
		return "", err
	}
	return s.URL(name), nil
}

// Log is what the server printed.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(b)
}

// Crash sends SIGKILL to all its processes, which cannot say or tidy up anything.
func (s *Server) Crash() {
	parent := s.cmd.Process.Pid
	_ = s.cmd.Process.Signal(syscall.SIGSTOP) // so that it starts no more
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

// Freeze stops all its processes where they are: connections stay open, the system accepts new
// ones for them, and nothing is answered until Thaw.
func (s *Server) Freeze() { s.signalAll(syscall.SIGSTOP) }

// Thaw has the processes that Freeze stopped go on.
func (s *Server) Thaw() { s.signalAll(syscall.SIGCONT) }

// signalAll sends a signal to the parent first, which then starts no more.
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

// Stop ends it and removes its data.
func (s *Server) Stop() {
	s.Kill()
	_ = os.RemoveAll(s.dir) // in the temporary folder a leftover does no harm
}

// LimitFiles lets no file grow beyond a size, as a disk does that is full: what is
// written behind it fails as on one if size is no multiple of a page (8 KiB). It
// works on the processes that run now, and must leave room for a segment of the log.
// A negative size lifts the limit.
func (s *Server) LimitFiles(size int64) error {
	attr, err := asUser(s.dir) // who may, without being mighty
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
