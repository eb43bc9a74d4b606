//go:build linux

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// watchers are clients that list and watch.
const watchers = 24

// watch lists and watches until ctx ends: for some seconds, from where it was or from a list, on connections that it
// keeps or does not.
func (l *load) watch(ctx context.Context, number int) {
	random := rand.New(rand.NewPCG(l.seed, uint64(1000+number)))
	paths := []string{nodesPath, leasesPath, loadPath + "/pods", loadPath + "/pods?labelSelector=slot%3Ds3", loadPath + "/events", cardsPath, slicesPath, "/api/v1/namespaces"}
	path := paths[number%len(paths)]
	by, last := l.client.fresh(number%2 == 0), int64(0)
	for ctx.Err() == nil {
		if last == 0 {
			o := l.client.do(ctx, "list", http.StatusOK, http.MethodGet, with(path, "limit=1"), "", "")
			if o == nil {
				return
			}
			last = parse(o.Metadata.ResourceVersion)
		}
		err := l.stream(ctx, by, with(path, fmt.Sprintf("watch=1&allowWatchBookmarks=true&timeoutSeconds=%d&resourceVersion=%d", 1+random.IntN(9), last)), &last)
		if ctx.Err() != nil {
			break
		}
		if err != nil {
			l.client.fail("a watch", err, nil)
			last = 0
		}
		l.client.count("watch")
		if random.IntN(4) == 0 {
			last = 0
		}
		if random.IntN(3) == 0 {
			by.CloseIdleConnections()
			by = l.client.fresh(random.IntN(2) == 0)
		}
	}
	by.CloseIdleConnections()
}

func with(path, parameters string) string {
	for _, c := range path {
		if c == '?' {
			return path + "&" + parameters
		}
	}
	return path + "?" + parameters
}

// stream reads a watch to its end. Each event has a higher resource version than those before.
func (l *load) stream(ctx context.Context, by *http.Client, path string, last *int64) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.client.base+path, nil)
	if err != nil {
		return err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := by.Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("the answer is %s", resp.Status)
	}
	for events := json.NewDecoder(resp.Body); ; {
		var e struct {
			Type   string `json:"type"`
			Object object `json:"object"`
		}
		if err := events.Decode(&e); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		at := parse(e.Object.Metadata.ResourceVersion)
		if e.Type == "ERROR" || at < *last || at == *last && e.Type != "BOOKMARK" {
			return fmt.Errorf("after %d comes %s with resource version %q", *last, e.Type, e.Object.Metadata.ResourceVersion)
		}
		*last = at
	}
}
