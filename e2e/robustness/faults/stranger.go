//go:build unix

package faults

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// strange is the number of objects in the other database, each with a revision that the database gives to another object.
const strange = 400

func strangers() []Fault {
	return []Fault{
		{Name: "other-cache", What: "a server is killed, and started with the cache file of a database that was restored from a backup and went on by itself", Cuts: true, Often: 1, run: func(ctx context.Context, e *env) outcome {
			i := e.server()
			o := outcome{what: fmt.Sprintf("server %d is started with the cache file of another database", i), server: i}
			data, err := e.strangersCache(context.WithoutCancel(ctx))
			if err != nil {
				return outcome{what: "making the cache file of another database", server: -1, absent: err}
			}
			e.wait(ctx, 0, 3*time.Second) // the database gives the same revisions
			e.c.Kill(i)
			if o.err = os.WriteFile(e.c.CacheFile(i), data, 0o600); o.err == nil {
				o.err = e.again(i)
			} else {
				_ = e.again(i)
			}
			return o
		}},
	}
}

// strangersCache returns the cache file of a copy of the database whose next revisions are of other objects.
func (e *env) strangersCache(ctx context.Context) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, commandTime)
	defer cancel()
	dir, err := os.MkdirTemp(e.c.Dir(), "stranger-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	file, copied := filepath.Join(dir, "a.bak"), filepath.Join(dir, "copy.db")
	for _, args := range [][]string{{"backup", file, "--store", e.c.StoreURL()}, {"restore", file, "--store", "sqlite:" + copied}} {
		if _, err := e.c.Store(ctx, args...); err != nil {
			return nil, err
		}
	}
	s, err := harness.Start(ctx, harness.Options{Store: "sqlite:" + copied, DataDir: filepath.Join(dir, "data"), Binary: e.c.Binary(), Args: slices.Concat([]string{"--cache-file-from=1"}, e.c.Keys(), e.c.More())})
	if err != nil {
		return nil, fmt.Errorf("starting a server on a copy: %w", err)
	}
	client, err := s.Client()
	for n := 0; n < strange && err == nil; n++ {
		err = create(ctx, client, s.URL, fmt.Sprintf(`{"metadata":{"name":"stranger-%d"}}`, n))
	}
	if stopped := s.Stop(); err == nil {
		err = stopped
	}
	if err != nil {
		return nil, fmt.Errorf("writing to a copy: %w", err)
	}
	return os.ReadFile(copied + "-cache")
}

func create(ctx context.Context, client *http.Client, url, body string) error {
	code, answer, err := request(ctx, client, http.MethodPost, url+"/api/v1/namespaces/default/configmaps", body)
	if err == nil && code != http.StatusCreated {
		err = fmt.Errorf("a create was answered with %d %s", code, answer)
	}
	return err
}
