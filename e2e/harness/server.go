package harness

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// Options configure the start of a server.
type Options struct {
	DataDir string   // default: a new folder under Dir
	Dir     string   // where new folders go
	Port    int      // default: a free one
	Store   string   // --store; default: SQLite in the data folder
	Args    []string // more flags
	// ServingCA is the authority of --tls-cert-file in Args, as PEM; none: the server's own.
	ServingCA []byte
	Env       []string
	Patience  time.Duration // how long it may take to start, and to end; default: that of a busy machine with little to load
	Binary    string        // default: that of Binary
	Began     func(pid int) // called as soon as the process runs
}

// AdminToken is the bearer token of user admin in group system:masters.
const AdminToken = "admintoken"

// Server is one running process.
type Server struct {
	URL        string
	DataDir    string
	Kubeconfig string
	Port       int
	opts       Options
	cmd        *exec.Cmd
	done       chan struct{}
	waitErr    error
	log        *syncBuffer
}

type syncBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *syncBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// patience limits the start and the end of a server on a busy machine.
const patience = 2 * time.Minute

// Start starts a server and waits until it is ready.
func Start(ctx context.Context, o Options) (*Server, error) {
	bin := o.Binary
	if bin == "" {
		var err error
		if bin, err = Binary(); err != nil {
			return nil, err
		}
	}
	if o.DataDir == "" {
		dir, err := os.MkdirTemp(o.Dir, "data-")
		if err != nil {
			return nil, err
		}
		o.DataDir = filepath.Join(dir, "rowlock-data")
		if err := shareKeys(ctx, bin, o.Store, o.DataDir); err != nil {
			return nil, err
		}
	}
	if o.Port == 0 {
		var err error
		if o.Port, err = FreePort(); err != nil {
			return nil, err
		}
	}
	tokens := filepath.Join(filepath.Dir(o.DataDir), "tokens.csv")
	if err := os.WriteFile(tokens, []byte(AdminToken+`,admin,admin-uid,"system:masters"`+"\n"), 0o600); err != nil {
		return nil, err
	}
	args := []string{"serve", "--data-dir", o.DataDir, "--bind-address", "127.0.0.1",
		"--secure-port", strconv.Itoa(o.Port), "--token-auth-file", tokens}
	if o.Store != "" {
		args = append(args, "--store", o.Store)
	}
	s := &Server{
		URL: fmt.Sprintf("https://127.0.0.1:%d", o.Port), DataDir: o.DataDir, Port: o.Port, opts: o,
		Kubeconfig: filepath.Join(o.DataDir, "admin.kubeconfig"),
		cmd:        exec.Command(bin, slices.Concat(args, strings.Fields(os.Getenv("ROWLOCK_TEST_FLAGS")), o.Args)...),
		done:       make(chan struct{}), log: &syncBuffer{},
	}
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.Env = append(os.Environ(), o.Env...)
	if err := s.cmd.Start(); err != nil {
		return nil, err
	}
	go func() {
		s.waitErr = s.cmd.Wait()
		close(s.done)
	}()
	if o.Began != nil {
		o.Began(s.Pid())
	}
	if err := s.waitReady(ctx); err != nil {
		s.Kill()
		return nil, fmt.Errorf("%w\n%s", err, s.log)
	}
	return s, nil
}

// firsts are the data directories that the first servers of databases began with.
var firsts sync.Map

// shareKeys has a new data directory begin with the keys of the first server of its PostgreSQL database, as
// servers of one database must have the same.
func shareKeys(ctx context.Context, bin, store, dir string) error {
	if !strings.HasPrefix(store, "postgres") {
		return nil
	}
	first, known := firsts.LoadOrStore(store, dir)
	if !known {
		return nil
	}
	if _, err := os.Stat(filepath.Join(first.(string), "service-account.key")); errors.Is(err, fs.ErrNotExist) {
		firsts.Store(store, dir) // it did not start, or its test has ended
		return nil
	}
	if out, err := exec.CommandContext(ctx, bin, "init", "--data-dir", dir, "--from", first.(string)).CombinedOutput(); err != nil {
		return fmt.Errorf("sharing keys: %w\n%s", err, out)
	}
	return nil
}

// Again starts a server on the same folder, port and flags.
func (s *Server) Again(ctx context.Context) (*Server, error) { return Start(ctx, s.Options()) }

// Options returns options for a server with the same folder, port and flags.
func (s *Server) Options() Options {
	o := s.opts
	o.DataDir, o.Port = s.DataDir, s.Port
	return o
}

func (s *Server) waitReady(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.patience())
	defer cancel()
	var client *http.Client
	for {
		if client == nil {
			client, _ = s.Client() // the CA appears while the server starts
		}
		if client != nil {
			req, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+"/readyz", nil)
			req.Header.Set("Authorization", "Bearer "+AdminToken)
			if resp, err := client.Do(req); err == nil {
				resp.Body.Close()
				if resp.StatusCode == http.StatusOK {
					return nil
				}
			}
		}
		select {
		case <-s.done:
			return fmt.Errorf("server ended before it was ready: %v", s.waitErr)
		case <-ctx.Done():
			return errors.New("server did not get ready in time")
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// CA returns the certificate pool that the server's certificate verifies with.
func (s *Server) CA() (*x509.CertPool, error) {
	pem := s.opts.ServingCA
	if pem == nil {
		var err error
		if pem, err = os.ReadFile(filepath.Join(s.DataDir, "ca.crt")); err != nil {
			return nil, err
		}
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, errors.New("no certificate in ca.crt")
	}
	return pool, nil
}

// Client makes an HTTP client that trusts the server and adds no credentials.
func (s *Server) Client() (*http.Client, error) {
	pool, err := s.CA()
	if err != nil {
		return nil, err
	}
	return &http.Client{Transport: &http.Transport{
		TLSClientConfig:     &tls.Config{RootCAs: pool},
		MaxIdleConnsPerHost: 256, DisableCompression: true, ForceAttemptHTTP2: true,
	}}, nil
}

// Pid returns the process id.
func (s *Server) Pid() int { return s.cmd.Process.Pid }

// Signal sends a signal to the process.
func (s *Server) Signal(sig os.Signal) error { return s.cmd.Process.Signal(sig) }

// Log returns the output of the server so far.
func (s *Server) Log() string { return s.log.String() }

// Stop sends SIGTERM to the server and waits for its end.
func (s *Server) Stop() error {
	_ = s.cmd.Process.Signal(syscall.SIGTERM) // it may have ended by itself
	select {
	case <-s.done:
		return s.waitErr
	case <-time.After(s.patience()):
		s.Kill()
		return fmt.Errorf("server did not end within %s of SIGTERM", s.patience())
	}
}

func (s *Server) patience() time.Duration { return cmp.Or(s.opts.Patience, patience) }

// Kill ends the server at once (SIGKILL) and waits for it.
func (s *Server) Kill() {
	_ = s.cmd.Process.Kill() // it may have ended by itself
	<-s.done
}
