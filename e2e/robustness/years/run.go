//go:build linux

package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/years/plot"
)

// large is the first number from which on floating-point numbers lose units; revisions pass it on the way.
const large = int64(1) << 53

// auditPolicy records every request.
const auditPolicy = "apiVersion: audit.k8s.io/v1\nkind: Policy\nrules: [{level: Metadata}]\n"

// times are the server's, which are short so that the run is many of them.
type times struct {
	retention, log, events time.Duration
}

func (s *settings) times() times {
	long := time.Duration(s.minutes * float64(time.Minute))
	retention := min(max(long/30, 4*time.Second), 20*time.Second).Round(time.Second)
	return times{retention: retention, log: retention / 2, events: retention * 3 / 2}
}

// eventsKept is the time for which a server keeps recent events in memory, if there are not too many of them; no flag changes it. Until
// then, its memory grows.
const eventsKept = 5 * time.Minute

// settle returns for how long samples are not judged: a quarter of the run, or more so that the server has kept events for as
// long as it does.
func (s *settings) settle() time.Duration {
	long := time.Duration(s.minutes * float64(time.Minute))
	return max(long/4, min(eventsKept+30*time.Second, long*6/10))
}

// filling returns by how much memory may grow after that, in a run that is too short, while the server still collects events: 2
// KB for each request.
func (s *settings) filling() float64 {
	long := time.Duration(s.minutes * float64(time.Minute))
	if s.settle() > eventsKept {
		return 0
	}
	return s.rate * 2048 * (min(long, eventsKept) - s.settle()).Seconds()
}

// run executes the run that the flags describe, and returns the number of faults.
func (s *settings) run(ctx context.Context, out io.Writer) (faults int, err error) {
	if s.out == "" {
		if s.out, err = os.MkdirTemp("", "years-"); err != nil {
			return 0, err
		}
	} else if err := os.MkdirAll(s.out, 0o755); err != nil {
		return 0, err
	}
	if s.binary == "" {
		if s.binary, err = harness.Binary(); err != nil {
			return 0, err
		}
	}
	dir, err := os.MkdirTemp("", "years-data-")
	if err != nil {
		return 0, err
	}
	defer os.RemoveAll(dir)
	long := time.Duration(s.minutes * float64(time.Minute))
	begin := large - int64(s.rate*long.Seconds()/4)
	db, err := openStore(ctx, s.store, s.binary, dir, begin)
	if err != nil {
		return 0, err
	}
	defer db.close()
	policy := filepath.Join(dir, "audit.yaml")
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return 0, err
	}
	t := s.times()
	fmt.Fprintf(out, "seed %d: %.1f minutes on %s from revision %d, history of %s, log of %s, Events for %s\n", s.seed, s.minutes, s.store, begin, t.retention, t.log, t.events)
	server, err := harness.Start(ctx, harness.Options{Store: db.url, Binary: s.binary, DataDir: filepath.Join(dir, "data"), Args: []string{
		"--history-retention=" + t.retention.String(), "--history-log-retention=" + t.log.String(), "--event-ttl=" + t.events.String(),
		"--cache-file-from=1", "--audit-policy-file=" + policy, "--audit-log-path=" + filepath.Join(dir, "audit", "audit.log"), "--audit-log-maxsize=2", "--audit-log-maxbackup=3",
		"--audit-log-mode=batch",
	}})
	if err != nil {
		return 0, err
	}
	defer server.Kill()
	l, err := newLoad(s, server)
	if err != nil {
		return 0, err
	}
	if err := l.setup(ctx); err != nil {
		return 0, err
	}
	began := time.Now()
	sampler := &sampler{load: l, db: db, server: server, audit: filepath.Join(dir, "audit"), began: began, rate: s.rate, filling: s.filling()}
	running, stop := context.WithTimeout(ctx, long)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() { l.run(running) })
	wg.Go(func() { sampler.run(running, s.every) })
	wg.Wait()
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	end, err := l.revision(ctx)
	if err != nil {
		sampler.failed = append(sampler.failed, err.Error()+"\n"+tail(server.Log()))
	}
	r := &plot.Report{
		Command: s.command(), Store: s.store, Version: s.version(ctx), Began: began.UTC(), Took: time.Since(began), Settle: s.settle().Seconds(),
		Measures: sampler.list(), Requests: l.requests(), Turnover: s.turnover(l, sampler), First: begin, Last: end,
	}
	r.Wrong = append(l.faults(), sampler.faults()...)
	if end <= large || begin >= large {
		r.Wrong = append(r.Wrong, fmt.Sprintf("the revisions, %d to %d, do not pass 2^53: the run was too slow", begin, end))
	}
	r.Wrong = append(r.Wrong, s.afterwards(ctx, server, l, db)...)
	r.Judge()
	for name, write := range map[string]func(io.Writer) error{"report.html": r.WriteHTML, "report.json": r.WriteJSON} {
		if err := writeFile(filepath.Join(s.out, name), write); err != nil {
			return 0, fmt.Errorf("writing the report: %w", err)
		}
	}
	fmt.Fprintf(out, "%sthe report is %s\n", r.Summary(), filepath.Join(s.out, "report.html"))
	return r.Faults(), nil
}

