//go:build unix

// Package cluster starts the servers of a run, their database, and the proxies between them and before them,
// and breaks each of these.
package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/disk"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// Options are the settings of a cluster.
type Options struct {
	Store   string // sqlite or postgres
	Servers int
	Binary  string   // default: built from this module
	Other   string   // a second build, which every other server begins with, and every other start of a server uses; default: none
	Dir     string   // for data; Close does not remove it
	Args    []string // more flags of serve
	More    []string // flags that SetArgs replaces
	// Files makes the files of a server in its folder, and returns the flags that name them; nil: there are none.
	Files func(folder string) (args []string, err error)
	// Disk is a command that serves a disk with faults (package disk) in two folders, which Start appends to it. Only for SQLite.
	// Empty: the database is in an ordinary folder.
	Disk []string
}

// Cluster is servers that share a database. Clients reach each server through a proxy of its own; on PostgreSQL, each
// server reaches the database through another one.
type Cluster struct {
	opts   Options
	url    string // of the database, around the proxies
	pool   *x509.CertPool
	nodes  []*node
	pgMu   sync.Mutex
	pg     *pgtest.Server
	disk   *disk.Disk
	spare  *pgtest.Server // a synchronous standby, while a failover is under way
	dbName string
	kills  atomic.Int64

	extra  atomic.Int64 // databases that NewDatabase has made
	losing atomic.Bool  // PostgreSQL fails over to a standby that lacks commits
}

type node struct {
	mu      sync.Mutex // held while the server starts or ends
	server  *harness.Server
	options harness.Options
	up      bool
	starts  int
	others  int // of starts, those of the second build
	front   *pgtest.Proxy
	back    *pgtest.Proxy // nil on SQLite
	logs    []string      // of the last processes before
	ended   []ended       // processes since Reloads was called
	clock   []Setting     // of the process that runs, or ran last
	more    []string      // flags that SetArgs replaces
}

// Start starts a cluster. The caller must call Close.
func Start(ctx context.Context, o Options) (c *Cluster, err error) {
	c = &Cluster{opts: o, dbName: "robust"}
	defer func() {
		if err != nil {
			c.Close()
			c = nil
		}
	}()
	if c.opts.Binary == "" {
		if c.opts.Binary, err = harness.Binary(); err != nil {
			return c, err
		}
	}
	switch o.Store {
	case "sqlite":
		c.url = "sqlite:" + filepath.Join(o.Dir, "db", "rowlock.db")
		if err := os.MkdirAll(filepath.Join(o.Dir, "db"), 0o700); err != nil {
			return c, err
		}
		if err := c.mount(); err != nil {
			return c, err
		}
	case "postgres":
		if c.pg, err = pgtest.Start(ctx, pgtest.Options{Segment: 1, Settings: map[string]string{"max_wal_size": "'256MB'"}}); err != nil {
			return c, err
		}
		if c.url, err = c.pg.CreateDB(ctx, c.dbName); err != nil {
			return c, err
		}
	default:
		return c, fmt.Errorf("-store %q: want sqlite or postgres", o.Store)
	}
	for i := range o.Servers {
		if err := c.add(ctx, i); err != nil {
			return c, err
		}
	}
	c.pool, err = c.nodes[0].server.CA()
	return c, err
}

// mount puts the database on a disk with faults.
func (c *Cluster) mount() (err error) {
	if len(c.opts.Disk) == 0 {
		return nil
	}
	backing := filepath.Join(c.opts.Dir, "disk")
	if err := os.MkdirAll(backing, 0o700); err != nil {
		return err
	}
	c.disk, err = disk.Mount(c.opts.Disk[0], append(slices.Clone(c.opts.Disk[1:]), backing, filepath.Join(c.opts.Dir, "db"))...)
	return err
}

// Disk returns the disk below SQLite; nil: an ordinary one.
func (c *Cluster) Disk() *disk.Disk { return c.disk }

func (c *Cluster) add(ctx context.Context, i int) error {
	port, err := harness.FreePort()
	if err != nil {
		return err
	}
	n := &node{more: c.opts.More, options: harness.Options{Port: port, Store: c.url, Args: c.opts.Args, Binary: c.opts.Binary, DataDir: filepath.Join(c.opts.Dir, fmt.Sprintf("server%d", i), "data")}}
	c.nodes = append(c.nodes, n)
	if n.front, err = pgtest.NewProxy(port); err != nil {
		return err
	}
	if c.pg != nil {
		if n.back, err = pgtest.NewProxy(c.pg.Port); err != nil {
			return err
		}
		n.options.Store = n.back.URL(c.dbName)
	}
	if err := os.MkdirAll(c.Folder(i), 0o700); err != nil {
		return err
	}
	if c.opts.Files != nil {
		args, err := c.opts.Files(c.Folder(i))
		if err != nil {
			return err
		}
		n.options.Args = slices.Concat(n.options.Args, args)
	}
	if i > 0 {
		init := exec.CommandContext(ctx, c.opts.Binary, "init", "--data-dir", n.options.DataDir, "--from", c.nodes[0].options.DataDir)
		if out, err := init.CombinedOutput(); err != nil {
			return fmt.Errorf("sharing keys: %w\n%s", err, out)
		}
	}
	return c.StartServer(ctx, i)
}

// Close ends everything.
func (c *Cluster) Close() {
	for _, n := range c.nodes {
		if n.server != nil {
			_ = n.server.Signal(syscall.SIGCONT) // it may have ended
			n.server.Kill()
		}
		for _, p := range []*pgtest.Proxy{n.front, n.back} {
			if p != nil {
				p.Close()
			}
		}
	}
	for _, pg := range []*pgtest.Server{c.pg, c.spare} {
		if pg != nil {
			pg.Continue()
			pg.Stop()
		}
	}
	if c.disk != nil {
		_ = c.disk.Close() // its files are in Dir, which the caller removes
	}
}

