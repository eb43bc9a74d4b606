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
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
)

// hosts chooses the server that connections go to where the connection string names several
// hosts, or one whose name has several addresses, and gives up connections to a server that
// does not answer any more. Package pgconn tries hosts one after the other, each for the whole
// connect_timeout: a first host that accepts connections, or swallows packets, and answers nothing
// would hold up every connection for that long. So all are asked at the same time, the one that
// took writes last before the others, and connections are made to the one that says it
// takes writes.
//
// What it costs is bounded: one search at a time for the whole driver, in it one attempt at a
// time for each of at most mostAddresses addresses, and an answer holds for fresh.
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
	fresh         = time.Second            // how long a search's answer is believed without another look
	headStart     = 300 * time.Millisecond // of the server that took writes last, in a search
	askAgain      = 300 * time.Millisecond // after an answer that was no, while others are silent
	mostAddresses = 16                     // of one host
	silence       = 2 * time.Second        // without an answer, after which other servers are asked
	lookEvery     = 500 * time.Millisecond
	believe       = 5 * time.Second // how long a server counts as alive that was silent and answered a search
	cancelTime    = time.Second     // for a request that cancels a statement
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

// search is one look for the server that takes writes, for all who wait for it.
type search struct {
	done  chan struct{}
	found server
	err   error
}

func newHosts(from *source, base *pgconn.Config, log *slog.Logger, moved func()) *hosts {
	h := &hosts{from: from, base: base, within: base.ConnectTimeout, log: log, moved: moved, epoch: time.Now(), links: make(map[*link]struct{})}
	h.life, h.end = context.WithCancel(context.Background())
	h.several = len(places(base)) > 1
	h.running.Go(h.watch)
	return h
}

// close ends what runs. Nobody may be connecting.
func (h *hosts) close() {
	h.mu.Lock()
	h.ended = true
	h.mu.Unlock()
	h.end()
	h.running.Wait()
}

