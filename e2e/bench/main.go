// Command bench starts the real binary and measures what its users feel: how soon
// it is ready, how much memory it holds, how many requests it answers. Beside the
// reads it measures a plain Go TLS server that sends the same bytes from memory:
// the ratio is the distance from the limit.
//
//	go run ./e2e/bench [-store URL] [-seconds N] [-run REGEXP]
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"regexp"
	"text/tabwriter"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// env is what a measurement works with.
type env struct {
	ctx     context.Context
	store   string
	seconds time.Duration
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
	{"create", measureCreate},
	{"get", measureGet},
	{"lists", measureLists},
	{"status", measureStatus},
	{"leases", measureLeases},
	{"fanout", measureFanOut},
}

func main() {
	store := flag.String("store", "", "--store of the servers; empty: SQLite in a new folder")
	seconds := flag.Int("seconds", 5, "how long each rate is measured")
	only := flag.String("run", "", "which measurements to run")
	flag.Parse()
	re, err := regexp.Compile(*only)
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench: -run:", err)
		os.Exit(1)
	}
	e := &env{ctx: context.Background(), store: *store, seconds: time.Duration(*seconds) * time.Second, out: tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)}
	defer harness.Cleanup()
	for _, m := range measurements {
		if !re.MatchString(m.name) {
			continue
		}
		if err := m.run(e); err != nil {
			fmt.Fprintf(os.Stderr, "bench: %s: %v\n", m.name, err)
			os.Exit(1)
		}
	}
}
