//go:build unix

package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// patroniNode is a machine with PostgreSQL under Patroni: the configuration of docs/high-availability.md, with shorter times.
const patroniNode = `
scope: rowlock
name: node%[1]d
restapi: {listen: 127.0.0.1:%[2]d, connect_address: 127.0.0.1:%[2]d}
etcd3: {host: 127.0.0.1:%[3]d}
bootstrap:
  dcs:
    ttl: 5
    loop_wait: 1
    retry_timeout: 2
    synchronous_mode: true
    master_start_timeout: 0
    postgresql:
      use_pg_rewind: true
      parameters: {synchronous_commit: "on", max_connections: 60}
  initdb: [{encoding: UTF8}, data-checksums]
postgresql:
  listen: 127.0.0.1:%[4]d
  connect_address: 127.0.0.1:%[4]d
  data_dir: %[5]s/data
  bin_dir: %[6]s
  pgpass: %[5]s/pgpass
  authentication:
    superuser: {username: postgres, password: secret}
    replication: {username: replicator, password: secret}
    rewind: {username: postgres, password: secret}
  parameters: {unix_socket_directories: %[5]s}
  pg_hba: ["local all all trust", "host all all 127.0.0.1/32 trust", "host replication all 127.0.0.1/32 trust"]
`

// patroniCluster is etcd and two nodes.
type patroniCluster struct {
	dir   string
	etcd  *process
	nodes [2]*node
}

type node struct {
	port    int // of PostgreSQL
	rest    int // port of Patroni
	dir     string
	patroni *process
}

// startPatroni starts etcd and both nodes, and waits until the second is a synchronous standby.
func startPatroni(ctx context.Context) (c *patroniCluster, err error) {
	bin, err := pgtest.Binaries()
	if err != nil {
		return nil, err
	}
	c = &patroniCluster{}
	if c.dir, err = os.MkdirTemp("", "rowlock-patroni-"); err != nil {
		return nil, err
	}
	if err = os.Chmod(c.dir, 0o755); err != nil {
		return c, err
	}
	var ports [8]int
	for i := range ports {
		if ports[i], err = pgtest.FreePort(); err != nil {
			return c, err
		}
	}
	folder := func(name string) (string, error) {
		dir := filepath.Join(c.dir, name)
		return dir, os.Mkdir(dir, 0o700)
	}
	dir, err := folder("etcd")
	if err != nil {
		return c, err
	}
	client, peer := fmt.Sprintf("http://127.0.0.1:%d", ports[0]), fmt.Sprintf("http://127.0.0.1:%d", ports[1])
	if c.etcd, err = c.program(dir, "etcd", "--data-dir", filepath.Join(dir, "data"), "--listen-client-urls", client, "--advertise-client-urls", client,
		"--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer, "--initial-cluster", "default="+peer, "--unsafe-no-fsync"); err != nil {
		return c, err
	}
	if err = c.etcd.run(); err != nil {
		return c, err
	}
	for i := range c.nodes {
		n := &node{port: ports[2+2*i], rest: ports[3+2*i]}
		c.nodes[i] = n
		if n.dir, err = folder(fmt.Sprintf("node%d", i)); err != nil {
			return c, err
		}
		config := filepath.Join(c.dir, fmt.Sprintf("node%d.yml", i))
		if err = os.WriteFile(config, fmt.Appendf(nil, patroniNode, i, n.rest, ports[0], n.port, n.dir, bin), 0o644); err != nil {
			return c, err
		}
		if n.patroni, err = c.program(n.dir, "patroni", config); err != nil {
			return c, err
		}
		if err = n.patroni.run(); err != nil {
			return c, err
		}
		if i == 0 {
			if err = accepts(ctx, c.url("postgres")); err != nil {
				return c, err
			}
		}
	}
	return c, c.redundant(ctx)
}

// url names both nodes.
func (c *patroniCluster) url(database string) string {
	hosts := make([]string, 0, len(c.nodes))
	for _, n := range c.nodes {
		if n != nil {
			hosts = append(hosts, net.JoinHostPort("127.0.0.1", strconv.Itoa(n.port)))
		}
	}
	return "postgres://postgres:secret@" + strings.Join(hosts, ",") + "/" + database + "?sslmode=disable&target_session_attrs=read-write&connect_timeout=2"
}

// redundant waits until Patroni would promote a standby: its row in pg_stat_replication is synchronous a moment earlier.
func (c *patroniCluster) redundant(ctx context.Context) error {
	for deadline := time.Now().Add(longest); ; time.Sleep(50 * time.Millisecond) {
		var members struct{ Members []struct{ Role string } }
		for _, n := range c.nodes {
			if err := n.ask(ctx, "cluster", &members); err == nil && slices.ContainsFunc(members.Members, func(m struct{ Role string }) bool { return m.Role == "sync_standby" }) {
				return nil
			}
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("no synchronous standby comes, of %+v; see the logs in %s", members, c.dir)
		}
	}
}

// ask reads from Patroni's REST API.
func (n *node) ask(ctx context.Context, path string, into any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, fmt.Sprintf("http://127.0.0.1:%d/%s", n.rest, path), nil)
	if err != nil {
		return err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(into)
}

