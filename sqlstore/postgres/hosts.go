package postgres

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
)

// hosts chooses the server for connections if the connection string names several hosts, or one whose name
// has several addresses, and closes connections to a server that no longer answers. Package pgconn tries
// hosts one after the other, each for the whole connect_timeout: a first host that accepts connections, or
// drops packets, and does not answer would delay every connection by that long. So the driver probes all
// hosts at the same time, the one that last accepted writes before the others, and connects to the one that
// reports that it accepts writes.
//
// The cost is bounded: one search at a time for the whole driver, in it one attempt at a time for each of at
// most maxAddresses addresses, and the result is used for fresh.
type hosts struct {
	from    *source
	base    *pgconn.Config // of a connection, without hosts
	within  time.Duration  // the longest search: connect_timeout
	log     *slog.Logger
	moved   func() // called when connections were given up
	epoch   time.Time
	life    context.Context
	end     context.CancelFunc
	running sync.WaitGroup

	mu      sync.Mutex
	several bool      // there may be others to ask, as far as known
	good    server    // which took writes last
	seen    time.Time // when
	left    time.Time // when a connection was closed that had not answered
	current *search
	links   map[*link]struct{}
	ended   bool
}

const (
	fresh        = time.Second            // how long a search's answer is believed without another look
	headStart    = 300 * time.Millisecond // of the server that took writes last, in a search
	retryAfter   = 300 * time.Millisecond // after a refusal, while other servers are silent
	maxAddresses = 16                     // of one host
	silence      = 2 * time.Second        // without an answer, after which other servers are tried
	lookEvery    = 500 * time.Millisecond
	believe      = 5 * time.Second // how long a server counts as alive that was silent and answered a search
	cancelTime   = time.Second     // for a request that cancels a statement
)

// server is one address of one host. An empty address is a single host, which package pgconn finds by itself.
type server struct {
	host    string
	port    uint16
	address string
}

func (s server) String() string {
	if s.address == "" || s.address == s.host {
		return net.JoinHostPort(s.host, strconv.Itoa(int(s.port)))
	}
	return fmt.Sprintf("%s (%s)", net.JoinHostPort(s.host, strconv.Itoa(int(s.port))), s.address)
}

func newHosts(from *source, base *pgconn.Config, log *slog.Logger, moved func()) *hosts {
	h := &hosts{from: from, base: base, within: base.ConnectTimeout, log: log, moved: moved, epoch: time.Now(), links: make(map[*link]struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	h.several = len(places(base)) > 1
	h.running.Go(h.watch)
	return h
}

// close ends the goroutines. No connection attempt may be in progress.
func (h *hosts) close() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.end()
	h.running.Wait()
}

// places returns the hosts of a configuration, each once.
func places(c *pgconn.Config) []server {
	all := []server{{host: c.Host, port: c.Port}}
	for _, f := range c.Fallbacks { // the same host may appear again, without TLS
		if p := (server{host: f.Host, port: f.Port}); !slices.Contains(all, p) {
			all = append(all, p)
		}
	}
	return all
}

// narrow leaves one server in a configuration.
func narrow(c *pgconn.Config, to server) {
	all := append([]*pgconn.FallbackConfig{{Host: c.Host, Port: c.Port, TLSConfig: c.TLSConfig}}, c.Fallbacks...)
	all = slices.DeleteFunc(all, func(f *pgconn.FallbackConfig) bool { return f.Host != to.host || f.Port != to.port })
	if len(all) == 0 { // the connection string no longer names it
		return
	}
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = all[0].Host, all[0].Port, all[0].TLSConfig, all[1:]
	if to.address != "" {
		c.LookupFunc = func(context.Context, string) ([]string, error) { return []string{to.address}, nil }
	}
}

// addresses looks a host up.
func addresses(ctx context.Context, c *pgconn.Config, s server) ([]server, error) {
	if strings.HasPrefix(s.host, "/") { // a folder of sockets
		return []server{s}, nil
	}
	found, err := c.LookupFunc(ctx, s.host)
	if err != nil {
		return nil, err
	}
	if len(found) == 0 {
		return nil, errors.New("the name has no address")
	}
	var all []server
	for _, a := range found[:min(len(found), maxAddresses)] {
		all = append(all, server{s.host, s.port, a})
	}
	return all, nil
}

// choose is the BeforeConnect of every connection: it takes passwords and certificates from
// where they are kept now, and points the connection at the server that takes writes.
func (h *hosts) choose(ctx context.Context, c *pgx.ConnConfig) error {
	h.refresh(&c.Config)
	to := server{host: c.Host, port: c.Port}
	several := len(places(&c.Config)) > 1
	if !several && named(c.Host) {
		lookup, cancel := context.WithTimeout(ctx, h.within)
		found, err := addresses(lookup, &c.Config, to)
		cancel()
		if err != nil {
			return &noServerError{[]error{fmt.Errorf("%s: %w", to, err)}}
		}
		if several = len(found) > 1; !several {
			to = found[0]
		}
	}
	if several {
		var err error
		if to, err = h.find(ctx, &c.Config, false); err != nil {
			return err
		}
	}
	h.mu.Lock()
	h.several = several || named(c.Host)
	h.mu.Unlock()
	narrow(&c.Config, to)
	h.track(&c.Config, to)
	return nil
}

// refresh updates a configuration to the present connection string and its files.
func (h *hosts) refresh(c *pgconn.Config) {
	now := h.from.now()
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = now.Host, now.Port, now.TLSConfig, now.Fallbacks
	c.Password, c.LookupFunc = now.Password, now.LookupFunc
}

// named reports whether a host has addresses that may change.
func named(host string) bool { return !strings.HasPrefix(host, "/") && net.ParseIP(host) == nil }

// find returns the server that accepts writes: the recent result, or that of a new search.
func (h *hosts) find(ctx context.Context, c *pgconn.Config, anew bool) (server, error) {
	h.mu.Lock()
	if !anew && h.good.host != "" && time.Since(h.seen) < fresh {
		defer h.mu.Unlock()
		return h.good, nil
	}
	if h.ended {
		h.mu.Unlock()
		return server{}, sqlstore.ErrClosed
	}
	s := h.current
	if s == nil {
		s = &search{done: make(chan struct{})}
		h.current = s
		c, before := c.Copy(), h.good
		h.running.Go(func() {
			s.found, s.err = h.look(c, before)
			h.mu.Lock()
			h.current = nil
			if s.err == nil {
				h.good, h.seen = s.found, time.Now()
			}
			h.mu.Unlock()
			if s.err == nil && before.host != "" && s.found != before {
				h.log.Warn("another database server takes writes now", "server", s.found, "before", before)
			}
			close(s.done)
		})
	}
	h.mu.Unlock()
	select {
	case <-s.done:
		return s.found, s.err
	case <-ctx.Done():
		return server{}, ctx.Err()
	}
}

// invalidate has the next connection look for the server that takes writes.
func (h *hosts) invalidate() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = time.Time{}
}
