// Command bench starts the real binary and measures it from outside: time to ready, memory, rates and
// latencies. As the upper bound of reads it measures a plain Go TLS server that sends the same bytes from
// memory.
//
//	go run ./e2e/bench [-store URL] [-seconds N] [-pairs N] [-objects N] [-history N] [-kinds N] [-seed FILE] [-run REGEXP] [-only REGEXP] [-http2]
//	go run ./e2e/bench -scale [-objects N] [-seed FILE] [-number N] [-churn N]
//	go run ./e2e/bench -against [NAME@]URL[=TOKEN or kubeconfig],...
//	go run ./e2e/bench -run 'churn|writers' [-store postgres] [-builds NAME=BINARY,...] [-against ...]
//	go run ./e2e/bench ... [-record FILE] [-plots DIR]; go run ./e2e/bench -plots DIR FILE...
//
// "cpu" in its output is the processor time of one request: of the server, the clients, and a separate
// database. "alone" is the rate that these times allow if nothing else runs on the machine.
//
// -store postgres starts a PostgreSQL server for the run, and creates a database for each measurement.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"text/tabwriter"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
)

// env holds the flags and the results of a run.
type env struct {
	ctx     context.Context
	store   string
	pg      *pgtest.Server // nil without -store postgres
	dbs     int
	seconds time.Duration
	pairs   int
	objects int
	history int
	kinds   int
	feed    time.Duration
	churn   float64
	only    *regexp.Regexp
	seed    string
	number  uint64
	builds  string
	against []*target
	entries []string // the values of the flag -against
	out     *tabwriter.Writer
	record  record.Run // the measurements so far
}

func (e *env) report(name, format string, args ...any) {
	fmt.Fprintf(e.out, "%s\t%s\n", name, fmt.Sprintf(format, args...))
	e.out.Flush()
}

// measurement is an entry of measurements. -run selects it by its name, or by its name before the last release.
type measurement struct {
	name   string
	run    func(*env) error
	former string
}

func (m measurement) matches(run *regexp.Regexp) bool {
	return run.MatchString(m.name) || m.former != "" && run.MatchString(m.former)
}

var measurements = []measurement{
	{name: "start", run: measureStart},
	{name: "stop", run: measureStop},
	{name: "history", run: measureHistory},
	{name: "heartbeats", run: measureHeartbeats},
	{name: "create", run: measureCreate},
	{name: "get", run: measureGet},
	{name: "lists", run: measureLists},
	{name: "status", run: measureStatus},
	{name: "leases", run: measureLeases},
	{name: "cores", run: measureCores},
	{name: "apply", run: measureApply},
	{name: "fanout", run: measureFanOut},
	{name: "watchers", run: measureWatchers},
	{name: "manywatches", run: measureManyWatches},
	{name: "churn", run: measureChurn},
	{name: "writers", run: measureWriters},
	{name: "crds", run: measureCRDs},
	{name: "compaction", run: measureCompaction},
	{name: "past", run: measurePast},
	{name: "fairness", run: measureFairness, former: "elephant"},
	{name: "large", run: measureLarge},
	{name: "garbage", run: measureGarbage},
	{name: "backup", run: measureBackup},
	{name: "import", run: measureImport},
}

// settings are the flags that select the measurements and the output.
type settings struct {
	run, only, against    string
	scale                 bool
	record, plots, called string
}

