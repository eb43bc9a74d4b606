package postgres

import (
	"context"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/rowlock/rowlock/sqlstore"
)

// search is one search for the server that takes writes. All calls that wait for that server share it.
type search struct {
	done  chan struct{}
	found server
	err   error
}

// noServerError gives, for each server, the reason that it cannot be used.
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

// round is the state of one search.
type round struct {
	config *pgconn.Config
	before server
	ready  chan struct{} // closed when the server that took writes last has refused

	mu      sync.Mutex
	silent  int // how many have not answered yet
	reasons map[server]error
	found   server
	cancel  context.CancelFunc
}

// look probes all servers concurrently, the one that took writes last with a head start. It ends when
// one takes writes, when all have refused, or at the timeout. While some servers are silent it retries
// those that have refused, as one may have been promoted since.
func (h *hosts) look(c *pgconn.Config, before server) (server, error) {
	ctx, cancel := context.WithTimeout(h.life, h.within)
	defer cancel()
	all := places(c)
	a := &round{config: c, before: before, ready: make(chan struct{}), silent: len(all), reasons: make(map[server]error), cancel: cancel}
	if before.host == "" {
		close(a.ready)
	}
	var probes sync.WaitGroup
	for _, place := range all {
		probes.Go(func() {
			found, err := addresses(ctx, c, place)
			if err != nil {
				a.refused(place, err)
				return
			}
			a.mu.Lock()
			a.silent += len(found) - 1 // in place of the name
			a.mu.Unlock()
			for _, s := range found {
				probes.Go(func() { a.probe(ctx, s) })
			}
		})
	}
	probes.Wait()
	if a.found.host != "" {
		return a.found, nil
	}
	e := &noServerError{}
	for s, err := range a.reasons {
		e.reasons = append(e.reasons, fmt.Errorf("%s: %w", s, err))
	}
	sort.Slice(e.reasons, func(i, j int) bool { return e.reasons[i].Error() < e.reasons[j].Error() })
	return server{}, e
}

// refused records that a server takes no writes, or cannot be reached; only its
// first refusal counts.
func (a *round) refused(s server, err error) {
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

// probe connects to a server until it takes writes, or the search is over.
func (a *round) probe(ctx context.Context, s server) {
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
		a.refused(s, err)
		if !sqlstore.Sleep(ctx, retryAfter) {
			return
		}
	}
}

// isNoServer reports whether an error is a failed attempt to connect.
func isNoServer(err error) bool {
	var none *noServerError
	var connect *pgconn.ConnectError
	return errors.As(err, &none) || errors.As(err, &connect)
}
