//go:build unix

// Package faults breaks servers, connections, disks and databases on a schedule that is drawn from a seed, and mends them.
package faults

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Fault is one way to break something.
type Fault struct {
	Name  string
	What  string
	Store string // the only store that it is for; "": both
	Cuts  bool   // it keeps servers from their database, or from running
	Often int    // how often it is drawn, compared to others
	Disk  bool   // it needs a disk.Disk
	run   func(context.Context, *env) outcome
}

type env struct {
	c      *cluster.Cluster
	rand   *rand.Rand
	rec    *history.Recorder
	ours   func(history.Key) bool
	scopes []history.Scope
}

type outcome struct {
	what     string
	server   int
	cut      time.Duration // from when on servers were cut off; 0: from the beginning
	compacts bool          // an operator deletes history
	clock    bool          // it set the wall clock of servers
	wrong    string        // a promise that was broken
	absent   error         // why the fault was not made, if the servers are not the cause; the report counts these
	err      error         // the fault could not be made, or mended
}

// All returns the faults, in the order of the help.
func All() []Fault {
	return slices.Concat(processes(), leads(), connections(), databases(), stores(), imports(), copies(), followers(), strangers(), damages(), clocks(), disks())
}

// Choose finds faults by their names: all, none, or a list with commas.
func Choose(names, store string) ([]Fault, error) {
	var chosen []Fault
	all := All()
	if names == "none" {
		return nil, nil
	}
	for _, name := range strings.Split(names, ",") {
		found := false
		for _, f := range all {
			if name != "all" && name != f.Name {
				continue
			}
			if found = true; f.Store == "" || f.Store == store {
				chosen = append(chosen, f)
			} else if name != "all" {
				return nil, fmt.Errorf("-faults %s: %s is for -store %s", names, f.Name, f.Store)
			}
		}
		if !found {
			return nil, fmt.Errorf("-faults %q: there is no fault %q; -faults help lists them", names, name)
		}
	}
	return chosen, nil
}

// NeedDisk reports whether one of the faults is of the disk.
func NeedDisk(chosen []Fault) bool {
	return slices.ContainsFunc(chosen, func(f Fault) bool { return f.Disk })
}

// WithoutDisk returns the faults that are not of the disk.
func WithoutDisk(chosen []Fault) []Fault {
	return slices.DeleteFunc(slices.Clone(chosen), func(f Fault) bool { return f.Disk })
}

// Help lists the faults.
func Help() string {
	var b strings.Builder
	for _, f := range All() {
		where := "both stores"
		if f.Store != "" {
			where = f.Store
		}
		fmt.Fprintf(&b, "%-14s %s (%s)\n", f.Name, f.What, where)
	}
	return b.String()
}

// Deck decides which fault comes next. Like a shuffled pack of cards it has each fault as often as its Often, and is shuffled
// again once all were drawn. Each fault comes once before any comes again, so that a run of a few minutes makes every fault. It is for
// one goroutine.
type Deck struct {
	chosen []Fault
	cards  []Fault // those that were not drawn yet
	rand   *rand.Rand
}

// NewDeck returns the deck of some faults that a seed determines.
func NewDeck(chosen []Fault, seed uint64) *Deck {
	return &Deck{chosen: chosen, rand: rand.New(rand.NewPCG(seed, 7))}
}

// Draw takes the next fault. The deck must not be empty.
func (d *Deck) Draw() Fault {
	if len(d.cards) == 0 {
		d.cards = slices.Clone(d.chosen)
		d.shuffle(d.cards)
		for _, f := range d.chosen {
			for range f.Often - 1 {
				d.cards = append(d.cards, f)
			}
		}
		d.shuffle(d.cards[len(d.chosen):])
	}
	f := d.cards[0]
	d.cards = d.cards[1:]
	return f
}

func (d *Deck) shuffle(cards []Fault) {
	d.rand.Shuffle(len(cards), func(i, j int) { cards[i], cards[j] = cards[j], cards[i] })
}

