package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/cores"
	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// groupSizes are the numbers of rows of the measured commits; mostRows is the server's limit.
var groupSizes = []int{1, 2, 4, 8, 16, 32, 64, 128, 256}

const mostRows = 512

// measureCores measures the serial and the parallel part of a create, and simulates servers with more
// processors from both.
func measureCores(e *env) error {
	request, err := e.requestAlone()
	if err != nil {
		return err
	}
	dir, err := os.MkdirTemp("", "rowlock-bench-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	groups, err := e.measureGroups(dir)
	if err != nil {
		return err
	}
	for _, g := range groups {
		e.report(fmt.Sprintf("commit of %d rows", g.Rows), "%v, of which the disk %v; a row %d ns", (g.Processor + g.Disk).Round(time.Microsecond), g.Disk.Round(time.Microsecond), (g.Processor+g.Disk).Nanoseconds()/int64(g.Rows))
	}
	sixteen := groups[4]
	rest := max(request-sixteen.Processor/time.Duration(sixteen.Rows)-e.feed, 0)
	e.report("a create", "%v of the server, of which %v are not in the line; the feed and the cache %v", request, rest, e.feed)
	for _, n := range []int{1, 2, 4, 8, 16, 32} {
		m := cores.Model{Cores: n, Clients: 128 * n, Request: rest, Groups: groups, Most: mostRows, Feed: e.feed}
		r := m.Run(2 * time.Second)
		e.report(fmt.Sprintf("%d cores, %d clients", n, m.Clients), "%.0f/s   %.0f rows a commit   processors %.0f%%   commit %.0f%%   feed %.0f%%   answer %v", r.Rate, r.Rows, 100*r.Busy, 100*r.Commit, 100*r.Feeding, r.Latency.Round(10*time.Microsecond))
		if n == 32 {
			e.report("without end of cores", "%.0f/s", m.Limit())
		}
	}
	return nil
}

// requestAlone returns the server's processor time for a create, without that of a separate database.
func (e *env) requestAlone() (time.Duration, error) {
	s, stop, err := e.start()
	if err != nil {
		return 0, err
	}
	defer stop()
	return e.createTime(s)
}

func (e *env) createTime(s *harness.Server) (time.Duration, error) {
	r, err := drive(s, 32, e.seconds, func(c *client, w, i int) (int64, error) {
		return c.do("POST", configMaps, "application/json", "", configMap(fmt.Sprintf("w%d-%d", w, i), 1000))
	})
	if err == nil {
		e.report("create 1 KB ConfigMaps, 32 clients", "%v", r)
	}
	return r.cpu, err
}

// measureGroups measures, in turns, commits of groups with the driver alone, and writes with fsync of as many
// bytes in the same folder.
func (e *env) measureGroups(dir string) ([]cores.Group, error) {
	store, err := e.newStore(dir)
	if err != nil {
		return nil, err
	}
	var d sqlstore.Driver
	if path, ok := strings.CutPrefix(store, "sqlite:"); ok {
		d, err = sqlite.Open(e.ctx, path, sqlite.Config{})
	} else {
		d, err = postgres.Open(e.ctx, store, postgres.Config{})
	}
	if err != nil {
		return nil, err
	}
	disk, err := newDisk(filepath.Join(dir, "disk"))
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	var groups []cores.Group
	n := 0
	for _, size := range groupSizes {
		g, err := groupOf(e.ctx, d, disk, size, &n, e.seconds/4)
		if err != nil {
			return nil, errors.Join(err, disk.Close(), d.Close())
		}
		groups = append(groups, g)
	}
	return groups, errors.Join(disk.Close(), d.Close())
}

// groupOf returns medians. The disk's part of a commit is the time to write and sync as many bytes.
func groupOf(ctx context.Context, d sqlstore.Driver, disk *disk, size int, n *int, long time.Duration) (g cores.Group, err error) {
	value := configMap("x", 1000)
	var commits, flushes []time.Duration
	for began := time.Now(); time.Since(began) < long || len(commits) < 10; {
		batch := make([]sqlstore.Txn, size)
		for i := range batch {
			*n++
			key := sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: fmt.Sprintf("w%d-%d", *n%32, *n)}
			batch[i].Ops = []sqlstore.Op{{Verb: sqlstore.Create, Key: key, Value: value}}
		}
		at := time.Now()
		out, err := d.Apply(ctx, batch, at)
		commits = append(commits, time.Since(at))
		for i := range out {
			err = errors.Join(err, out[i].Err)
		}
		if err != nil {
			return g, fmt.Errorf("a commit of %d rows: %w", size, err)
		}
		flush, err := disk.flush(size * 1500)
		if err != nil {
			return g, err
		}
		flushes = append(flushes, flush)
	}
	slices.Sort(commits)
	slices.Sort(flushes)
	g = cores.Group{Rows: size, Disk: flushes[len(flushes)/2]}
	g.Processor = max(commits[len(commits)/2]-g.Disk, 0)
	return g, nil
}

// disk is a file that is overwritten repeatedly, like a write-ahead log.
type disk struct {
	*os.File
	at int64
}

const diskSize = 8 << 20

func newDisk(path string) (*disk, error) {
	f, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if _, err = f.Write(make([]byte, diskSize)); err == nil {
		err = f.Sync()
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return &disk{File: f}, nil
}

// flush writes so many bytes in whole pages, and syncs them.
func (d *disk) flush(bytes int) (time.Duration, error) {
	bytes = (bytes + 3*4096) &^ 4095 // at least a page of each tree
	if d.at+int64(bytes) > diskSize {
		d.at = 0
	}
	piece := make([]byte, bytes)
	began := time.Now()
	_, err := d.Seek(d.at, io.SeekStart)
	if err == nil {
		_, err = d.Write(piece)
	}
	if err == nil {
		err = dataSync(d.File)
	}
	d.at += int64(bytes)
	return time.Since(began), err
}
