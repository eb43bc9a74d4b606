//go:build unix

// Command failover measures how long clients wait when a part of a rowlock installation dies.
//
//	go run ./e2e/robustness/failover -rounds 100
//
// It starts two servers on a PostgreSQL of its own (and one on SQLite), and PostgreSQL under Patroni, kills their parts again and again while clients
// write, and prints the median, the 99th percentile and the maximum of each measure. Its exit code is 1 if an
// acknowledged write is lost, a watch has to list again after a restart, a request fails in a rolling restart, or a measure
// could not be taken. docs/high-availability.md has its figures.
package main

import (
	"context"
	"flag"
	"fmt"
	"io"
	"iter"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"k8s.io/klog/v2"

	"github.com/rowlock/rowlock/e2e/harness"
)

func main() {
	rounds := flag.Int("rounds", 100, "how often each part is killed")
	only := flag.String("only", "", "measure what matches this regular expression")
	most := flag.Duration("most", time.Hour, "begin no round of a part after this time")
	list := flag.Bool("list", false, "list the parts, and do nothing else")
	watches := flag.Int("watches", 10_000, "watches of the server that gets SIGTERM")
	flag.Parse()
	klog.LogToStderr(false) // client-go reports each watch that ends
	klog.SetOutput(io.Discard)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, &measures{rounds: *rounds, watches: *watches, most: *most}, *only, *list)
	stop()
	harness.Cleanup()
	os.Exit(code)
}

func run(ctx context.Context, m *measures, only string, list bool) (code int) {
	which, err := regexp.Compile(only)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	dir, err := os.MkdirTemp("", "rowlock-failover-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 2
	}
	defer os.RemoveAll(dir)
	m.dir = dir
	for _, part := range []struct {
		name string
		do   func(context.Context) error
	}{
		{"server", m.servers}, {"postgres", m.postgres}, {"promotion", m.promotions},
		{"patroni primary", func(ctx context.Context) error { return m.patroni(ctx, "failovers under Patroni", failovers) }},
		{"patroni standby", func(ctx context.Context) error { return m.patroni(ctx, "losses of a standby and of etcd", losses) }},
		{"resume postgres", func(ctx context.Context) error { return m.resume(ctx, "postgres") }},
		{"resume sqlite", func(ctx context.Context) error { return m.resume(ctx, "sqlite") }},
		{"rolling", m.rolling}, {"sigterm", m.sigterm},
	} {
		if !which.MatchString(part.name) || ctx.Err() != nil {
			continue
		}
		if list {
			fmt.Println(part.name)
			continue
		}
		m.until = time.Now().Add(m.most)
		began := time.Now()
		if err := part.do(ctx); err != nil {
			fmt.Fprintf(os.Stderr, "%s: %v\n", part.name, err)
			code = 1
		}
		fmt.Fprintf(os.Stderr, "%s took %s\n", part.name, time.Since(began).Round(time.Second))
	}
	if !list {
		m.print()
	}
	return code
}

// measures are the measured times, by their names.
type measures struct {
	dir     string
	rounds  int
	watches int
	most    time.Duration // see until
	until   time.Time     // no round of the part begins after this

	mu     sync.Mutex
	order  []string
	times  map[string][]time.Duration
	counts []string
}

func (m *measures) took(what string, d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.times == nil {
		m.times = map[string][]time.Duration{}
	}
	if _, known := m.times[what]; !known {
		m.order = append(m.order, what)
	}
	m.times[what] = append(m.times[what], d)
}

// turns returns the rounds of a part, at least one: one of each so many, as far as they fit into the time.
func (m *measures) turns(of int) iter.Seq[int] {
	return func(yield func(int) bool) {
		for round := range max(1, m.rounds/of) {
			if round > 0 && time.Now().After(m.until) || !yield(round) {
				return
			}
		}
	}
}

func (m *measures) count(format string, args ...any) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts = append(m.counts, fmt.Sprintf(format, args...))
}

func (m *measures) print() {
	w := tabwriter.NewWriter(os.Stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "measure\trounds\tmedian\tp99\tlongest")
	for _, what := range m.order {
		t := slices.Sorted(slices.Values(m.times[what]))
		at := func(share float64) time.Duration {
			return t[min(len(t)-1, int(share*float64(len(t))))].Round(time.Millisecond)
		}
		fmt.Fprintf(w, "%s\t%d\t%s\t%s\t%s\n", what, len(t), at(0.5), at(0.99), t[len(t)-1].Round(time.Millisecond))
	}
	_ = w.Flush() // standard output
	fmt.Println(strings.Join(m.counts, "\n"))
}