// Run makes faults of a deck one after the other, with pauses, until ctx ends, and mends the last. It ends with the
// error of the first that could not be made or mended.
func Run(ctx context.Context, c *cluster.Cluster, rec *history.Recorder, ours func(history.Key) bool, scopes []history.Scope, deck *Deck, pause time.Duration) error {
	if len(deck.chosen) == 0 {
		<-ctx.Done()
		return nil
	}
	r := deck.rand
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(time.Duration(r.Float64() * 2 * float64(pause))):
		}
		f := deck.Draw()
		record := &history.Fault{Name: f.Name, Begin: rec.Now(), Store: f.Cuts}
		o := f.run(ctx, &env{c, rand.New(rand.NewPCG(r.Uint64(), 1)), rec, ours, scopes})
		record.End, record.What, record.Server, record.Wrong, record.NotMade = rec.Now(), o.what, o.server, o.wrong, text(o.absent)
		record.From, record.Compacts, record.Clock, record.Stamps = o.cut, o.compacts, o.clock, o.clock && c.Postgres() == nil
		rec.Add(record)
		if o.err != nil {
			return fmt.Errorf("fault %s: %s: %w", f.Name, o.what, o.err)
		}
	}
}

// wait lasts for a random time between two, or until ctx ends.
func (e *env) wait(ctx context.Context, least, most time.Duration) time.Duration {
	d := least + time.Duration(e.rand.Int64N(int64(most-least)+1))
	select {
	case <-ctx.Done():
	case <-time.After(d):
	}
	return d
}

func (e *env) server() int { return e.rand.IntN(e.c.Len()) }

// again starts a server however ctx ends.
func (e *env) again(i int) error { return e.c.StartServer(context.Background(), i) }

func processes() []Fault {
	return []Fault{
		{Name: "kill", What: "a server is killed by SIGKILL, and started again up to a second later", Cuts: true, Often: 6, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			e.c.Kill(i)
			d := e.wait(ctx, 0, time.Second)
			return outcome{what: fmt.Sprintf("server %d is killed, and started after %s", i, d.Round(time.Millisecond)), server: i, err: e.again(i)}
		}},
		{Name: "kill-all", What: "all servers are killed at the same time", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
			for i := range e.c.Len() {
				e.c.Kill(i)
			}
			o := outcome{what: "all servers are killed", server: -1}
			for i := range e.c.Len() {
				if err := e.again(i); err != nil && o.err == nil {
					o.err = err
				}
			}
			return o
		}},
		{Name: "restart", What: "all servers are stopped by SIGTERM and started, one after the other", Cuts: true, Often: 2, run: func(ctx context.Context, e *env) outcome {
			wrong, err := roll(ctx, e.c)
			return outcome{what: "a rolling restart", server: -1, wrong: wrong, err: err}
		}},
		{Name: "pause", What: "a server is stopped by SIGSTOP for up to 12 seconds, long enough to lose what it leads, and wakes", Cuts: true, Often: 3, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			err := e.c.Signal(i, syscall.SIGSTOP)
			most := 3 * time.Second
			if e.rand.IntN(3) == 0 {
				most = 12 * time.Second
			}
			d := e.wait(ctx, 200*time.Millisecond, most)
			if e := e.c.Signal(i, syscall.SIGCONT); err == nil {
				err = e
			}
			return outcome{what: fmt.Sprintf("server %d sleeps for %s", i, d.Round(time.Millisecond)), server: i, err: err}
		}},
	}
}

func connections() []Fault {
	return []Fault{
		{Name: "cut", What: "all connections of clients to a server are closed", Often: 3, run: func(_ context.Context, e *env) outcome {
			i := e.server()
			e.c.Front(i).CloseConnections()
			return outcome{what: fmt.Sprintf("connections to server %d are cut", i), server: i}
		}},
		{Name: "stall", What: "nothing passes between clients and a server for up to 4 seconds", Often: 2, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			e.c.Front(i).Stall()
			d := e.wait(ctx, 200*time.Millisecond, 4*time.Second)
			e.c.Front(i).Resume()
			return outcome{what: fmt.Sprintf("connections to server %d stall for %s", i, d.Round(time.Millisecond)), server: i}
		}},
		{Name: "half-open", What: "connections to a server are closed at its end, and clients do not notice", Often: 2, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			e.c.Front(i).HalfClose()
			e.wait(ctx, time.Second, 3*time.Second)
			e.c.Front(i).CloseConnections()
			return outcome{what: fmt.Sprintf("connections to server %d are half open", i), server: i}
		}},
		{Name: "reorder", What: "what is sent on different connections to a server passes each other, by up to 100 ms", Often: 2, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			e.c.Front(i).Delay(100 * time.Millisecond)
			d := e.wait(ctx, time.Second, 4*time.Second)
			e.c.Front(i).Delay(0)
			return outcome{what: fmt.Sprintf("connections to server %d are reordered for %s", i, d.Round(time.Millisecond)), server: i}
		}},
	}
}
