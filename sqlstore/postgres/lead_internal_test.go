package postgres

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// memoryLeads is a kv_lead in memory, and who believes to have its leads.
type memoryLeads struct {
	mu      sync.Mutex
	random  *rand.Rand
	rows    map[string]row
	writes  int64
	delay   time.Duration // the longest, of a request and of an answer
	slowly  time.Duration // more, of requests that take leads
	stalled time.Time     // nothing is done before
	gone    map[int64]bool
	leading map[string]*contender
	twice   []string // leads that two had at a time
}

func (m *memoryLeads) wait() time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.delay/2 + time.Duration(m.random.Float64()*float64(m.delay)/2)
}

func (m *memoryLeads) stall(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stalled = time.Now().Add(d)
}

// do does something once nothing stalls it.
func (m *memoryLeads) do(what func()) {
	m.mu.Lock()
	stalled := time.Until(m.stalled)
	m.mu.Unlock()
	time.Sleep(stalled)
	m.mu.Lock()
	defer m.mu.Unlock()
	what()
}

func (m *memoryLeads) set(name, holder string) {
	m.writes++
	m.rows[name] = row{holder: holder, until: time.Unix(m.writes, 0)}
}

// has returns how many leads a process believes to have.
func (m *memoryLeads) has(c *contender) (n int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, by := range m.leading {
		if by == c {
			n++
		}
	}
	return n
}

// contender is a process that wants leads, with its network to the database.
type contender struct {
	of     *memoryLeads
	leads  *leads
	loops  sync.WaitGroup
	mu     sync.Mutex
	silent bool
	terms  int // how many it has had
}

// speaks waits until the process is not silent; it returns false if ctx ends before.
func (c *contender) speaks(ctx context.Context) bool {
	for ; ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		c.mu.Lock()
		silent := c.silent
		c.mu.Unlock()
		if !silent {
			return true
		}
	}
	return false
}

func (c *contender) setSilent(silent bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.silent = silent
}

// had returns how many terms it has had.
func (c *contender) had() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.terms
}

// ask sends a request to the database, which does it whether or not the process waits for the answer.
func ask[T any](ctx context.Context, c *contender, more time.Duration, what func() T) (answer T, err error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	answers := make(chan T, 1)
	c.loops.Go(func() {
		var done T
		if c.speaks(ctx) {
			time.Sleep(c.of.wait() + more)
			c.of.do(func() { done = what() })
			time.Sleep(c.of.wait())
			if c.speaks(ctx) {
				answers <- done
			}
		}
	})
	select {
	case answer = <-answers:
		return answer, nil
	case <-ctx.Done():
		return answer, ctx.Err()
	}
}

func (c *contender) look(ctx context.Context) (found map[string]row, gone map[int64]bool, err error) {
	type seen struct {
		rows map[string]row
		gone map[int64]bool
	}
	s, err := ask(ctx, c, 0, func() seen { return seen{maps.Clone(c.of.rows), maps.Clone(c.of.gone)} })
	return s.rows, s.gone, err
}

func (c *contender) take(ctx context.Context, all []*take) error {
	wants := make([]take, 0, len(all))
	for _, t := range all {
		wants = append(wants, take{name: t.name, holder: t.holder, over: t.over})
	}
	taken, err := ask(ctx, c, c.of.slowly, func() (taken []bool) {
		for _, w := range wants {
			is := c.of.rows[w.name]
			free := is.holder == w.over.holder && is.until.Equal(w.over.until)
			if taken = append(taken, free); free {
				c.of.set(w.name, w.holder)
			}
		}
		return taken
	})
	for i, t := range taken {
		all[i].taken = t
	}
	return err
}

func (c *contender) renewals() renewals { return c }
func (c *contender) end()               {}

func (c *contender) renew(ctx context.Context, held map[string]*term) (map[string]bool, error) {
	holders := map[string]string{}
	for name, t := range held {
		holders[name] = t.holder
	}
	return ask(ctx, c, 0, func() map[string]bool {
		renewed := map[string]bool{}
		for name, holder := range holders {
			if c.of.rows[name].holder == holder {
				c.of.set(name, holder)
				renewed[name] = true
			}
		}
		return renewed
	})
}

func (c *contender) drop(name, holder string) {
	_, _ = ask(context.Background(), c, 0, func() bool {
		if c.of.rows[name].holder == holder {
			delete(c.of.rows, name)
		}
		return true
	})
}

// contend wants a lead until ctx ends, as sqlstore.Store.Lead does.
func (c *contender) contend(ctx context.Context, name string) {
	for ctx.Err() == nil {
		if held, release, ok, _ := c.leads.lead(ctx, name); ok {
			c.of.mu.Lock()
			if by := c.of.leading[name]; by != nil {
				c.of.twice = append(c.of.twice, name)
			}
			c.of.leading[name] = c
			c.of.mu.Unlock()
			c.mu.Lock()
			c.terms++
			c.mu.Unlock()
			select {
			case <-held:
			case <-ctx.Done():
			}
			c.of.mu.Lock()
			if c.of.leading[name] == c {
				c.of.leading[name] = nil
			}
			c.of.mu.Unlock()
			release()
		}
		sqlstore.Sleep(ctx, 100*time.Millisecond)
	}
}

const leadsOfTest = 3

