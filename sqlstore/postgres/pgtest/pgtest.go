//go:build unix

// Package pgtest starts a PostgreSQL server from the installed binaries, for tests. PostgreSQL refuses to run as
// root, so tests of root run it as the user "postgres". The caller of Start must call Stop.
package pgtest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
)

// Options change how the server runs.
type Options struct {
	Settings map[string]string // of postgresql.conf
	Files    map[string]string // additions to the data folder, readable by the server only; they replace existing files
	Port     int               // default: a free one
	Segment  int               // of the write-ahead log, in MiB; default 16
}

// Server is one PostgreSQL instance with its own data folder.
type Server struct {
	Port  int
	dir   string
	bin   string
	major int // the release of initdb; 0: a standby
	opts  Options
	cmd   *exec.Cmd
	done  chan struct{}
}

// BinariesVariable names the environment variable that selects the release of PostgreSQL that tests
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
	if _, err := asUser(s.dir); err != nil {
		return err
	}
	if err := s.initdb(ctx); err != nil {
		return err
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

// ReadOnly makes transactions read-only, or not, in existing sessions too.
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

// URL returns the connection string of a database.
func (s *Server) URL(db string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", s.Port, db)
}

// CreateDB makes an empty database and returns its URL.
func (s *Server) CreateDB(ctx context.Context, name string) (string, error) {
	return s.URL(name), s.exec(ctx, "CREATE DATABASE "+pgx.Identifier{name}.Sanitize())
}

// CopyDB makes a copy of a database to which there are no connections, and returns its URL.
func (s *Server) CopyDB(ctx context.Context, name, from string) (string, error) {
	text := "CREATE DATABASE " + pgx.Identifier{name}.Sanitize() + " TEMPLATE " + pgx.Identifier{from}.Sanitize()
	if s.major >= 15 { // copies of files are cheaper than pages in the log, and include the catalog cache that sessions start with
		text += " STRATEGY FILE_COPY"
	}
	return s.URL(name), s.exec(ctx, text)
}

// Log returns the output of the server.
func (s *Server) Log() string {
	b, _ := os.ReadFile(filepath.Join(s.dir, "log"))
	return string(b)
}

// Stop ends it and removes its data.
func (s *Server) Stop() {
	s.Kill()
	_ = os.RemoveAll(s.dir) // in the temporary folder a leftover does no harm
}