// primary returns the node that takes writes.
func (c *patroniCluster) primary(ctx context.Context) (*node, error) {
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		return nil, err
	}
	defer conn.Close(ctx)
	port := int(conn.Config().Port)
	if remote, ok := conn.PgConn().Conn().RemoteAddr().(*net.TCPAddr); ok {
		port = remote.Port
	}
	at := slices.IndexFunc(c.nodes[:], func(n *node) bool { return n.port == port })
	if at < 0 {
		return nil, fmt.Errorf("no node has port %d", port)
	}
	return c.nodes[at], nil
}

// postmaster returns the process of a node's PostgreSQL.
func (n *node) postmaster() (int, error) {
	b, err := os.ReadFile(filepath.Join(n.dir, "data", "postmaster.pid"))
	if err != nil {
		return 0, err
	}
	first, _, _ := strings.Cut(string(b), "\n")
	return strconv.Atoi(first)
}

// killPostgres kills PostgreSQL alone. Its processes end with it.
func (n *node) killPostgres() error {
	pid, err := n.postmaster()
	if err != nil {
		return err
	}
	return syscall.Kill(pid, syscall.SIGKILL)
}

func (c *patroniCluster) end() {
	if c == nil {
		return
	}
	for _, n := range c.nodes {
		if n != nil {
			n.patroni.kill()
			_ = n.killPostgres() // it may have ended
		}
	}
	c.etcd.kill()
	for _, n := range c.nodes { // the processes of PostgreSQL still write
		for tries := 0; n != nil && os.RemoveAll(n.dir) != nil && tries < 1000; tries++ {
			time.Sleep(10 * time.Millisecond)
		}
	}
	_ = os.RemoveAll(c.dir)
}

// patroni starts two nodes under Patroni, and two servers; writes go on while fn kills what they stand on.
func (m *measures) patroni(ctx context.Context, what string, fn func(context.Context, *pair, *patroniCluster, *writer) error) error {
	c, err := startPatroni(ctx)
	defer c.end()
	if err != nil {
		return err
	}
	conn, err := pgx.Connect(ctx, c.url("postgres"))
	if err != nil {
		return err
	}
	_, err = conn.Exec(ctx, "CREATE DATABASE "+databaseName)
	conn.Close(ctx)
	if err != nil {
		return err
	}
	p, err := m.pair(ctx, c.url(databaseName))
	defer p.end()
	if err != nil {
		return err
	}
	w, err := p.write(ctx, "patroni", 4)
	if err != nil {
		return err
	}
	defer w.end()
	if err := fn(ctx, p, c, w); err != nil {
		return err
	}
	w.end()
	for i := range p.all {
		if _, why, is := strings.Cut(p.all[i].Log(), "the database has gone back:"); is {
			return fmt.Errorf("a server believes that its database went back:%.400s", why)
		}
	}
	acknowledged, lost, err := w.lost(ctx, c.url(databaseName))
	return m.judged(acknowledged, lost, err, what)
}

// failovers kills the primary, with Patroni (the machine is gone) and without.
func failovers(ctx context.Context, p *pair, c *patroniCluster, w *writer) error {
	m := p.m
	for round := range m.turns(1) {
		if err := c.redundant(ctx); err != nil {
			return err
		}
		time.Sleep(500 * time.Millisecond) // of traffic
		n, err := c.primary(ctx)
		if err != nil {
			return err
		}
		how := "Patroni: PostgreSQL killed"
		w.idled()
		began := time.Now()
		if round%2 == 1 {
			how = "Patroni: machine of the primary killed"
			n.patroni.kill()
		}
		if err := n.killPostgres(); err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond) // its sessions end
		if err := accepts(ctx, c.url(databaseName)); err != nil {
			return err
		}
		patroni := time.Since(began)
		m.took(how+": PostgreSQL accepts writes again", patroni)
		if err := p.goesOn(ctx, how+": both servers write after that"); err != nil {
			return err
		}
		time.Sleep(50 * time.Millisecond)
		m.took(how+": clients idle in all", w.idled())
		if round%2 == 1 {
			if err := n.patroni.run(); err != nil {
				return err
			}
		}
	}
	return nil
}

// withoutEtcd is the time for which etcd is gone: longer than Patroni keeps a primary without it.
const withoutEtcd = 10 * time.Second

// losses kills the machine of the standby, and then etcd.
func losses(ctx context.Context, p *pair, c *patroniCluster, w *writer) error {
	for range p.m.turns(5) {
		if err := c.redundant(ctx); err != nil {
			return err
		}
		primary, err := c.primary(ctx)
		if err != nil {
			return err
		}
		standby := c.nodes[0]
		if standby == primary {
			standby = c.nodes[1]
		}
		time.Sleep(500 * time.Millisecond) // of traffic
		w.idled()
		standby.patroni.kill()
		if err := standby.killPostgres(); err != nil {
			return err
		}
		if err := p.goesOn(ctx, "Patroni: machine of the standby killed: both servers write after that"); err != nil {
			return err
		}
		p.m.took("Patroni: machine of the standby killed: clients idle in all", w.idled())
		if err := standby.patroni.run(); err != nil {
			return err
		}
		if err := c.redundant(ctx); err != nil {
			return err
		}
		c.etcd.kill()
		time.Sleep(withoutEtcd)
		if err := c.etcd.run(); err != nil {
			return err
		}
		began := time.Now()
		if err := accepts(ctx, c.url(databaseName)); err != nil {
			return err
		}
		p.m.took("Patroni: etcd back after 10 s: PostgreSQL accepts writes", time.Since(began))
		if err := p.goesOn(ctx, "Patroni: etcd back after 10 s: both servers write after that"); err != nil {
			return err
		}
	}
	return nil
}
