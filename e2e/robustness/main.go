//go:build unix

// Robustness starts servers, databases and proxies, makes traffic, makes faults on a schedule drawn from a seed, and holds the
// answers that clients got against the promises of the server.
//
//	go run ./e2e/robustness -minutes 10 -store postgres -servers 3 -faults all -seed 1
//
// It exits with 0 if it found no violation, 1 if it found one, and 2 if it could not run.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"k8s.io/klog/v2"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/disk"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	if len(os.Args) == 4 && os.Args[1] == serveDisk {
		// The process that started this one ends it, also when both are interrupted.
		if err := disk.Serve(os.Args[2], os.Args[3], os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(2)
		}
		return
	}
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	harness.Cleanup()
	os.Exit(code)
}

// serveDisk is the first argument of the process that serves the disk of a run.
const serveDisk = "serve-disk"

// Defaults of -round, -pace and -pause.
const (
	defaultRound = 40 * time.Second
	defaultPace  = 60 * time.Millisecond
	defaultPause = time.Second
)

// settings are the flags.
type settings struct {
	minutes float64
	store   string
	servers int
	faults  string
	seed    uint64
	binary  string
	other   string
	round   time.Duration
	pace    time.Duration
	pause   time.Duration
	fleet   int
	release string
	out     string
	judge   string
	keep    bool
	stop    bool

	planted plantedFlag
	ways    string
}

// Main runs the program, and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	f := flag.NewFlagSet("robustness", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Float64Var(&s.minutes, "minutes", 10, "how long to run, besides start and judgement")
	f.StringVar(&s.store, "store", "sqlite", "sqlite or postgres")
	f.IntVar(&s.servers, "servers", 0, "how many servers (default: 1 on sqlite, 3 on postgres)")
	f.StringVar(&s.faults, "faults", "all", "all, none, names with commas, or help")
	f.Uint64Var(&s.seed, "seed", 0, "of faults and traffic (default: a new one)")
	f.StringVar(&s.binary, "binary", "", "the rowlock under test (default: built from this module)")
	f.StringVar(&s.other, "other-binary", "", "another build, which restarts use in turn, as an upgrade does")
	f.DurationVar(&s.round, "round", defaultRound, "after how long the traffic pauses to be judged")
	f.DurationVar(&s.pace, "pace", defaultPace, "how long each of 30 clients rests between requests, on average")
	f.DurationVar(&s.pause, "pause", defaultPause, "how long no fault is made between two, on average")
	f.IntVar(&s.fleet, "fleet", 0, "how many nodes renew Leases and read those of all, without a rest between requests: more operations, for long runs")
	f.StringVar(&s.release, "release", drawn, "the release that servers are (--emulated-version), from "+cluster.Oldest.String()+" to "+cluster.Newest.String()+"; drawn: each round has another one, and begins with a rolling upgrade")
	f.StringVar(&s.out, "out", "", "folder for the report, and for histories with violations (default: a temporary one)")
	f.StringVar(&s.judge, "judge", "", "judge a history in a file again, and do nothing else")
	f.BoolVar(&s.stop, "stop", false, "end with the round that has the first violation")
	f.BoolVar(&s.keep, "keep", false, "keep histories without violations, and data, in the folder of -out")
	f.Var(&s.planted, "planted", "plant known faults in a copy of the module, and see whether they are found: all, or with -planted=NAME,... some; each for -minutes at most")
	f.StringVar(&s.ways, "ways", "", "how to look for planted faults, in order (default: simulation,sqlite,postgres); with -keep in all ways, and otherwise until it is found")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if f.NArg() > 0 {
		fmt.Fprintf(stderr, "robustness: unexpected %q; -help lists the flags\n", f.Arg(0))
		return 2
	}
	if s.planted.set {
		return s.plant(ctx, stdout, stderr)
	}
	klog.LogToStderr(false) // client-go logs each refusal
	klog.SetOutput(io.Discard)
	violations, err := s.run(ctx, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "robustness:", err)
		return 2
	case violations > 0:
		return 1
	}
	return 0
}
