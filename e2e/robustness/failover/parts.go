//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

const databaseName = "failover"

// database starts PostgreSQL with an empty database.
func database(ctx context.Context) (*pgtest.Server, string, error) {
	pg, err := pgtest.Start(ctx, pgtest.Options{Settings: map[string]string{"fsync": "on"}})
	if err != nil {
		return nil, "", err
	}
	url, err := pg.CreateDB(ctx, databaseName)
	if err != nil {
		pg.Stop()
		return nil, "", err
	}
	return pg, url, nil
}

// servers kills, stops and ends the server that leads.
func (m *measures) servers(ctx context.Context) error {
	pg, url, err := database(ctx)
	if err != nil {
		return err
	}
	defer pg.Stop()
	p := &pair{m: m, store: url}
	defer p.end()
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.WithoutCancel(ctx))
	if err := p.start(ctx, 0); err != nil {
		return err
	}
	// All leads of a server: none has come for a second.
	least, holder := 0, ""
	for stable := time.Now(); time.Since(stable) < time.Second; time.Sleep(50 * time.Millisecond) {
		held, err := leads(ctx, conn)
		if err != nil {
			return err
		}
		if len(held) != least {
			least, stable = len(held), time.Now()
		}
		for _, h := range held {
			holder = h
		}
	}
	m.count("leads of a server: %d", least)
	if err := p.start(ctx, 1); err != nil {
		return err
	}
	at := 0
	for round := range m.turns(1) {
		for _, how := range []string{"SIGKILL", "SIGTERM", "SIGSTOP"} {
			if holder, err = p.without(ctx, conn, at, least, holder, how); err != nil {
				return fmt.Errorf("round %d, %s: %w", round, how, err)
			}
			at = 1 - at
		}
	}
	return nil
}

// without takes the server that leads away, and returns the process that leads then.
func (p *pair) without(ctx context.Context, conn *pgx.Conn, at, least int, holder, how string) (string, error) {
	c, err := p.client(at)
	if err != nil {
		return "", err
	}
	if err := c.until(ctx, http.StatusOK, http.MethodGet, configMaps+"?limit=1", ""); err != nil { // a connection to it is open
		return "", err
	}
	s := p.all[at]
	began := time.Now()
	var served sync.WaitGroup
	var failed error
	switch how {
	case "SIGKILL":
		s.Kill()
		served.Go(func() {
			failed = c.until(ctx, http.StatusCreated, http.MethodPost, configMaps, `{"metadata":{"generateName":"served-"}}`)
			p.m.took("SIGKILL: a client of the server is served by the other", time.Since(began))
		})
	case "SIGTERM":
		if err := s.Stop(); err != nil {
			return "", err
		}
		p.m.took("SIGTERM: the server exits", time.Since(began))
		began = time.Now()
	case "SIGSTOP":
		if err := syscall.Kill(s.Pid(), syscall.SIGSTOP); err != nil {
			return "", err
		}
	}
	now, err := moved(ctx, conn, least, holder)
	if err != nil {
		return "", err
	}
	after := map[string]string{"SIGTERM": " after its exit"}[how]
	p.m.took(how+": all leads are the other server's"+after, time.Since(began))
	served.Wait()
	if how == "SIGSTOP" {
		_ = syscall.Kill(s.Pid(), syscall.SIGCONT)
		return now, nil
	}
	return now, errors.Join(failed, p.start(ctx, at))
}

// accepts waits until PostgreSQL commits, as seen by a session of its own.
func accepts(ctx context.Context, url string) error {
	for deadline := time.Now().Add(longest); ; time.Sleep(2 * time.Millisecond) {
		err := func() error {
			conn, err := pgx.Connect(ctx, url)
			if err != nil {
				return err
			}
			defer conn.Close(context.WithoutCancel(ctx))
			_, err = conn.Exec(ctx, "CREATE TABLE IF NOT EXISTS probe (n int); INSERT INTO probe VALUES (1)")
			return err
		}()
		if err == nil {
			return nil
		}
		if time.Now().After(deadline) || ctx.Err() != nil {
			return err
		}
	}
}

