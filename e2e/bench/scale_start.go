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

// scaleStart measures the time from the start of the process to readiness, with a cold and a warm page cache, and
// checks that readyz and livez are correct.
func scaleStart(s *scaled) error {
	for _, variant := range []struct {
		name string
		goal float64
		cold bool
	}{{"cold", 10, true}, {"warm", 5, false}} {
		var took, cpu []float64
		for range max(1, s.pairs) {
			if err := s.stop(); err != nil {
				return err
			}
			if variant.cold {
				if err := s.forget(); err != nil {
					return err
				}
			}
			seconds, err := s.startWatched()
			if err != nil {
				return fmt.Errorf("%s: %w", variant.name, err)
			}
			took, cpu = append(took, seconds), append(cpu, processorTime(s.server.Pid()).Seconds())
		}
		f := record.Of("start to ready", variant.name, "s", record.Lower, took...)
		f.Goal = variant.goal
		s.figure(f)
		s.figure(record.Of("start to ready", variant.name+", processor time", "s", record.Lower, cpu...))
	}
	return nil
}

// startWatched starts the server, and fails if a health check answers incorrectly.
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
		return 0, fmt.Errorf("health checks during the start: %w", err)
	}
	return took, nil
}

// truthful polls livez and readyz until the server is ready, and checks them: as soon as readyz answers 200, so do
// livez and a get of the last object, and no get succeeds before. As in kube-apiserver, livez fails during the start.
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
			return fmt.Errorf("readyz answered 200, but livez %d", live)
		case before == http.StatusOK && (!up || got != http.StatusOK):
			return fmt.Errorf("readyz answered 200, but a get %d", got)
		case before == http.StatusOK:
			return nil
		case got == http.StatusOK && after != http.StatusOK:
			return fmt.Errorf("readyz answered %d, but a get succeeded", after)
		}
		time.Sleep(5 * time.Millisecond)
	}
	return errors.New("readyz did not answer 200 before the measurement ended")
}

// status returns the status code of an answer; false if the server does not answer.
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

// read returns a whole answer.
func (c *client) read(path string) ([]byte, error) {
	resp, err := c.open(http.MethodGet, path, "", "", nil)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	return io.ReadAll(resp.Body)
}

// forget evicts the files of the database and the cache file from the page cache, and no others, as other users may
// share the machine. The buffers of PostgreSQL keep their content.
func (s *scaled) forget() error {
	syscall.Sync() // dirty pages cannot be evicted
	path, isFile := strings.CutPrefix(s.store, "sqlite:")
	cacheFile := filepath.Join(s.dir, "data", "postgres-cache")
	if isFile {
		cacheFile = path + "-cache"
	}
	if err := forgetFile(cacheFile); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if isFile {
		return forgetFile(path)
	}
	if s.pg == nil {
		return nil // not a server of the bench
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
			return nil // deleted in the meantime
		}
		return err
	})
}
