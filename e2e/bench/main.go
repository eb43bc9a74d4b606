// Command bench starts the real binary and measures what its users feel: how soon
// it is ready, how much memory it holds, how many requests it answers. Beside the
// reads it measures a plain Go TLS server that sends the same bytes from memory:
// the ratio is the distance from the limit.
//
//	go run ./e2e/bench [-store URL] [-seconds N] [-pairs N] [-objects N] [-history N] [-seed FILE] [-run REGEXP] [-only REGEXP] [-http2]
//
// "cpu" in its output is the processor time of the server for one request, and after
// the plus sign that of the clients; "alone" is the rate that these would give if
// nothing else ran on the machine.
//
// -store postgres starts a PostgreSQL server for the time of the run, with a new
// database for each measurement.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// env is what a measurement works with.
type env struct {
	ctx     context.Context
	store   string
	pg      *pgtest.Server // nil: store says it
	dbs     int
	seconds time.Duration
	pairs   int
	objects int
	history int
	only    *regexp.Regexp
	seed    string
	out     *tabwriter.Writer
}

func (e *env) report(name, format string, args ...any) {
	fmt.Fprintf(e.out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	e.out.Flush()
}

// measurement is one thing measured.
type measurement struct {
	name string
	run  func(*env) error
}

var measurements = []measurement{
	{"start", measureStart},
	{"stop", measureStop},
	{"history", measureHistory},
	{"create", measureCreate},
	{"get", measureGet},
	{"lists", measureLists},
	{"status", measureStatus},
	{"leases", measureLeases},
	{"fanout", measureFanOut},
	{"watchers", measureWatchers},
	{"compaction", measureCompaction},
	{"past", measurePast},
	{"elephant", measureElephant},
	{"garbage", measureGarbage},
	{"backup", measureBackup},
	{"import", measureImport},
}

func main() {
	store := flag.String("store", "", "--store of the servers; empty: SQLite in a new folder")
	seconds := flag.Int("seconds", 5, "how long each rate is measured")
	pairs := flag.Int("pairs", 3, "how often mice are measured, alone and beside elephants; medians are told")
	objects := flag.Int("objects", 10000, "how many objects compaction works on, and how many dependents the garbage collector deletes")
	history := flag.Int("history", 10, "how many past versions each of them has; of how many nodes a week is weighed")
	kept := flag.String("seed", "", "SQLite file that compaction starts from; made if it does not exist, and as -objects and -history say then")
	only := flag.String("run", "", "which measurements to run")
	among := flag.String("only", "", "which of the lists, of the ways of fan-out and watchers, and of \"fairness true\" and \"fairness false\", to measure")
	flag.StringVar(&profiles.dir, "profiles", "", "folder for profiles of the server, one set a measurement")
	flag.BoolVar(&overHTTP2, "http2", false, "clients speak HTTP/2 instead of HTTP/1.1")
	flag.Parse()
	if flag.Arg(0) == herdArgument {
		if err := beHerd(flag.Arg(1), flag.Arg(2)); err != nil {
			fmt.Fprintln(os.Stderr, "bench:", err)
			os.Exit(1)
		}
		return
	}
	re, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: -run:", err)
		os.Exit(1)
	}
	which, err := regexp.Compile(*among)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: -only:", err)
		os.Exit(1)
	}
	e := &env{ctx: context.Background(), store: *store, seconds: time.Duration(*seconds) * time.Second, pairs: *pairs, objects: *objects, history: *history, only: which, seed: *kept, out: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	os.Exit(e.run(re))
}

func (e *env) run(re *regexp.Regexp) int {
	defer harness.Cleanup()
	if e.store == "postgres" {
		var err error
		if e.pg, err = pgtest.Start(e.ctx, pgtest.Options{Settings: map[string]string{"shared_buffers": "'256MB'", "max_wal_size": "'4GB'"}}); err != nil {
			fmt.Fprintln(os.Stderr, "bench: -store postgres:", err)
			return 1
		}
		defer e.pg.Stop()
	}
	for _, m := range measurements {
		if !re.MatchString(m.name) {
			continue
		}
		if err := m.run(e); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", m.name, err)
			return 1
		}
	}
	return 0
}

// newStore is the --store of a measurement whose files are in dir.
func (e *env) newStore(dir string) (string, error) {
	switch {
	case e.pg != nil:
		e.dbs++
		return e.pg.CreateDB(e.ctx, fmt.Sprintf("bench%d", e.dbs))
	case e.store != "":
		return e.store, nil
	}
	return "sqlite:" + filepath.Join(dir, "rowlock.db"), nil
}
