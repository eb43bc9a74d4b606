package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

const churnBytes = 500 // of the payload of each ConfigMap

// churnLoad describes the requests of the clients.
type churnLoad struct {
	name     string
	clients  []int
	watchers int
	updates  int  // of each ConfigMap, after its create
	two      bool // also with two servers on one PostgreSQL database
}

// contestant is a server to compare.
type contestant struct {
	name  string
	store string            // of a server that each round starts; "": SQLite
	bin   string            // its binary
	two   bool              // there are two servers
	other *target           // the server of -against
	entry string            // of other, in the list of -against
	got   map[int][]churned // the rounds, by the number of clients
}

// churning is a contestant during a round.
type churning struct {
	*target
	second *target    // the second server; nil: there is none
	watch  churnWatch // the order for the process of the watchers
	space  string     // the namespace of the ConfigMaps
	end    func() error
}

// measureChurn measures clients that create and update ConfigMaps without a pause while 25 watchers watch the
// collection: rowlock on SQLite (with -store postgres on PostgreSQL too), the binaries of -builds, and the servers of
// -against, in turns.
func measureChurn(e *env) error {
	return e.churnInTurns(churnLoad{name: "churn", clients: []int{200, 1000}, watchers: 25, updates: 4})
}

// measureWriters measures few and many clients that create ConfigMaps, without watchers, in the same variant.
func measureWriters(e *env) error {
	return e.churnInTurns(churnLoad{name: "writers", clients: []int{32, 1000}, two: true})
}

func (e *env) churnInTurns(l churnLoad) error {
	all, err := e.contestants(l)
	if err != nil {
		return err
	}
	for _, clients := range l.clients {
		for round := range max(1, e.pairs) {
			for _, c := range all {
				name := fmt.Sprintf("%d clients, %s", clients, c.name)
				if !e.only.MatchString(name) {
					continue
				}
				r, err := e.churnOnce(l, c, clients, round)
				if err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				e.report(name, "%v", r)
				c.got[clients] = append(c.got[clients], r)
			}
		}
		e.compareChurn(l, all, clients)
	}
	return nil
}

// build is a binary of rowlock.
type build struct{ name, path string } // path "": the binary that the bench builds

// ownBuilds returns this build and those of -builds.
func (e *env) ownBuilds() ([]build, error) {
	all := []build{{"rowlock", ""}}
	for _, entry := range strings.FieldsFunc(e.builds, func(r rune) bool { return r == ',' }) {
		name, path, ok := strings.Cut(entry, "=")
		if !ok || name == "" {
			return nil, fmt.Errorf("-builds: %s: want NAME=BINARY", entry)
		}
		all = append(all, build{name, path})
	}
	return all, nil
}

// contestants returns this build and those of -builds on each database, and the servers of -against.
func (e *env) contestants(l churnLoad) (all []*contestant, err error) {
	builds, err := e.ownBuilds()
	if err != nil {
		return nil, err
	}
	stores := []string{"SQLite"}
	switch {
	case e.pg != nil:
		stores = append(stores, "PostgreSQL")
	case e.store != "":
		stores = []string{bareURL(e.store)}
	}
	for _, store := range stores {
		for _, b := range builds {
			all = append(all, &contestant{name: b.name + ", " + store, store: store, bin: b.path})
			if l.two && store == "PostgreSQL" {
				all = append(all, &contestant{name: "two of " + b.name + ", " + store, store: store, bin: b.path, two: true})
			}
		}
	}
	for i, t := range e.against {
		all = append(all, &contestant{name: t.name, other: t, entry: e.entries[i]})
	}
	for _, c := range all {
		c.got = map[int][]churned{}
	}
	return all, nil
}

// enter starts the contestant for one round, or connects to a running one.
func (e *env) enter(c *contestant, space string) (*churning, error) {
	if c.other != nil {
		in := &churning{target: c.other, space: space, watch: churnWatch{Entry: c.entry}}
		in.end = func() error { return (&againstRun{env: e, space: space, all: []*target{nil, c.other}}).sweep() }
		return in, (&againstRun{env: e, space: space}).createNamespace(c.other)
	}
	dir, err := os.MkdirTemp("", "rowlock-bench-")
	if err != nil {
		return nil, err
	}
	store := "sqlite:" + filepath.Join(dir, "rowlock.db")
	if e.store != "" && c.store != "SQLite" {
		if store, err = e.newStore(dir); err != nil {
			return nil, errors.Join(err, os.RemoveAll(dir))
		}
	}
	var args []string
	if profiles.dir != "" {
		args = append(args, "--profiling")
	}
	in := &churning{space: space}
	var servers []*harness.Server
	in.end = func() error {
		for _, s := range servers {
			s.Kill()
		}
		return os.RemoveAll(dir)
	}
	run := func() (*target, error) {
		s, err := harness.Start(e.ctx, harness.Options{Dir: dir, Store: store, Args: args, Binary: c.bin})
		if err != nil {
			return nil, err
		}
		servers = append(servers, s)
		return own(s)
	}
	if in.target, err = run(); err == nil && c.two {
		in.second, err = run()
	}
	if err == nil {
		in.watch = churnWatch{URL: in.url, DataDir: in.server.DataDir}
		err = (&againstRun{env: e, space: space}).createNamespace(in.target)
	}
	if err != nil {
		return nil, errors.Join(err, in.end())
	}
	return in, nil
}

