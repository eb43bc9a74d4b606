// Command bench starts the real binary and measures it as its users see it: how soon it is ready, how much
// memory it holds, how many requests it answers. Next to the reads it measures a plain Go TLS server that
// sends the same bytes from memory: the ratio is the distance from the limit.
//
//	go run ./e2e/bench [-store URL] [-seconds N] [-pairs N] [-objects N] [-history N] [-kinds N] [-seed FILE] [-run REGEXP] [-only REGEXP] [-http2]
//	go run ./e2e/bench -scale [-objects N] [-seed FILE] [-number N] [-churn N]
//	go run ./e2e/bench -against [NAME@]URL[=TOKEN or kubeconfig],...
//	go run ./e2e/bench -run 'churn|writers' [-store postgres] [-builds NAME=BINARY,...] [-against ...]
//	go run ./e2e/bench ... [-record FILE] [-plots DIR]; go run ./e2e/bench -plots DIR FILE...
//
// "cpu" in its output is the processor time of the server for one request, after the plus sign that of the
// clients, and then that of a separate database; "alone" is the rate that these would give if nothing else
// ran on the machine.
//
// -store postgres starts a PostgreSQL server for the time of the run, with a new database for each
// measurement.
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
	kinds   int
	feed    time.Duration
	churn   float64
	only    *regexp.Regexp
	seed    string
	number  uint64
	builds  string
	against []*target
	entries []string // of against, as the flag says them
	out     *tabwriter.Writer
	kept    record.Run // the measurements so far
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
	{"heartbeats", measureHeartbeats},
	{"create", measureCreate},
	{"get", measureGet},
	{"lists", measureLists},
	{"status", measureStatus},
	{"leases", measureLeases},
	{"cores", measureCores},
	{"apply", measureApply},
	{"fanout", measureFanOut},
	{"watchers", measureWatchers},
	{"manywatches", measureManyWatches},
	{"churn", measureChurn},
	{"writers", measureWriters},
	{"crds", measureCRDs},
	{"compaction", measureCompaction},
	{"past", measurePast},
	{"elephant", measureElephant},
	{"large", measureLarge},
	{"garbage", measureGarbage},
	{"backup", measureBackup},
	{"import", measureImport},
}

// settings are the flags that determine the measurements, apart from those of an env.
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
	flag.IntVar(&e.pairs, "pairs", 3, "how often mice are measured, alone and beside elephants, and each thing of -scale and -against; medians are told")
	flag.IntVar(&e.objects, "objects", 10000, "how many objects compaction works on, how many dependents the garbage collector deletes, and, by default 1000000, how many Pods -scale has")
	flag.IntVar(&e.history, "history", 10, "how many past versions each of them has; of how many nodes a week is weighed")
	flag.IntVar(&e.kinds, "kinds", 200, "how many CustomResourceDefinitions crds installs")
	flag.DurationVar(&e.feed, "feed", 6*time.Microsecond, "what the feed and the cache take for a row, as BenchmarkFeed of sqlstore and BenchmarkApplyGroup of server/cache tell, for cores")
	flag.Float64Var(&e.churn, "churn", 2, "how often each Pod is written in the month that -scale simulates")
	flag.StringVar(&e.seed, "seed", "", "file that is made if it does not exist, and used again: the SQLite file that compaction starts from, as -objects and -history say then; the backup that -scale restores")
	flag.Uint64Var(&e.number, "number", 1, "what the names, addresses and digests of the cluster of -scale follow from")
	flag.StringVar(&o.run, "run", "", "which measurements to run")
	flag.StringVar(&o.only, "only", "", "which of the lists, of the ways of fan-out, watchers and manywatches, of \"fairness true\" and \"fairness false\", of \"merge patch\", \"update\" and \"apply\" of large, of \"N clients, SERVER\" of churn and writers, of the parts of -scale, and of the loads of -against, to measure")
	flag.BoolVar(&o.scale, "scale", false, "build a cluster of -objects Pods and measure what that costs, instead of everything else")
	flag.StringVar(&o.against, "against", "", "other servers, driven with the same load in turns, instead of everything else, unless -run chooses nothing but churn and writers: [NAME@]URL[=TOKEN or kubeconfig],...")
	flag.StringVar(&e.builds, "builds", "", "other binaries of rowlock that churn, writers and the part cache of -scale measure in turns with this one: NAME=BINARY,...")
	flag.StringVar(&o.record, "record", "", "file for the record of the run, as JSON")
	flag.StringVar(&o.plots, "plots", "", "folder for plots of the run, as SVG; of the records that are named behind all flags, if there are any, without a run")
	flag.StringVar(&o.called, "name", "", "what the record is called in plots that show several")
	flag.StringVar(&profiles.dir, "profiles", "", "folder for profiles of the server, one set a measurement")
	flag.BoolVar(&overHTTP2, "http2", false, "clients speak HTTP/2 instead of HTTP/1.1")
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

// main is a crowd of clients for another process of this program, or draws records, or runs.
func (e *env) main(o settings) (err error) {
	switch {
	case flag.Arg(0) == herdArgument:
		return beHerd(flag.Arg(1), flag.Arg(2))
	case flag.Arg(0) == followersArgument:
		return beFollowers(flag.Arg(1), flag.Arg(2), flag.Arg(3))
	case flag.Arg(0) == informersArgument:
		return beInformers(flag.Args()[1:])
	case flag.Arg(0) == churnWatchArgument:
		return beChurnWatchers()
	case flag.NArg() > 0:
		return redraw(o.plots, flag.Args())
	case o.scale && o.against != "":
		return errors.New("-scale and -against are two runs")
	case o.scale && e.objects < 200:
		return fmt.Errorf("-objects: %d Pods are less than a namespace has", e.objects)
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

// chosen are the measurements of a run.
func (o settings) chosen(which *regexp.Regexp) []measurement {
	if o.scale {
		return []measurement{{"scale", measureScale}}
	}
	all := slices.DeleteFunc(slices.Clone(measurements), func(m measurement) bool { return !which.MatchString(m.name) })
	others := slices.ContainsFunc(all, func(m measurement) bool { return m.name != "churn" && m.name != "writers" })
	if o.against != "" && (others || len(all) == 0) {
		return []measurement{{"against", measureAgainst}}
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
