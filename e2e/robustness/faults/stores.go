//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
)

func stores() []Fault {
	return []Fault{
		{Name: "compact", What: "an operator deletes all history but for the last seconds", Often: 2, run: func(ctx context.Context, e *env) outcome {
			_, err := e.c.Store(context.WithoutCancel(ctx), "compact", "--keep", "2s", "--store", e.c.StoreURL())
			return outcome{what: "store compact --keep 2s", server: -1, compacts: true, wrong: text(err)}
		}},
		{Name: "compact-down", What: "a server is killed, and an operator deletes all history but for the last seconds before it starts again", Cuts: true, Often: 2, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			e.c.Kill(i)
			_, err := e.c.Store(context.WithoutCancel(ctx), "compact", "--keep", "1s", "--store", e.c.StoreURL())
			return outcome{what: fmt.Sprintf("server %d is killed, and starts after store compact --keep 1s", i), server: i, compacts: true, wrong: text(err), err: e.again(i)}
		}},
		{Name: "backup", What: "an operator makes a backup, and restores it into a new database", Often: 2, run: func(ctx context.Context, e *env) outcome {
			return outcome{what: "store backup --history, and a restore", server: -1, wrong: text(e.backup(context.WithoutCancel(ctx)))}
		}},
		{Name: "migrate", What: "a server is killed, the newest migrations are taken back, and the server migrates as it starts, while others go on", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			o := outcome{what: fmt.Sprintf("server %d migrates the database", i), server: -1}
			e.c.Kill(i)
			o.err = e.until(context.WithoutCancel(ctx), func() error {
				err := e.c.Unmigrate(context.WithoutCancel(ctx))
				if errors.Is(err, cluster.ErrNoUndo) { // nor later
					o.absent, err = err, nil
				}
				return err
			})
			if err := e.again(i); o.err == nil {
				o.err = err
			}
			return o
		}},
		{Name: "descriptors", What: "a server may open no more files and connections for some seconds", Cuts: true, Often: 2, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", e.c.Pid(i)))
			if err != nil {
				return outcome{what: fmt.Sprintf("counting the open files of server %d", i), server: i, absent: err}
			}
			d, err := e.limit(ctx, i, unix.RLIMIT_NOFILE, uint64(len(open)+2))
			return outcome{what: fmt.Sprintf("server %d may open %d files for %s", i, len(open)+2, d.Round(time.Millisecond)), server: i, err: err}
		}},
		{Name: "file-size", What: "files of a SQLite server may not grow for some seconds", Store: "sqlite", Cuts: true, Often: 2, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			size := uint64(4096 * (1 + e.rand.IntN(200)))
			d, err := e.limit(ctx, i, unix.RLIMIT_FSIZE, size)
			return outcome{what: fmt.Sprintf("server %d writes nothing behind byte %d of a file for %s", i, size, d.Round(time.Millisecond)), server: i, err: err}
		}},
		{Name: "old-cache", What: "a server is killed, and started with the cache file of an earlier time", Cuts: true, Often: 2, run: func(_ context.Context, e *env) outcome {
			i := e.server()
			saved := filepath.Join(e.c.Dir(), fmt.Sprintf("cache-%d", i))
			o := outcome{what: fmt.Sprintf("server %d is killed, and started with an old cache file", i), server: i}
			e.c.Kill(i)
			if data, err := os.ReadFile(saved); err == nil {
				o.err = os.WriteFile(e.c.CacheFile(i), data, 0o600)
			}
			if err := e.again(i); o.err == nil {
				o.err = err
			}
			// The next time gets the file of this one, which is written when a server ends.
			if err := e.c.Stop(i); err != nil {
				o.wrong = fmt.Sprintf("server %d did not end well after SIGTERM: %v", i, err)
			}
			if data, err := os.ReadFile(e.c.CacheFile(i)); err == nil {
				_ = os.WriteFile(saved, data, 0o600)
			}
			if err := e.again(i); o.err == nil {
				o.err = err
			}
			return o
		}},
		{Name: "damaged-cache", What: "a server is restarted with some damaged bytes in its cache file", Cuts: true, Often: 1, run: func(_ context.Context, e *env) outcome {
			i, damaged := e.server(), 1+e.rand.IntN(8)
			o := outcome{what: fmt.Sprintf("server %d is restarted with %d damaged bytes in its cache file", i, damaged), server: i}
			if err := e.c.Stop(i); err != nil {
				o.wrong = fmt.Sprintf("server %d did not end well after SIGTERM: %v", i, err)
			}
			data, err := os.ReadFile(e.c.CacheFile(i))
			if err == nil && len(data) > 0 {
				for range damaged {
					data[e.rand.IntN(len(data))] ^= byte(1 + e.rand.IntN(255))
				}
				err = os.WriteFile(e.c.CacheFile(i), data, 0o600)
			}
			if errors.Is(err, fs.ErrNotExist) { // a server writes none after its database was replaced
				o.what, err = o.what+", which it has not written", nil
			}
			if o.err = err; o.err == nil {
				o.err = e.again(i)
			} else {
				_ = e.again(i)
			}
			return o
		}},
	}
}

func text(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// limit sets a limit of a server that runs, for up to three seconds.
func (e *env) limit(ctx context.Context, i, resource int, value uint64) (time.Duration, error) {
	pid := e.c.Pid(i)
	var old unix.Rlimit
	if err := prlimit(pid, resource, nil, &old); err != nil {
		return 0, fmt.Errorf("reading a limit: %w", err)
	}
	if err := prlimit(pid, resource, &unix.Rlimit{Cur: min(value, old.Max), Max: old.Max}, nil); err != nil {
		return 0, fmt.Errorf("setting a limit: %w", err)
	}
	d := e.wait(ctx, 200*time.Millisecond, 3*time.Second)
	if err := prlimit(pid, resource, &old, nil); err != nil {
		return d, fmt.Errorf("lifting a limit: %w", err)
	}
	return d, nil
}

// commandTime bounds the commands of an operator together, on a machine that is busy.
const commandTime = 5 * time.Minute

// backup makes a backup, restores it, and records its content as lists, which must not be older than any revision that a client had
// seen.
func (e *env) backup(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp(e.c.Dir(), "backup-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	file, restored := filepath.Join(dir, "a.bak"), filepath.Join(dir, "restored.db")
	call := e.rec.Now()
	if _, err := e.c.Store(ctx, "backup", file, "--history", "--store", e.c.StoreURL()); err != nil {
		return err
	}
	done := e.rec.Now()
	for _, args := range [][]string{{"restore", "--check", file}, {"restore", file, "--store", "sqlite:" + restored}, {"verify", "--store", "sqlite:" + restored}} {
		if _, err := e.c.Store(ctx, args...); err != nil {
			return err
		}
	}
	version, rows, err := e.c.Content(ctx, "sqlite:"+restored, e.ours)
	if err != nil {
		return fmt.Errorf("reading a restored backup: %w", err)
	}
	e.shown("backup", call, done, version, rows)
	return nil
}