// Len returns the number of servers.
func (c *Cluster) Len() int { return len(c.nodes) }

// Dir returns the folder of the data.
func (c *Cluster) Dir() string { return c.opts.Dir }

// Binary returns the build under test.
func (c *Cluster) Binary() string { return c.opts.Binary }

// StoreURL returns the database, around the proxies.
func (c *Cluster) StoreURL() string {
	c.pgMu.Lock()
	defer c.pgMu.Unlock()
	return c.url
}

// URL returns where clients find a server.
func (c *Cluster) URL(i int) string {
	return fmt.Sprintf("https://127.0.0.1:%d", c.nodes[i].front.Port)
}

// Protocol is that of a client.
type Protocol string

// The protocols.
const (
	HTTP1 Protocol = "HTTP/1.1"
	HTTP2 Protocol = "HTTP/2"
)

// Client returns an HTTP client with connections of its own. With a small window it takes little from a server before it
// reads.
func (c *Cluster) Client(p Protocol, smallWindow bool) *http.Client {
	var protocols http.Protocols
	protocols.SetHTTP1(p == HTTP1)
	protocols.SetHTTP2(p == HTTP2)
	dialer := &net.Dialer{Timeout: 5 * time.Second}
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: c.pool, CurvePreferences: []tls.CurveID{tls.X25519}}, Protocols: &protocols, DisableCompression: true, DialContext: dialer.DialContext, IdleConnTimeout: 20 * time.Second}
	if p == HTTP2 { // a connection that died silently is noticed
		t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 5 * time.Second, PingTimeout: 3 * time.Second}
	}
	if smallWindow {
		if p == HTTP2 {
			t.HTTP2.MaxReceiveBufferPerStream, t.HTTP2.MaxReceiveBufferPerConnection = 64<<10, 128<<10
		}
		dialer.Control = func(_, _ string, raw syscall.RawConn) error {
			var err error
			if e := raw.Control(func(fd uintptr) { err = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) }); e != nil {
				return e
			}
			return err
		}
	}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// Front returns the proxy between clients and a server.
func (c *Cluster) Front(i int) *pgtest.Proxy { return c.nodes[i].front }

// Back returns the proxy between a server and PostgreSQL; nil on SQLite.
func (c *Cluster) Back(i int) *pgtest.Proxy { return c.nodes[i].back }

// Postgres returns the primary; nil on SQLite.
func (c *Cluster) Postgres() *pgtest.Server {
	c.pgMu.Lock()
	defer c.pgMu.Unlock()
	return c.pg
}

// Signal sends a signal to a server that runs.
func (c *Cluster) Signal(i int, s syscall.Signal) error {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if !n.up {
		return errors.New("the server is down")
	}
	return n.server.Signal(s)
}

// Pid returns the process of a server.
func (c *Cluster) Pid(i int) int {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.server.Pid()
}

// Kill ends a server at once.
func (c *Cluster) Kill(i int) {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up = false
	n.server.Kill()
	c.kills.Add(1)
}

// Kills returns how often a server was killed.
func (c *Cluster) Kills() int { return int(c.kills.Load()) }

// Starts returns how often servers were started, and how often as the second build.
func (c *Cluster) Starts() (all, others int) {
	for _, n := range c.nodes {
		n.mu.Lock()
		all, others = all+n.starts, others+n.others
		n.mu.Unlock()
	}
	return all, others
}

// Version returns the version that the build under test prints.
func (c *Cluster) Version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, c.opts.Binary, "version").Output()
	if err != nil {
		return "rowlock"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// Stop ends a server by SIGTERM.
func (c *Cluster) Stop(i int) error {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	n.up = false
	return n.server.Stop()
}

// StartServer starts a server that is down, and waits until it is ready. It tries again while its database is away.
func (c *Cluster) StartServer(ctx context.Context, i int) error {
	return c.start(ctx, i, nil)
}

// start is StartServer. began is called with each process as soon as it runs; nil: nothing is.
func (c *Cluster) start(ctx context.Context, i int, began func(pid int)) error {
	n := c.nodes[i]
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.up {
		return nil
	}
	o := n.options
	o.Began, o.Args = began, slices.Concat(o.Args, n.more)
	if c.opts.Other != "" && (i+n.starts)%2 == 1 {
		o.Binary = c.opts.Other
		n.others++
	}
	n.starts++
	if n.server != nil {
		n.keep(n.server.Log())
	}
	n.clock = nil
	var err error
	for deadline := time.Now().Add(2 * time.Minute); ; {
		var s *harness.Server
		if s, err = harness.Start(ctx, o); err == nil {
			n.server, n.up = s, true
			return nil
		}
		n.keep(err.Error())
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("starting server %d: %w", i, err)
		}
		time.Sleep(200 * time.Millisecond)
	}
}

// CacheFile returns where a server keeps its cache file.
func (c *Cluster) CacheFile(i int) string {
	if c.Postgres() != nil {
		return filepath.Join(c.nodes[i].options.DataDir, "postgres-cache")
	}
	return strings.TrimPrefix(c.url, "sqlite:") + "-cache"
}

// Store runs a command of "rowlock store" on the database.
func (c *Cluster) Store(ctx context.Context, args ...string) (stdout string, err error) {
	return c.Command(ctx, append([]string{"store"}, args...)...)
}

// Command runs a command of rowlock.
func (c *Cluster) Command(ctx context.Context, args ...string) (stdout string, err error) {
	cmd := exec.CommandContext(ctx, c.opts.Binary, args...)
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("rowlock %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String(), nil
}
