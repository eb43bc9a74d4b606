//go:build unix

package pgtest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"
)

// Pooler is a PgBouncer in front of a server.
type Pooler struct {
	Port int
	dir  string
	cmd  *exec.Cmd
	done chan struct{}
}

// PoolerBinary finds PgBouncer.
func PoolerBinary() (string, error) {
	for _, name := range []string{"pgbouncer", "/usr/sbin/pgbouncer"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("PgBouncer is not installed (Debian: apt-get install pgbouncer)")
}

// StartPooler starts a PgBouncer whose pool_mode is mode, with fewer connections to
// the server than clients may have to it.
func StartPooler(ctx context.Context, s *Server, mode string) (*Pooler, error) {
	bin, err := PoolerBinary()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp("", "rowlock-pool-")
	if err != nil {
		return nil, err
	}
	p := &Pooler{dir: dir, done: make(chan struct{})}
	if err := p.start(ctx, bin, s, mode); err != nil {
		p.Stop()
		return nil, err
	}
	return p, nil
}

func (p *Pooler) start(ctx context.Context, bin string, s *Server, mode string) error {
	var err error
	if p.Port, err = FreePort(); err != nil {
		return err
	}
	size := 4
	if mode == "session" {
		size = 60
	}
	config := fmt.Sprintf(`[databases]
* = host=127.0.0.1 port=%d user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %d
unix_socket_dir =
auth_type = any
pool_mode = %s
default_pool_size = %d
max_client_conn = 200
server_idle_timeout = 2
server_login_retry = 1
log_connections = 0
log_disconnections = 0
`, s.Port, p.Port, mode, size)
	file := filepath.Join(p.dir, "pgbouncer.ini")
	if err := os.WriteFile(file, []byte(config), 0o644); err != nil {
		return err
	}
	attr, err := asUser(p.dir)
	if err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(p.dir, "log"))
	if err != nil {
		return err
	}
	defer out.Close()
	cmd := exec.Command(bin, file)
	cmd.SysProcAttr, cmd.Dir, cmd.Stdout, cmd.Stderr = attr, p.dir, out, out
	if err := startPinned(cmd); err != nil {
		return fmt.Errorf("pgbouncer: %w", err)
	}
	p.cmd = cmd
	go func() {
		_ = cmd.Wait() // its log has the reason
		close(p.done)
	}()
	ctx, cancel := context.WithTimeout(ctx, 2*time.Minute)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, p.URL("postgres"))
		if err == nil {
			return conn.Close(ctx)
		}
		select {
		case <-p.done:
			text, _ := os.ReadFile(filepath.Join(p.dir, "log"))
			return fmt.Errorf("pgbouncer ended: %s", text)
		case <-ctx.Done():
			return fmt.Errorf("pgbouncer does not answer: %w", err)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// URL returns the connection string of a database behind the pooler.
func (p *Pooler) URL(db string) string {
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/%s?sslmode=disable", p.Port, db)
}

// Stop ends the process and removes its folder.
func (p *Pooler) Stop() {
	if p.cmd != nil {
		_ = p.cmd.Process.Kill() // it may have ended
		<-p.done
	}
	_ = os.RemoveAll(p.dir) // in the temporary folder a leftover does no harm
}