// contention runs two processes on a database whose requests and answers take up to delay each, with the default times, until
// fn returns. The first has all leads when fn is called.
func contention(t *testing.T, seed uint64, delay, slowly time.Duration, fn func(m *memoryLeads, a, b *contender)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		m := &memoryLeads{random: rand.New(rand.NewPCG(seed, 1)), rows: map[string]row{}, delay: delay, slowly: slowly, gone: map[int64]bool{}, leading: map[string]*contender{}}
		ctx, cancel := context.WithCancel(t.Context())
		closing := make(chan struct{})
		both := [2]*contender{{of: m}, {of: m}}
		var running sync.WaitGroup
		for i, c := range both {
			c.leads = newLeads(c, fmt.Sprintf("a%d", i), Config{}.withDefaults().LeadFor, &c.loops, closing, slog.New(slog.DiscardHandler))
			c.leads.beginSession()
			c.leads.setSession(true)
			for n := range leadsOfTest {
				running.Go(func() {
					time.Sleep(m.wait() + time.Duration(n)*33*time.Millisecond)
					c.contend(ctx, fmt.Sprint("lead", n))
				})
			}
			for i == 0 && m.has(c) < leadsOfTest {
				time.Sleep(100 * time.Millisecond)
			}
		}
		fn(m, both[0], both[1])
		cancel()
		running.Wait()
		if len(m.twice) > 0 {
			t.Errorf("seed %d: two have a lead at a time, %d times", seed, len(m.twice))
		}
		close(closing)
		for _, c := range both {
			c.loops.Wait()
		}
	})
}

// settle lets the processes contend for a while, which ends anywhere between two renewals.
func (m *memoryLeads) settle() {
	m.mu.Lock()
	more := m.random.Int64N(int64(time.Second))
	m.mu.Unlock()
	time.Sleep(5*time.Second + time.Duration(more))
}

// TestLeadsMoveInTwoSeconds: all leads of a process that dies are another's within two seconds, and those of one that falls
// silent too, which has given them up before.
func TestLeadsMoveInTwoSeconds(t *testing.T) {
	for _, dies := range []bool{true, false} {
		for seed := range uint64(100) {
			contention(t, seed, 15*time.Millisecond, 0, func(m *memoryLeads, a, b *contender) {
				m.settle()
				began := time.Now()
				a.setSilent(true)
				if dies {
					m.mu.Lock()
					m.gone[leadSession(a.leads.nonce)] = true
					clear(m.leading)
					m.mu.Unlock()
				}
				for m.has(b) < leadsOfTest && time.Since(began) < time.Minute {
					time.Sleep(time.Millisecond)
				}
				if took := time.Since(began); took > 2*time.Second {
					t.Errorf("seed %d, killed %t: the leads move in %s", seed, dies, took)
				}
				if dies {
					m.mu.Lock()
					m.twice = nil // the process is no more
					m.mu.Unlock()
				}
			})
		}
	}
}

// TestLeadsStay: slow answers, a database that stands still, a process that does, and a transaction that takes leads slowly
// move no lead to another process.
func TestLeadsStay(t *testing.T) {
	for name, c := range map[string]struct {
		delay, slowly time.Duration
		happens       func(m *memoryLeads, a, b *contender)
		most          int // terms of each lead
	}{
		"slow answers":                    {delay: 250 * time.Millisecond, most: 1},
		"very slow answers":               {delay: 700 * time.Millisecond, most: 6},
		"leads that are taken slowly":     {delay: 10 * time.Millisecond, slowly: 3 * time.Second, most: 1},
		"answers that take half a second": {delay: 10 * time.Millisecond, most: 1, happens: func(m *memoryLeads, _, _ *contender) { m.stall(500 * time.Millisecond) }},
		"the database stands still":       {delay: 10 * time.Millisecond, most: 2, happens: func(m *memoryLeads, _, _ *contender) { m.stall(20 * time.Second) }},
		"another process stands still": {delay: 10 * time.Millisecond, most: 1, happens: func(_ *memoryLeads, _, b *contender) {
			b.setSilent(true)
			time.Sleep(20 * time.Second)
			b.setSilent(false)
		}},
		"the holder is away for a moment": {delay: 10 * time.Millisecond, most: 1, happens: func(_ *memoryLeads, a, _ *contender) {
			a.setSilent(true)
			time.Sleep(100 * time.Millisecond)
			a.setSilent(false)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			for seed := range uint64(10) {
				contention(t, seed, c.delay, c.slowly, func(m *memoryLeads, a, b *contender) {
					m.settle()
					if c.happens != nil {
						c.happens(m, a, b)
					}
					time.Sleep(2 * time.Minute)
					if m.has(a) != leadsOfTest || b.had() > 0 {
						t.Errorf("seed %d: the first process has %d leads, and the other had %d terms", seed, m.has(a), b.had())
					}
					if had := a.had(); had > c.most*leadsOfTest {
						t.Errorf("seed %d: %d terms of %d leads", seed, had, leadsOfTest)
					}
				})
			}
		})
	}
}

// TestLeadsOfEarlierVersions: holders without a duration in their rows keep the lead for the duration of earlier versions.
func TestLeadsOfEarlierVersions(t *testing.T) {
	for holder, want := range map[string]time.Duration{"0a/s1": longest, "0a/1": longest, "other": longest, "": longest, "0a/s1/1.4s": 1400 * time.Millisecond, "0a/1/2s": 2 * time.Second} {
		if got := leaseDuration(holder); got != want {
			t.Errorf("the row of %q stands for %s, want %s", holder, got, want)
		}
	}
	if key, ok := sessionOf("0a/s1/1.4s"); !ok || key != 10 {
		t.Errorf("the session is %d, %t", key, ok)
	}
}
