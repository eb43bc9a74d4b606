//go:build linux

package main

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/robustness/years/flat"
	"github.com/rowlock/rowlock/e2e/robustness/years/plot"
)

// sampler samples what must not grow.
type sampler struct {
	load    *load
	db      *store
	server  *harness.Server
	audit   string
	began   time.Time
	rate    float64
	filling float64 // see settings.filling

	measures   map[string]*plot.Measure
	order      []string
	failed     []string
	cacheFiles int
	auditLogs  int
	lastFile   time.Time
	lastAudit  map[string]bool
}

const mb = 1 << 20

// run samples until ctx ends.
func (s *sampler) run(ctx context.Context, every time.Duration) {
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		if err := s.sample(ctx); err != nil && ctx.Err() == nil {
			s.failed = append(s.failed, "a sample: "+err.Error())
		}
	}
}

func (s *sampler) faults() []string { return s.failed[:min(len(s.failed), 10)] }

func (s *sampler) list() (list []*plot.Measure) {
	for _, name := range s.order {
		list = append(list, s.measures[name])
	}
	return list
}

// add adds a value to a measure, which may grow by a share of what it is, and by least.
func (s *sampler) add(name string, unit plot.Unit, share, least, value float64) {
	m := s.measures[name]
	if m == nil {
		m = &plot.Measure{Name: name, Unit: unit, Tolerance: flat.Tolerance{Share: share, Least: least}}
		if s.measures == nil {
			s.measures = map[string]*plot.Measure{}
		}
		s.measures[name], s.order = m, append(s.order, name)
	}
	m.Points = append(m.Points, flat.Point{At: time.Since(s.began).Seconds(), Value: value})
}

func (s *sampler) sample(ctx context.Context) error {
	pid := s.server.Pid()
	s.add("anonymous memory", plot.Bytes, 0.1, 8*mb+s.filling, anonymous(pid))
	if err := s.metrics(ctx); err != nil {
		return err
	}
	entries, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	if err != nil {
		return err
	}
	s.add("descriptors", plot.Count, 0.05, 10, float64(len(entries)))
	threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
	if err != nil {
		return err
	}
	s.add("threads", plot.Count, 0.1, 4, float64(len(threads)))
	sizes, err := s.db.sizes(ctx)
	if err != nil {
		return err
	}
	for _, name := range []string{"database file", "write-ahead log", "database", "memory of database sessions"} {
		if n, known := sizes[name]; known {
			s.add(name, plot.Bytes, 0.1, 4*mb, n)
		}
	}
	rows, err := s.db.rows(ctx)
	if err != nil {
		return err
	}
	s.add("live objects", plot.Count, 0.03, 100, rows["live objects"])
	for _, table := range s.db.tables {
		s.add("rows of "+table, plot.Count, 0.1, max(30, s.rate/2), rows["rows of "+table])
	}
	s.files()
	for _, t := range s.load.latencies() {
		s.add(t.Name+", median", plot.Seconds, 0.5, 0.005, t.Median)
		s.add(t.Name+", 99th percentile", plot.Seconds, 1, 0.1, t.High)
	}
	return nil
}

// files samples the cache file, the audit log and the rest of the data directory.
func (s *sampler) files() {
	cache := s.db.file + "-cache"
	if s.db.pg != nil {
		cache = filepath.Join(s.server.DataDir, "postgres-cache")
	}
	if info, err := os.Stat(cache); err == nil {
		s.add("cache file", plot.Bytes, 0.2, mb, float64(info.Size()))
		if !info.ModTime().Equal(s.lastFile) {
			s.lastFile = info.ModTime()
			s.cacheFiles++
		}
	}
	audit, names := sizeBelow(s.audit)
	s.add("audit logs", plot.Bytes, 0.1, 3*mb, audit)
	now := map[string]bool{}
	for _, name := range names {
		now[name] = true
		if !s.lastAudit[name] {
			s.auditLogs++
		}
	}
	s.lastAudit = now
	data, names := sizeBelow(s.server.DataDir)
	if s.db.pg != nil {
		data -= size(cache)
	}
	s.add("data directory, the rest", plot.Bytes, 0, 64<<10, data)
	s.add("data directory, files", plot.Count, 0, 2, float64(len(names)))
}

// metrics samples the server's own.
func (s *sampler) metrics(ctx context.Context) error {
	code, text, err := s.load.client.send(ctx, http.MethodGet, "/metrics", "", "")
	if err != nil || code != http.StatusOK {
		return fmt.Errorf("/metrics: %d, %w", code, err)
	}
	series, watchers := 0, 0.0
	var head, compacted float64
	for lines := bufio.NewScanner(bytes.NewReader(text)); lines.Scan(); {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		series++
		name, number, _ := strings.Cut(line, " ")
		value, err := strconv.ParseFloat(number, 64)
		if err != nil {
			return fmt.Errorf("/metrics: %q", line)
		}
		switch {
		case name == "go_goroutines":
			s.add("goroutines", plot.Count, 0.05, 25, value)
		case name == "go_memstats_next_gc_bytes":
			s.add("goal of the garbage collector", plot.Bytes, 0.1, 8*mb+2*s.filling, value)
		case name == "rowlock_store_revision":
			head = value
		case name == "rowlock_store_compacted_revision":
			compacted = value
		case strings.HasPrefix(name, "rowlock_watchers{"):
			watchers += value
		}
	}
	s.add("metrics", plot.Count, 0.02, 40, float64(series))
	s.add("watchers", plot.Count, 0.1, 10, watchers)
	s.add("revisions that are not compacted", plot.Count, 0.2, 4*s.rate, head-compacted)
	return nil
}

// anonymous returns the memory of a process that is its own.
func anonymous(pid int) float64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
	for _, line := range strings.Split(string(text), "\n") {
		if rest, ok := strings.CutPrefix(line, "RssAnon:"); ok {
			kb, _ := strconv.ParseFloat(strings.Fields(rest)[0], 64)
			return kb * 1024
		}
	}
	return 0
}