// places are the hosts of a configuration, each once.
func places(c *pgconn.Config) []server {
	all := []server{{host: c.Host, port: c.Port}}
	for _, f := range c.Fallbacks { // the same host may stand there once more, without TLS
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
	if len(all) == 0 { // the connection string names it no more
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
	for _, a := range found[:min(len(found), mostAddresses)] {
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

// refresh puts what the connection string and its files say now into a configuration.
func (h *hosts) refresh(c *pgconn.Config) {
	now := h.from.now()
	c.Host, c.Port, c.TLSConfig, c.Fallbacks = now.Host, now.Port, now.TLSConfig, now.Fallbacks
	c.Password, c.LookupFunc = now.Password, now.LookupFunc
}

// named says that a host has addresses that may change.
func named(host string) bool { return !strings.HasPrefix(host, "/") && net.ParseIP(host) == nil }

// find is the server that takes writes: that of a moment ago, or what a search finds.
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

// doubt has the next connection look for the server that takes writes.
func (h *hosts) doubt() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.seen = time.Time{}
}

// noServerError says of each server why no connection goes to it.
type noServerError struct{ reasons []error }

func (e *noServerError) Error() string {
	var b strings.Builder
	b.WriteString("no database server that the connection string names takes writes")
	for _, r := range e.reasons {
		fmt.Fprintf(&b, "; %v", r)
	}
	return b.String()
}

func (e *noServerError) Unwrap() []error { return e.reasons }

// asking is a search under way.
type asking struct {
	config *pgconn.Config
	before server
	ready  chan struct{} // closed when the server that took writes last has answered no

	mu      sync.Mutex
	silent  int // how many have not answered yet
	reasons map[server]error
	found   server
	cancel  context.CancelFunc
}

// look asks all servers at the same time. It ends with the first that takes writes, when all have said
// no, or when the time is over. A server that said no is asked again while others are silent, as
// it may have been promoted since.
func (h *hosts) look(c *pgconn.Config, before server) (server, error) {
	ctx, cancel := context.WithTimeout(h.life, h.within)
	defer cancel()
	all := places(c)
	a := &asking{config: c, before: before, ready: make(chan struct{}), silent: len(all), reasons: make(map[server]error), cancel: cancel}
	if before.host == "" {
		close(a.ready)
	}
	var asked sync.WaitGroup
	for _, place := range all {
		asked.Go(func() {
			found, err := addresses(ctx, c, place)
			if err != nil {
				a.no(place, err)
				return
			}
			a.mu.Lock()
			a.silent += len(found) - 1 // in place of the name
			a.mu.Unlock()
			for _, s := range found {
				asked.Go(func() { a.ask(ctx, s) })
			}
		})
	}
	asked.Wait()
	if a.found.host != "" {
		return a.found, nil
	}
	e := &noServerError{}
	for s, err := range a.reasons {
		e.reasons = append(e.reasons, fmt.Errorf("%s: %w", s, err))
	}
	slices.SortFunc(e.reasons, func(a, b error) int { return strings.Compare(a.Error(), b.Error()) })
	return server{}, e
}

// no takes an answer that was no; the first of a server counts.
func (a *asking) no(s server, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, again := a.reasons[s]; !again {
		a.silent--
		if s == a.before {
			close(a.ready)
		}
	}
	a.reasons[s] = err
	if a.silent == 0 {
		a.cancel()
	}
}

// ask asks a server until it says yes, or the search is over.
func (a *asking) ask(ctx context.Context, s server) {
	if s != a.before {
		select {
		case <-a.ready:
		case <-time.After(headStart):
		case <-ctx.Done():
		}
	}
	for {
		c := a.config.Copy()
		narrow(c, s)
		conn, err := pgconn.ConnectConfig(ctx, c)
		if err == nil {
			a.mu.Lock()
			if a.found.host == "" {
				a.found = s
			}
			a.mu.Unlock()
			a.cancel()
			farewell, cancel := context.WithTimeout(context.WithoutCancel(ctx), cancelTime)
			defer cancel()
			conn.Close(farewell)
			return
		}
		a.no(s, err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(askAgain):
		}
	}
}

// watch gives up connections to a server that has been silent for a while where another one
// takes writes. Otherwise each call would wait for its own end, and the network hides that of a
// machine for minutes.
func (h *hosts) watch() {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	alive := make(map[server]time.Time)
	for {
		select {
		case <-tick.C:
		case <-h.life.Done():
			return
		}
		quiet, ok := h.quiet(alive)
		if !ok {
			continue
		}
		c := h.base.Copy()
		h.refresh(c)
		found, err := h.find(h.life, c, true)
		switch {
		case err != nil: // none takes writes; the calls that wait may still be answered
		case found == quiet:
			clear(alive)
			alive[quiet] = time.Now()
		default:
			h.giveUp(quiet, found)
		}
	}
}

// quiet is a server that has not answered a connection for longer than silence, if there are others to ask.
func (h *hosts) quiet(alive map[server]time.Time) (server, bool) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.several {
		return server{}, false
	}
	for l := range h.links {
		if l.waits() >= silence && time.Since(alive[l.server]) > believe {
			return l.server, true
		}
	}
	return server{}, false
}

func (h *hosts) giveUp(quiet, instead server) {
	var cut []*link
	h.mu.Lock()
	for l := range h.links {
		if l.server == quiet {
			cut = append(cut, l)
		}
	}
	h.mu.Unlock()
	h.log.Warn("a database server does not answer, and another one takes writes: giving up the connections to the first", "silent", quiet, "server", instead, "connections", len(cut))
	for _, l := range cut {
		l.Conn.Close() // its reader gets an error, and closes it too
	}
	h.moved()
}

// silent says that an answer to a call has been waited for for a while, from a server with which the connection was made.
func (h *hosts) silent() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if time.Since(h.left) < cancelTime {
		return true
	}
	for l := range h.links {
		if l.made.Load() && l.waits() >= cancelTime {
			return true
		}
	}
	return false
}

// track has the connection that a configuration makes known as one to a server, and shortens requests that cancel
// its statements, which hold a place in the pool meanwhile.
func (h *hosts) track(c *pgconn.Config, to server) {
	dial, after := c.DialFunc, c.AfterConnect
	var last atomic.Pointer[link]
	c.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		if l := last.Load(); l != nil && l.made.Load() {
			ctx, cancel := context.WithTimeout(ctx, cancelTime)
			defer cancel()
			conn, err := dial(ctx, network, address)
			if err == nil {
				err = conn.SetDeadline(time.Now().Add(cancelTime))
			}
			return conn, err
		}
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		l := &link{Conn: conn, server: to, of: h}
		h.mu.Lock()
		h.links[l] = struct{}{}
		h.mu.Unlock()
		last.Store(l)
		return l, nil
	}
	c.AfterConnect = func(ctx context.Context, conn *pgconn.PgConn) error {
		if l := last.Load(); l != nil {
			l.made.Store(true)
		}
		if after != nil {
			return after(ctx, conn)
		}
		return nil
	}
}

// link is a connection to a server. It knows for how long an answer has been waited for.
type link struct {
	net.Conn
	server server
	of     *hosts
	made   atomic.Bool  // the server has let the client in
	asked  atomic.Int64 // when it was asked something, as time since the epoch of hosts; 0: it has answered
}

func (l *link) Write(b []byte) (int, error) {
	if l.asked.Load() == 0 {
		l.asked.CompareAndSwap(0, int64(time.Since(l.of.epoch)))
	}
	return l.Conn.Write(b)
}

func (l *link) Read(b []byte) (int, error) {
	n, err := l.Conn.Read(b)
	if n > 0 {
		l.asked.Store(0)
	}
	return n, err
}

func (l *link) Close() error {
	l.of.mu.Lock()
	delete(l.of.links, l)
	l.of.mu.Unlock()
	return l.Conn.Close()
}

func (l *link) waits() time.Duration {
	asked := l.asked.Load()
	if asked == 0 {
		return 0
	}
	return time.Since(l.of.epoch) - time.Duration(asked)
}

// abandon closes a connection that is to be closed without waiting for a server that is silent. The pool
// would wait 15 s for its farewell, and have one connection less meanwhile.
func (h *hosts) abandon(c *pgx.Conn) {
	conn := c.PgConn().Conn()
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // TLS
		conn = t.NetConn()
	}
	if l, ok := conn.(*link); ok && l.waits() >= cancelTime {
		h.mu.Lock()
		h.left = time.Now()
		h.mu.Unlock()
		l.Conn.Close()
	}
}

// isNoServer says that an error is a failed attempt to connect.
func isNoServer(err error) bool {
	var none *noServerError
	var connect *pgconn.ConnectError
	return errors.As(err, &none) || errors.As(err, &connect)
}