// tail returns the end of a log.
func tail(log string) string { return log[max(0, len(log)-4000):] }

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.Create(path)
	if err != nil {
		return err
	}
	if err := write(f); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}

// afterwards ends the server, verifies the store, and starts the server again. It returns the problems found.
func (s *settings) afterwards(ctx context.Context, server *harness.Server, l *load, db *store) (wrong []string) {
	before, err := l.names(ctx, nodesPath)
	if err != nil {
		return append(wrong, err.Error())
	}
	if err := server.Stop(); err != nil {
		wrong = append(wrong, "SIGTERM: "+err.Error())
	}
	if out, err := exec.CommandContext(ctx, s.binary, "store", "verify", "--store", db.url).CombinedOutput(); err != nil {
		wrong = append(wrong, fmt.Sprintf("rowlock store verify: %v\n%s", err, out))
	}
	again, err := server.Again(ctx)
	if err != nil {
		return append(wrong, "the second start: "+err.Error())
	}
	defer again.Kill()
	if after, err := l.names(ctx, nodesPath); err != nil {
		wrong = append(wrong, "after the second start: "+err.Error())
	} else if after != before {
		wrong = append(wrong, "a server that starts again shows other nodes, or other resource versions")
	}
	return wrong
}

func (s *settings) command() string {
	return fmt.Sprintf("go run ./e2e/robustness/years -minutes %g -store %s -nodes %d -pods %d -rate %g -seed %d", s.minutes, s.store, s.nodes, s.pods, s.rate, s.seed)
}

func (s *settings) version(ctx context.Context) string {
	out, err := exec.CommandContext(ctx, s.binary, "version").Output()
	if err != nil {
		return "rowlock"
	}
	line, _, _ := strings.Cut(string(out), "\n")
	return line
}

// turnover compares the run with 30 days of a cluster: a Lease is renewed every 10 seconds, a status written every five minutes,
// a Pod lives for a day, its token for an hour, a node's certificate for a day; history is kept for five minutes, an Event for an hour.
func (s *settings) turnover(l *load, sampler *sampler) []plot.Turnover {
	const month = 30 * 24 * time.Hour
	long, t := time.Duration(s.minutes*float64(time.Minute)), s.times()
	each := func(name, of string, n int, every time.Duration) plot.Turnover {
		return plot.Turnover{What: of, Month: float64(month / every), Run: float64(l.count(name)) / float64(n)}
	}
	passed := func(what string, usual, here time.Duration) plot.Turnover {
		return plot.Turnover{What: what, Month: float64(month / usual), Run: long.Seconds() / here.Seconds()}
	}
	return []plot.Turnover{
		{What: "time", Month: month.Minutes(), Run: s.minutes},
		passed("times that history was kept and went", 5*time.Minute, t.retention),
		passed("times that Events expired", time.Hour, t.events),
		each("lease", "renewals of each Lease", s.nodes, 10*time.Second),
		each("node status", "statuses of each node", s.nodes, 5*time.Minute),
		each("pod deleted", "lives of each Pod", s.pods, 24*time.Hour),
		each("token", "tokens of each Pod", s.pods, time.Hour),
		each("certificate", "certificates of each node", s.nodes, 24*time.Hour),
		{What: "Events written", Run: float64(l.count("event"))},
		{What: "namespaces created and deleted, with what was in them", Run: float64(l.count("namespace"))},
		{What: "definitions created and deleted, with their objects", Run: float64(l.count("definition"))},
		{What: "watches", Run: float64(l.count("watch"))},
		{What: "cache files written", Run: float64(sampler.cacheFiles)},
		{What: "audit logs begun", Run: float64(sampler.auditLogs)},
	}
}

func parse(text string) int64 {
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return -1
	}
	return n
}
