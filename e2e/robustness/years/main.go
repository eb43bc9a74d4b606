//go:build linux

// Command years compresses a month of a cluster into minutes, and judges whether anything grows. Its report gives the share of a month.
//
//	go run ./e2e/robustness/years -minutes 60 -store postgres
//
// It starts a server whose retentions are short, with revisions that pass 2^53 on the way, and replaces what a cluster of
// 1,000 nodes replaces: Leases, statuses, Pods, Events, tokens, certificates, namespaces, definitions, watches, connections.
// Every few seconds it samples memory, files, rows, descriptors, goroutines, metrics and latencies. Its exit code is 0 if all
// stays flat, 1 if something grows or an answer is wrong, and 2 if it could not run. report.html and report.json in the folder
// of -out have the samples.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// settings are the flags.
type settings struct {
	minutes float64
	store   string
	nodes   int
	pods    int
	rate    float64
	every   time.Duration
	seed    uint64
	binary  string
	out     string
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := Main(ctx, os.Args[1:], os.Stdout, os.Stderr)
	stop()
	harness.Cleanup()
	os.Exit(code)
}

// Main runs the program, and returns its exit code.
func Main(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	var s settings
	f := flag.NewFlagSet("years", flag.ContinueOnError)
	f.SetOutput(stderr)
	f.Float64Var(&s.minutes, "minutes", 60, "how long to run, besides start and judgement")
	f.StringVar(&s.store, "store", "sqlite", "sqlite or postgres")
	f.IntVar(&s.nodes, "nodes", 1000, "how many nodes")
	f.IntVar(&s.pods, "pods", 2000, "how many Pods live at a time")
	f.Float64Var(&s.rate, "rate", 800, "the most requests a second, besides watches")
	f.DurationVar(&s.every, "every", 2*time.Second, "the interval between samples")
	f.Uint64Var(&s.seed, "seed", 0, "of the requests (default: a new one)")
	f.StringVar(&s.binary, "binary", "", "the rowlock under test (default: built from this module)")
	f.StringVar(&s.out, "out", "", "folder for the report (default: a temporary one)")
	if err := f.Parse(args); errors.Is(err, flag.ErrHelp) {
		return 0
	} else if err != nil {
		return 2
	}
	if f.NArg() > 0 || s.minutes <= 0 || s.nodes < 1 || s.pods < 1 || s.rate <= 0 || s.every <= 0 {
		fmt.Fprintf(stderr, "years: -minutes %g -nodes %d -pods %d -rate %g -every %s %v: want positive numbers and nothing else\n", s.minutes, s.nodes, s.pods, s.rate, s.every, f.Args())
		return 2
	}
	if s.seed == 0 {
		s.seed = rand.Uint64N(1_000_000_000)
	}
	faults, err := s.run(ctx, stdout)
	switch {
	case err != nil:
		fmt.Fprintln(stderr, "years:", err)
		return 2
	case faults > 0:
		return 1
	}
	return 0
}
