package main

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// held holds the figures of the cache of one build.
type held struct {
	build  build
	values map[string][]float64 // by figure
}

// cacheFigures are the figures of scaleCache, in their order.
var cacheFigures = []struct {
	name, unit string
	better     record.Better
}{
	{"start to ready, cold", "s", record.Lower},
	{"start to ready, warm", "s", record.Lower},
	{"after a start, resident", "MB", record.Lower},
	{"after a start, anonymous", "MB", record.Lower},
	{"after a start, by stored bytes", "times", record.Lower},
	{"gets of random Pods, 1 client, p50", "ms", record.Lower},
	{"gets of random Pods, 1 client, p99", "ms", record.Lower},
	{"pages of 500, 1 client, p50", "ms", record.Lower},
	{"pages of 500, 1 client, p99", "ms", record.Lower},
	{"all Pods as JSON", "MB/s", record.Higher},
	{"all Pods as Protobuf", "MB/s", record.Higher},
	{"all Pods as JSON, memory on top meanwhile", "MB", record.Lower},
	{"after lists, resident", "MB", record.Lower},
	{"after lists, anonymous", "MB", record.Lower},
	{"after lists, by stored bytes", "times", record.Lower},
}

// scaleCache compares this build and those of -builds, in turns: their memory with the same cluster, each with its own cache
// file, and the cost of reads from that file. It prints the largest parts of the heap.
func scaleCache(s *scaled) error {
	list, err := s.ownBuilds()
	if err != nil {
		return err
	}
	var all []*held
	for _, b := range list {
		all = append(all, &held{b, map[string][]float64{}})
		if err := s.fileOf(b); err != nil {
			return fmt.Errorf("%s: %w", b.name, err)
		}
	}
	for range max(1, s.pairs) {
		for _, h := range all {
			if err := h.measure(s); err != nil {
				return fmt.Errorf("%s: %w", h.build.name, err)
			}
		}
	}
	for _, h := range all {
		for _, f := range cacheFigures {
			of := record.Of("cache", f.name, f.unit, f.better, h.values[f.name]...)
			of.Server = h.build.name
			if f.unit == "times" {
				of.Goal = 0.12
			}
			s.figure(of)
		}
	}
	return s.start(s.ctx)
}

// fileOf makes a build write its cache file: when it stops, or after a minute if writing takes longer than a shutdown may.
func (s *scaled) fileOf(b build) error {
	if err := s.startBuild(b); err != nil {
		return err
	}
	if err := s.stop(); err != nil {
		return err
	}
	if _, err := os.Stat(s.cacheFileOf(b)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := s.startBuild(b); err != nil {
		return err
	}
	for late := until(scalePatience); ; time.Sleep(time.Second) {
		if _, err := os.Stat(s.cacheFileOf(b)); !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if late() {
			return errors.New("no cache file was written")
		}
	}
}

// startBuild starts a server of a build on the database, in place of the last one, with its own cache file.
func (s *scaled) startBuild(b build) error {
	if s.server != nil {
		if err := s.stop(); err != nil {
			return err
		}
	}
	o := s.options(0, "--cache-file="+s.cacheFileOf(b))
	if o.Binary = b.path; profiles.dir == "" {
		o.Args = append(o.Args, "--profiling")
	}
	var err error
	s.server, err = harness.Start(s.ctx, o)
	return err
}

func (s *scaled) cacheFileOf(b build) string { return filepath.Join(s.dir, "cache-"+b.name) }

func (h *held) add(name string, value float64) { h.values[name] = append(h.values[name], value) }

func (h *held) addMemory(s *scaled, when string) error {
	m, err := calm(s.server.Pid())
	h.add(when+", resident", m.rss)
	h.add(when+", anonymous", m.anonymous)
	h.add(when+", by stored bytes", m.rss/s.stored)
	return err
}

func (h *held) measure(s *scaled) error {
	for _, variant := range []string{"cold", "warm"} {
		if s.server != nil {
			if err := s.stop(); err != nil {
				return err
			}
		}
		if variant == "cold" {
			if err := s.forget(); err != nil {
				return err
			}
			if err := forgetFile(s.cacheFileOf(h.build)); err != nil {
				return err
			}
		}
		began := time.Now()
		if err := s.startBuild(h.build); err != nil {
			return err
		}
		h.add("start to ready, "+variant, time.Since(began).Seconds())
	}
	if err := h.addMemory(s, "after a start"); err != nil {
		return err
	}
	if err := s.heap(h.build.name + " after a start"); err != nil {
		return err
	}
	if err := h.reads(s); err != nil {
		return err
	}
	if err := h.addMemory(s, "after lists"); err != nil {
		return err
	}
	return s.heap(h.build.name + " after lists")
}

// reads measures gets of objects that were not read before, pages, and whole lists.
func (h *held) reads(s *scaled) error {
	r := rand.New(rand.NewPCG(1, 2))
	get, err := drive(s.server, 1, s.seconds, func(c *client, _, _ int) (int64, error) {
		n := r.IntN(s.shape.Pods)
		path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", s.shape.Namespace(s.shape.NamespaceOf(n)), s.shape.PodName(n))
		return c.do(http.MethodGet, path, "", "", nil)
	})
	if err != nil {
		return err
	}
	h.add("gets of random Pods, 1 client, p50", p50(get))
	h.add("gets of random Pods, 1 client, p99", p99(get))
	var w walker
	pages, err := drive(s.server, 1, s.seconds, func(c *client, _, _ int) (int64, error) { return 0, w.step(c) })
	if err != nil {
		return err
	}
	h.add("pages of 500, 1 client, p50", p50(pages))
	h.add("pages of 500, 1 client, p99", p99(pages))
	for _, variant := range []struct{ name, accept string }{{"JSON", ""}, {"Protobuf", protobufType}} {
		before := resident(s.server.Pid())
		_, took, size, most, err := s.whole(variant.accept, false)
		if err != nil {
			return err
		}
		h.add("all Pods as "+variant.name, size/took.Seconds())
		if variant.accept == "" {
			h.add("all Pods as JSON, memory on top meanwhile", most-before)
		}
	}
	return nil
}

// heap prints the functions that allocated the live heap of the server, the largest first.
func (s *scaled) heap(when string) error {
	old := profiles.dir
	defer func() { profiles.dir = old }()
	if profiles.dir == "" {
		profiles.dir = s.dir
	}
	name := "heap-" + strings.ReplaceAll(when, " ", "-") + ".pb.gz"
	if err := fetch(s.server, "heap?gc=1", name); err != nil {
		return err
	}
	cmd := exec.CommandContext(s.ctx, "go", "tool", "pprof", "-sample_index=inuse_space", "-top", "-nodecount=24", filepath.Join(profiles.dir, name))
	cmd.Env = append(os.Environ(), "PPROF_TMPDIR="+s.dir)
	out, err := cmd.CombinedOutput()
	if err != nil {
		return fmt.Errorf("go tool pprof: %w\n%s", err, out)
	}
	c, err := newClient(s.server)
	if err != nil {
		return err
	}
	text, err := c.read("/debug/pprof/heap?debug=1")
	if err != nil {
		return err
	}
	_, stats, _ := strings.Cut(string(text), "# runtime.MemStats\n")
	stats, _, _ = strings.Cut(stats, "# PauseNs")
	fmt.Fprintf(s.out, "heap, %s:\n%s\n%s\n", when, out, stats)
	return s.out.Flush()
}
