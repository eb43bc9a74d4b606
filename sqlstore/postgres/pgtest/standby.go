//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
)

// Standby starts a server that follows s. From then on s acknowledges no commit before
// the standby has it.
func (s *Server) Standby(ctx context.Context) (*Server, error) { return s.StandbyAt(ctx, 0) }

// StandbyAt is Standby with a port of the follower, such as that of a former primary.
func (s *Server) StandbyAt(ctx context.Context, port int) (*Server, error) {
	dir, err := os.MkdirTemp("", "rowlock-pg-")
	if err != nil {
		return nil, err
	}
	follower := &Server{dir: dir, bin: s.bin, opts: s.opts, Port: port}
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
	if err := copyFolder(s.data(), primary.data(), "postmaster.pid", "postmaster.opts", "postgresql.auto.conf"); err != nil {
		return err
	}
	var label string
	if err := conn.QueryRow(ctx, stop).Scan(&label); err != nil {
		return fmt.Errorf("%s: %w", stop, err)
	}
	// The log again, with the segments since then: up to the end of the copy.
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

// copyFolder copies files and folders. It ignores files that are removed meanwhile.
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

// StopReplication stops the replication of a standby. Its primary continues without it: the standby never receives what the
// primary commits from then on.
func (s *Server) StopReplication(ctx context.Context, primary *Server) error {
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