// goesOn measures when each server writes again. It shows the end of the log of one that takes longer than a second.
func (p *pair) goesOn(ctx context.Context, what string) error {
	began := time.Now()
	var both sync.WaitGroup
	errs := make([]error, len(p.all))
	for i := range p.all {
		both.Go(func() {
			defer func() {
				if took := time.Since(began); took > time.Second {
					log := p.all[i].Log()
					fmt.Fprintf(os.Stderr, "%s, server %d: %s, at %s\n%s\n", what, i, took, time.Now().Format(time.TimeOnly), log[max(0, len(log)-4000):])
				}
			}()
			c, err := p.client(i)
			if err == nil {
				c.urls = c.urls[:1]
				err = c.until(ctx, http.StatusCreated, http.MethodPost, configMaps, `{"metadata":{"generateName":"on-"}}`)
			}
			errs[i] = err
		})
	}
	both.Wait()
	p.m.took(what, time.Since(began))
	return errors.Join(errs...)
}

// postgres kills PostgreSQL and starts it again.
func (m *measures) postgres(ctx context.Context) error {
	pg, url, err := database(ctx)
	if err != nil {
		return err
	}
	defer pg.Stop()
	p, err := m.pair(ctx, url)
	defer p.end()
	if err != nil {
		return err
	}
	w, err := p.write(ctx, "restart", 4)
	if err != nil {
		return err
	}
	defer w.end()
	for round := range m.turns(1) {
		time.Sleep(300 * time.Millisecond) // of traffic
		pg.Crash()
		if round%2 == 1 {
			time.Sleep(3 * time.Second) // long enough for slow retries
		}
		if err := pg.Run(ctx); err != nil {
			return err
		}
		if err := accepts(ctx, url); err != nil {
			return err
		}
		if err := p.goesOn(ctx, "PostgreSQL killed and restarted: both servers write after it accepts writes"); err != nil {
			return err
		}
	}
	w.end()
	acknowledged, lost, err := w.lost(ctx, url)
	return m.judged(acknowledged, lost, err, "restarts of PostgreSQL")
}

func (m *measures) judged(acknowledged, lost int, err error, through string) error {
	m.count("acknowledged writes through %s: %d, lost: %d", through, acknowledged, lost)
	if err == nil && lost > 0 {
		err = fmt.Errorf("%d acknowledged writes are lost", lost)
	}
	return err
}

// promotions kills a primary and promotes its synchronous standby by hand; then a new standby follows that.
func (m *measures) promotions(ctx context.Context) error {
	primary, url, err := database(ctx)
	if err != nil {
		return err
	}
	defer func() { primary.Stop() }()
	standby, err := primary.Standby(ctx)
	if err != nil {
		return err
	}
	defer func() { standby.Stop() }()
	// The ports of both, in turn: that of the next standby is one of a primary before.
	ports := []int{primary.Port, standby.Port}
	store := fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/%s?sslmode=disable&target_session_attrs=read-write", ports[0], ports[1], databaseName)
	p, err := m.pair(ctx, store)
	defer p.end()
	if err != nil {
		return err
	}
	w, err := p.write(ctx, "promotion", 4)
	if err != nil {
		return err
	}
	defer w.end()
	for round := range m.turns(5) {
		time.Sleep(500 * time.Millisecond) // of traffic
		w.idled()
		primary.Crash()
		began := time.Now()
		if err := standby.Promote(ctx); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
		url = standby.URL(databaseName)
		if err := accepts(ctx, url); err != nil {
			return err
		}
		m.took("standby promoted by hand: it accepts writes", time.Since(began))
		if err := p.goesOn(ctx, "standby promoted by hand: both servers write after it accepts writes"); err != nil {
			return err
		}
		time.Sleep(100 * time.Millisecond)
		m.took("standby promoted by hand: clients idle in all", w.idled())
		old := primary.Port
		primary.Stop()
		primary = standby
		if standby, err = primary.StandbyAt(ctx, old); err != nil {
			return fmt.Errorf("round %d: %w", round, err)
		}
	}
	w.end()
	for i := range p.all {
		if strings.Contains(p.all[i].Log(), "the database has gone back:") {
			return errors.New("a server believes that its database went back")
		}
	}
	acknowledged, lost, err := w.lost(ctx, url)
	return m.judged(acknowledged, lost, err, "promotions of a synchronous standby")
}
