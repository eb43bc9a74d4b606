package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/rowlock/rowlock/e2e/bench/record"
	"github.com/rowlock/rowlock/e2e/harness"
)

// scaleStart measures from the start of the process to ready: with the database's files out
// of the page cache, and with them in it; and whether readyz and livez say the truth.
func scaleStart(s *scaled) error {
	for _, way := range []struct {
		name string
		goal float64
		cold bool
	}{{"cold", 10, true}, {"warm", 5, false}} {
		var took, cpu []float64
		for range max(1, s.pairs) {
			if err := s.stop(); err != nil {
				return err
			}
			if way.cold {
				if err := s.forget(); err != nil {
					return err
				}
			}
			seconds, err := s.startWatched()
			if err != nil {
				return fmt.Errorf("%s: %w", way.name, err)
			}
			took, cpu = append(took, seconds), append(cpu, processorTime(s.server.Pid()).Seconds())
		}
		f := record.Of("start to ready", way.name, "s", record.Lower, took...)
		f.Goal = way.goal
		s.figure(f)
		s.figure(record.Of("start to ready", way.name+", processor time", "s", record.Lower, cpu...))
	}
	return nil
}

// startWatched starts the server, and fails if a health check was wrong.
func (s *scaled) startWatched() (float64, error) {
	port, err := harness.FreePort()
	if err != nil {
		return 0, err
	}
	ctx, cancel := context.WithCancel(s.ctx)
	defer cancel()
	seen := make(chan error, 1)
	probe := &harness.Server{URL: fmt.Sprintf("https://127.0.0.1:%d", port), DataDir: filepath.Join(s.dir, "data")}
	go func() { seen <- s.truthful(ctx, probe) }()
	began := time.Now()
	s.server, err = harness.Start(s.ctx, s.options(port))
	took := time.Since(began).Seconds()
	if err != nil {
		return 0, err
	}
	if err := <-seen; err != nil {
		return 0, fmt.Errorf("while it started: %w", err)
	}
	return took, nil
}

// truthful asks livez and readyz until the server is ready, and holds them to the truth: as
// soon as readyz is well, so are livez and a read of the last of all objects, and nothing is
// read before. As in kube-apiserver, livez tells of a start that is not over yet.
func (s *scaled) truthful(ctx context.Context, probe *harness.Server) error {
	c, err := newClient(probe)
	if err != nil {
		return err
	}
	last := s.shape.Pods - 1
	path := fmt.Sprintf("/api/v1/namespaces/%s/pods/%s", s.shape.Namespace(s.shape.NamespaceOf(last)), s.shape.PodName(last))
	for ctx.Err() == nil {
		before, up := c.status("/readyz")
		if !up {
			time.Sleep(5 * time.Millisecond)
			continue
		}
		live, _ := c.status("/livez")
		got, up := c.status(path)
		after, _ := c.status("/readyz")
		switch {
		case before == http.StatusOK && live != http.StatusOK:
			return fmt.Errorf("readyz says 200, and livez %d", live)
		case before == http.StatusOK && (!up || got != http.StatusOK):
			return fmt.Errorf("readyz says 200, and a get is answered with %d", got)
		case before == http.StatusOK:
			return nil
		case got == http.StatusOK && after != http.StatusOK:
			return fmt.Errorf("readyz says %d, and a get is answered", after)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("readyz was never well before the measurement ended")
}

// status is that of an answer; false if there is none, as nobody listens.
func (c *client) status(path string) (int, bool) {
	req, err := http.NewRequest(http.MethodGet, c.url+path, nil)
	if err != nil {
		return 0, false
	}
	req.Header.Set("Authorization", "Bearer "+c.token)
	resp, err := c.c.Do(req)
	if err != nil {
		return 0, false
	}
	defer resp.Body.Close()
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, err == nil
}

// read is a whole answer.
func (c *client) read(path string) ([]byte, error) {
	resp, err := c.open(http.MethodGet, path, "", "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// forget takes the files of the database and the cache file out of the page cache, and no others: the machine
// may not be ours alone. What PostgreSQL keeps in its own buffers stays there.
func (s *scaled) forget() error {
	syscall.Sync() // pages that are not written yet stay
	path, isFile := strings.CutPrefix(s.store, "sqlite:")
	kept := filepath.Join(s.dir, "data", "postgres-cache")
	if isFile {
		kept = path + "-cache"
	}
	if err := forgetFile(kept); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if isFile {
		return forgetFile(path)
	}
	if s.pg == nil {
		return nil // somebody else's server, perhaps on another machine
	}
	folder, err := ask[string](s.ctx, s.store, `SHOW data_directory`)
	if err != nil {
		return err
	}
	return filepath.WalkDir(folder, func(path string, entry fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) || err == nil && !entry.Type().IsRegular() {
			return nil
		}
		if err == nil {
			err = forgetFile(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil // the database has just deleted it
		}
		return err
	})
}
