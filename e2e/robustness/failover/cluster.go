//go:build unix

package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
)

// longest bounds the time of a measure before it counts as failed.
const longest = 2 * time.Minute

const configMaps = "/api/v1/namespaces/default/configmaps"

// pair is two servers of one database.
type pair struct {
	m     *measures
	store string
	args  []string
	all   [2]*harness.Server
}

func (m *measures) pair(ctx context.Context, store string, args ...string) (*pair, error) {
	p := &pair{m: m, store: store, args: args}
	for i := range p.all {
		if err := p.start(ctx, i); err != nil {
			return p, err
		}
	}
	return p, nil
}

// start starts a server, or starts it again where it was.
func (p *pair) start(ctx context.Context, i int) (err error) {
	o := harness.Options{Store: p.store, Dir: p.m.dir, Args: p.args}
	if p.all[i] != nil {
		o = p.all[i].Options()
	}
	p.all[i], err = harness.Start(ctx, o)
	return err
}

func (p *pair) end() {
	for _, s := range p.all {
		if s != nil {
			s.Kill()
		}
	}
}

// client is a client that knows the addresses of both servers. It uses one until that does not answer.
type client struct {
	http *http.Client
	urls []string
	at   atomic.Int32
}

func (p *pair) client(first int) (*client, error) {
	pool, err := p.all[0].CA()
	if err != nil {
		return nil, err
	}
	c := &client{http: &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true, MaxIdleConnsPerHost: 64}, Timeout: 5 * time.Second}}
	for i := range p.all {
		c.urls = append(c.urls, p.all[(first+i)%len(p.all)].URL)
	}
	return c, nil
}

// do sends a request once, and takes the next address for the following one if no server answered.
func (c *client) do(ctx context.Context, method, path, body string) (int, []byte, error) {
	at := c.at.Load()
	req, err := http.NewRequestWithContext(ctx, method, c.urls[int(at)%len(c.urls)]+path, strings.NewReader(body))
	if err != nil {
		return 0, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	req.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(req)
	if err != nil {
		c.at.CompareAndSwap(at, at+1)
		return 0, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, data, err
}

// until sends a request until it gets a code, without a pause.
func (c *client) until(ctx context.Context, code int, method, path, body string) error {
	var last error
	for deadline := time.Now().Add(longest); ctx.Err() == nil; time.Sleep(2 * time.Millisecond) {
		got, answer, err := c.do(ctx, method, path, body)
		if err == nil && got == code {
			return nil
		}
		if last = err; err == nil {
			last = fmt.Errorf("%d %s", got, answer)
		}
		if time.Now().After(deadline) {
			return fmt.Errorf("%s %s: %w", method, path, last)
		}
	}
	return ctx.Err()
}

// named returns the body of a new object.
func named(name string) string { return fmt.Sprintf(`{"metadata":{"name":%q}}`, name) }

// writer writes objects, one after the other, from several goroutines, and remembers which were acknowledged.
type writer struct {
	c    *client
	name string
	stop context.CancelFunc
	done sync.WaitGroup

	mu           sync.Mutex
	acknowledged []string
	last         time.Time     // of the last acknowledgement
	idle         time.Duration // longest time without one
}

func (p *pair) write(ctx context.Context, name string, goroutines int) (*writer, error) {
	w := &writer{name: name, last: time.Now()}
	ctx, w.stop = context.WithCancel(ctx)
	for g := range goroutines {
		c, err := p.client(g)
		if err != nil {
			return nil, err
		}
		w.done.Go(func() {
			for n := 0; ctx.Err() == nil; n++ {
				object := fmt.Sprintf("%s-%d-%d", name, g, n)
				code, _, err := c.do(ctx, http.MethodPost, configMaps, named(object))
				if err == nil && code == http.StatusCreated {
					w.acknowledge(object)
				} else {
					time.Sleep(5 * time.Millisecond)
				}
			}
		})
		w.c = c
	}
	return w, nil
}

func (w *writer) acknowledge(object string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.acknowledged = append(w.acknowledged, object)
	w.idle, w.last = max(w.idle, time.Since(w.last)), time.Now()
}

// idled returns the longest time without an acknowledged write since it was called last.
func (w *writer) idled() time.Duration {
	w.mu.Lock()
	defer w.mu.Unlock()
	idle := max(w.idle, time.Since(w.last))
	w.idle = 0
	return idle
}

func (w *writer) end() {
	w.stop()
	w.done.Wait()
}

// lost returns how many acknowledged writes are not in the database.
func (w *writer) lost(ctx context.Context, url string) (acknowledged, lost int, err error) {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return 0, 0, err
	}
	defer conn.Close(ctx)
	w.mu.Lock()
	defer w.mu.Unlock()
	err = conn.QueryRow(ctx, `SELECT count(*) FROM unnest($1::text[]) n WHERE NOT EXISTS (SELECT FROM kv WHERE resource = 'configmaps' AND namespace = 'default' AND name = n)`, w.acknowledged).Scan(&lost)
	return len(w.acknowledged), lost, err
}

// leads reads the holders of all leads.
func leads(ctx context.Context, conn *pgx.Conn) (map[string]string, error) {
	rows, err := conn.Query(ctx, "SELECT name, holder FROM kv_lead")
	if err != nil {
		return nil, err
	}
	held := map[string]string{}
	var name, holder string
	_, err = pgx.ForEachRow(rows, []any{&name, &holder}, func() error {
		held[name], _, _ = strings.Cut(holder, "/")
		return nil
	})
	return held, err
}

var errNoLeads = errors.New("the leads are not with one server")

// leader returns the process that has all leads.
func leader(ctx context.Context, conn *pgx.Conn, least int) (string, error) {
	held, err := leads(ctx, conn)
	if err != nil {
		return "", err
	}
	process := ""
	for _, holder := range held {
		if process != "" && holder != process {
			return "", errNoLeads
		}
		process = holder
	}
	if len(held) < least || process == "" {
		return "", errNoLeads
	}
	return process, nil
}

// moved waits until all leads are with one process, which is not before.
func moved(ctx context.Context, conn *pgx.Conn, least int, before string) (string, error) {
	for deadline := time.Now().Add(longest); ; time.Sleep(5 * time.Millisecond) {
		now, err := leader(ctx, conn, least)
		if err == nil && now != before {
			return now, nil
		}
		if err != nil && !errors.Is(err, errNoLeads) || time.Now().After(deadline) || ctx.Err() != nil {
			return "", fmt.Errorf("the leads do not move: %w", errors.Join(err, ctx.Err()))
		}
	}
}