func main() {
	e := &env{ctx: context.Background(), out: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	var o settings
	flag.StringVar(&e.store, "store", "", "--store of the servers; empty: SQLite in a new folder; postgres: a server for the time of the run")
	seconds := flag.Int("seconds", 5, "how long each rate is measured")
	flag.IntVar(&e.pairs, "pairs", 3, "how often fairness, large, -scale and -against repeat each measurement; they report medians")
	flag.IntVar(&e.objects, "objects", 10000, "number of objects for compaction, of dependents for garbage, and of Pods for -scale (there 1000000 by default)")
	flag.IntVar(&e.history, "history", 10, "number of past versions of each object for compaction; number of nodes for history")
	flag.IntVar(&e.kinds, "kinds", 200, "number of CustomResourceDefinitions for crds")
	flag.DurationVar(&e.feed, "feed", 6*time.Microsecond, "time of the feed and the cache for a row, for cores; BenchmarkFeed of sqlstore and BenchmarkApplyGroup of server/cache measure it")
	flag.Float64Var(&e.churn, "churn", 2, "number of writes of each Pod in the month that -scale simulates")
	flag.StringVar(&e.seed, "seed", "", "file to reuse between runs, created if it does not exist: the SQLite database of compaction (with -objects and -history), or the backup that -scale restores")
	flag.Uint64Var(&e.number, "number", 1, "seed of the names, addresses and digests in the cluster of -scale")
	flag.StringVar(&o.run, "run", "", "regular expression for the names of the measurements to run")
	flag.StringVar(&o.only, "only", "", "regular expression for the cases of a measurement: the lists, the variants of fanout, watchers and manywatches, \"fairness true\" and \"fairness false\", \"merge patch\", \"update\" and \"apply\" of large, \"N clients, SERVER\" of churn and writers, the parts of -scale, the loads of -against")
	flag.BoolVar(&o.scale, "scale", false, "build a cluster of -objects Pods and measure only that")
	flag.StringVar(&o.against, "against", "", "other servers to compare with, under the same load in turns; nothing else is measured unless -run selects only churn and writers: [NAME@]URL[=TOKEN or kubeconfig],...")
	flag.StringVar(&e.builds, "builds", "", "other rowlock binaries to compare with, in turns, in churn, writers and the part cache of -scale: NAME=BINARY,...")
	flag.StringVar(&o.record, "record", "", "file to write the record of the run to, as JSON")
	flag.StringVar(&o.plots, "plots", "", "folder to write plots of the run to, as SVG; with records as arguments, plot these and measure nothing")
	flag.StringVar(&o.called, "name", "", "name of the record in plots of several records")
	flag.StringVar(&profiles.dir, "profiles", "", "folder to write profiles of the server to, one set for each measurement")
	flag.BoolVar(&overHTTP2, "http2", false, "use HTTP/2 instead of HTTP/1.1")
	flag.Parse()
	e.seconds = time.Duration(*seconds) * time.Second
	if o.scale && !given("objects") {
		e.objects = 1_000_000
	}
	if err := e.main(o); err != nil {
		fmt.Fprintln(os.Stderr, "bench:", err)
		os.Exit(1)
	}
}

// given reports whether a flag was on the command line.
func given(name string) (found bool) {
	flag.Visit(func(f *flag.Flag) { found = found || f.Name == name })
	return found
}

// main runs one of the client processes, plots records, or measures.
func (e *env) main(o settings) (err error) {
	switch {
	case flag.Arg(0) == listersArgument:
		return runListers(flag.Arg(1), flag.Arg(2))
	case flag.Arg(0) == followersArgument:
		return runFollowers(flag.Arg(1), flag.Arg(2), flag.Arg(3))
	case flag.Arg(0) == informersArgument:
		return runInformers(flag.Args()[1:])
	case flag.Arg(0) == churnWatchArgument:
		return runChurnWatchers()
	case flag.NArg() > 0:
		return redraw(o.plots, flag.Args())
	case o.scale && o.against != "":
		return errors.New("-scale and -against exclude each other")
	case o.scale && e.objects < 200:
		return fmt.Errorf("-objects: %d is too few for -scale, which needs at least 200", e.objects)
	}
	which, err := regexp.Compile(o.run)
	if err != nil {
		return fmt.Errorf("-run: %w", err)
	}
	if e.only, err = regexp.Compile(o.only); err != nil {
		return fmt.Errorf("-only: %w", err)
	}
	if e.against, e.entries, err = targets(o.against); err != nil {
		return fmt.Errorf("-against: %w", err)
	}
	e.begin(o.called)
	if err := e.run(o.chosen(which)); err != nil {
		return err
	}
	return e.keep(o.record, o.plots)
}

// chosen returns the measurements of a run.
func (o settings) chosen(which *regexp.Regexp) []measurement {
	if o.scale {
		return []measurement{{name: "scale", run: measureScale}}
	}
	all := slices.DeleteFunc(slices.Clone(measurements), func(m measurement) bool { return !m.matches(which) })
	others := slices.ContainsFunc(all, func(m measurement) bool { return m.name != "churn" && m.name != "writers" })
	if o.against != "" && (others || len(all) == 0) {
		return []measurement{{name: "against", run: measureAgainst}}
	}
	return all
}

func (e *env) run(chosen []measurement) error {
	defer harness.Cleanup()
	if e.store == "postgres" {
		var err error
		if e.pg, err = pgtest.Start(e.ctx, pgtest.Options{Settings: map[string]string{"shared_buffers": "'256MB'", "max_wal_size": "'4GB'"}}); err != nil {
			return fmt.Errorf("-store postgres: %w", err)
		}
		defer e.pg.Stop()
	}
	for _, m := range chosen {
		if err := m.run(e); err != nil {
			return fmt.Errorf("%s: %w", m.name, err)
		}
	}
	return e.where()
}

// newStore returns the --store of a server whose files are in dir.
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
