//go:build unix

package faults

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"

	"github.com/rowlock/rowlock/e2e/harness"
)

// foreignWrites is how many revisions the other database goes its own way.
const foreignWrites = 500

// foreignCache makes a copy of the database that goes on by itself, so that the same revisions mean something else in it, and
// starts a server with the cache file of the copy.
func foreignCache(ctx context.Context, e *env) outcome {
	i := e.server()
	o := outcome{what: fmt.Sprintf("server %d is killed, and started with the cache file of another database", i), server: i}
	cache, err := e.foreign(context.WithoutCancel(ctx))
	if err != nil {
		o.wrong = "a copy of the database: " + err.Error()
		return o
	}
	e.c.Kill(i)
	o.err = os.WriteFile(e.c.CacheFile(i), cache, 0o600)
	if err := e.again(i); o.err == nil {
		o.err = err
	}
	return o
}

// foreign is the cache file of a copy.
func (e *env) foreign(ctx context.Context) ([]byte, error) {
	dir, err := os.MkdirTemp(e.c.Dir(), "foreign-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, store := filepath.Join(dir, "copy.bak"), "sqlite:"+filepath.Join(dir, "copy.db")
	if _, err := e.c.Store(ctx, "backup", file, "--store", e.c.StoreURL()); err != nil {
		return nil, err
	}
	if _, err := e.c.Store(ctx, "restore", file, "--store", store); err != nil {
		return nil, err
	}
	data := filepath.Join(dir, "server", "data")
	if err := os.MkdirAll(filepath.Dir(data), 0o700); err != nil {
		return nil, err
	}
	s, err := harness.Start(ctx, harness.Options{Binary: e.c.Binary(), DataDir: data, Store: store, Args: []string{"--cache-file-from=1", "--history-retention=1h"}})
	if err != nil {
		return nil, err
	}
	defer s.Kill()
	if err := writeElsewhere(ctx, s); err != nil {
		return nil, err
	}
	if err := s.Stop(); err != nil {
		return nil, err
	}
	return os.ReadFile(filepath.Join(dir, "copy.db-cache"))
}

// writeElsewhere changes the ConfigMaps of a server over and over.
func writeElsewhere(ctx context.Context, s *harness.Server) error {
	client, err := s.Client()
	if err != nil {
		return err
	}
	defer client.CloseIdleConnections()
	do := func(method, path, body string) ([]byte, error) {
		req, err := http.NewRequestWithContext(ctx, method, s.URL+path, bytes.NewReader([]byte(body)))
		if err != nil {
			return nil, err
		}
		req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
		req.Header.Set("Content-Type", "application/merge-patch+json")
		resp, err := client.Do(req)
		if err != nil {
			return nil, err
		}
		defer resp.Body.Close()
		answer, err := io.ReadAll(resp.Body)
		if err == nil && resp.StatusCode != http.StatusOK {
			err = fmt.Errorf("%s %s: %d %.300s", method, path, resp.StatusCode, answer)
		}
		return answer, err
	}
	const red = "/api/v1/namespaces/red/configmaps"
	answer, err := do(http.MethodGet, red, "")
	if err != nil {
		return err
	}
	var list struct {
		Items []struct{ Metadata struct{ Name string } }
	}
	if err := json.Unmarshal(answer, &list); err != nil || len(list.Items) == 0 {
		return fmt.Errorf("%d ConfigMaps: %w", len(list.Items), err)
	}
	errs := make([]error, 8)
	var wg sync.WaitGroup
	for w := range errs {
		wg.Go(func() {
			for n := w; n < foreignWrites && errs[w] == nil; n += len(errs) {
				_, errs[w] = do(http.MethodPatch, red+"/"+list.Items[n%len(list.Items)].Metadata.Name, fmt.Sprintf(`{"data":{"v":"foreign-%d"}}`, n))
			}
		})
	}
	wg.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}