// churnMeasures are the figures of a round. Figures with a goal are compared with the servers of -against, and the rate
// on PostgreSQL with that on SQLite.
var churnMeasures = []struct {
	name, unit string
	better     record.Better
	goal       float64 // of the ratio to a server of -against; 0: none
	events     bool    // it needs watchers
	of         func(churned) float64
}{
	{"writes", "1/s", record.Higher, 3, false, func(r churned) float64 { return r.writes.rate }},
	{"writes p99", "ms", record.Lower, 0, false, func(r churned) float64 { return p99(r.writes) }},
	{"server processor time of a write with its events", "us", record.Lower, 0, false, func(r churned) float64 { return micros(r.cpu) }},
	{"database processor time of a write", "us", record.Lower, 0, false, func(r churned) float64 { return micros(r.behind) }},
	{"lag after the acknowledgement, p50", "ms", record.Lower, 0, true, func(r churned) float64 { return millis(r.lag50) }},
	{"lag after the acknowledgement, p99", "ms", record.Lower, 0.1, true, func(r churned) float64 { return millis(r.lag99) }},
	{"events lost", "", record.Lower, 0, true, func(r churned) float64 { return float64(r.lost) }},
	{"events twice", "", record.Lower, 0, true, func(r churned) float64 { return float64(r.twice) }},
	{"watches ended", "", record.Lower, 0, true, func(r churned) float64 { return float64(r.ended) }},
	{"writes failed", "", record.Lower, 0, false, func(r churned) float64 { return float64(r.failed) }},
	{"peak memory", "MB", record.Lower, 0, false, func(r churned) float64 { return r.peak }},
}

func micros(d time.Duration) float64 { return float64(d.Nanoseconds()) / 1000 }

// compareChurn records the figures of all contestants, and the ratios of those that were measured in the same rounds.
func (e *env) compareChurn(l churnLoad, all []*contestant, clients int) {
	for _, m := range churnMeasures {
		if m.events && l.watchers == 0 {
			continue
		}
		for _, c := range all {
			if len(c.got[clients]) == 0 {
				continue
			}
			f := record.Of(fmt.Sprintf("%s, %d clients", l.name, clients), m.name, m.unit, m.better, churnValues(c.got[clients], m.of)...)
			f.Server = c.name
			e.figure(f)
		}
	}
	for _, m := range churnMeasures {
		for _, c := range all {
			for _, o := range all {
				goal := m.goal
				switch {
				case m.events && l.watchers == 0 || c.other != nil:
					goal = 0
				case o.other == nil:
					goal = 0
					if m.name == "writes" && c.bin == o.bin && o.store == "SQLite" && c.store == "PostgreSQL" {
						goal = 0.8
						if c.two {
							goal = 1
						}
					}
				}
				if goal == 0 {
					continue
				}
				if ratios := churnRatios(c.got[clients], o.got[clients], m.of); len(ratios) > 0 {
					e.promised(record.Of(fmt.Sprintf("%s, %d clients, %s by %s", l.name, clients, c.name, o.name), m.name, "times", m.better, ratios...), goal)
				}
			}
		}
	}
}

// churnRatios returns the ratio in each round; none if a server did not take part, or a value is 0.
func churnRatios(a, b []churned, value func(churned) float64) (ratios []float64) {
	mine, theirs := churnValues(a, value), churnValues(b, value)
	if len(mine) != len(theirs) || slices.Contains(theirs, 0) {
		return nil
	}
	for i := range mine {
		ratios = append(ratios, mine[i]/theirs[i])
	}
	return ratios
}

func churnValues(of []churned, value func(churned) float64) (all []float64) {
	for _, r := range of {
		all = append(all, value(r))
	}
	return all
}
