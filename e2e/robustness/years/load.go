//go:build linux

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// The paths of what the program writes.
const (
	nodesPath  = "/api/v1/nodes"
	leasesPath = "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases"
	leadsPath  = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
	loadPath   = "/api/v1/namespaces/load"
	slicesPath = "/apis/discovery.k8s.io/v1/namespaces/load/endpointslices"
	cardsPath  = "/apis/years.example.com/v1/namespaces/load/cards"
)

// workers send requests; each has a share of the objects to itself, so that no write is a conflict.
const workers = 16

// How many there are of the other kinds, for each worker.
const slicesEach, configsEach, cardsEach = 8, 32, 16

// load is the traffic.
type load struct {
	*settings
	client  *client
	workers []*worker
}

func newLoad(s *settings, server *harness.Server) (*load, error) {
	c, err := newClient(server, s.rate)
	if err != nil {
		return nil, err
	}
	l := &load{settings: s, client: c}
	for i := range workers {
		l.workers = append(l.workers, newWorker(l, i))
	}
	return l, nil
}

func (l *load) count(name string) int {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	return l.client.counts[name]
}

func (l *load) latencies() []latency { return l.client.latencies() }

func (l *load) requests() map[string]int {
	l.client.mu.Lock()
	defer l.client.mu.Unlock()
	return maps.Clone(l.client.counts)
}

func (l *load) faults() (list []string) {
	for _, what := range slices.Sorted(maps.Keys(l.client.failures)) {
		f := l.client.failures[what]
		list = append(list, fmt.Sprintf("%d times %s: %s", f.times, what, f.first))
	}
	return list
}

// revision returns the newest, as clients see it.
func (l *load) revision(ctx context.Context) (int64, error) {
	o := l.client.do(ctx, "list", http.StatusOK, http.MethodGet, leadsPath+"?limit=1", "", "")
	if o == nil {
		return 0, errors.New("no answer that has the newest revision")
	}
	return parse(o.Metadata.ResourceVersion), nil
}

// names returns the names and resource versions of a collection.
func (l *load) names(ctx context.Context, path string) (string, error) {
	o := l.client.do(ctx, "list", http.StatusOK, http.MethodGet, path, "", "")
	if o == nil {
		return "", fmt.Errorf("no list of %s", path)
	}
	var b strings.Builder
	for _, i := range o.Items {
		fmt.Fprintln(&b, i.Metadata.Name, i.Metadata.ResourceVersion)
	}
	return b.String(), nil
}

// setup makes the objects that stay.
func (l *load) setup(ctx context.Context) error {
	if l.client.do(ctx, "create", http.StatusCreated, http.MethodPost, "/api/v1/namespaces", jsonType, `{"metadata":{"name":"load"}}`) == nil ||
		l.client.do(ctx, "create", http.StatusCreated, http.MethodPost, definitionsPath, jsonType, definition("years.example.com", "Card", "cards")) == nil {
		return errors.New(strings.Join(l.faults(), "\n"))
	}
	if err := l.until(ctx, loadPath+"/serviceaccounts/default"); err != nil {
		return err
	}
	if err := l.until(ctx, cardsPath); err != nil {
		return err
	}
	limit := l.client.limit.Limit()
	l.client.limit.SetLimit(limit * 4)
	var wg sync.WaitGroup
	for _, w := range l.workers {
		wg.Go(func() { w.setup(ctx) })
	}
	wg.Wait()
	l.client.limit.SetLimit(limit)
	l.client.latencies()
	if list := l.faults(); len(list) > 0 {
		return errors.New(strings.Join(list, "\n"))
	}
	return ctx.Err()
}

// until waits until there is something at a path.
func (l *load) until(ctx context.Context, path string) error {
	for deadline := time.Now().Add(time.Minute); ; {
		code, answer, err := l.client.send(ctx, http.MethodGet, path, "", "")
		if err == nil && code == http.StatusOK {
			return nil
		}
		if ctx.Err() != nil || time.Now().After(deadline) {
			return fmt.Errorf("%s: %d, %w\n%s", path, code, err, answer)
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// run makes traffic until ctx ends.
func (l *load) run(ctx context.Context) {
	var wg sync.WaitGroup
	for _, w := range l.workers {
		wg.Go(func() { w.run(ctx) })
	}
	for i := range watchers {
		wg.Go(func() { l.watch(ctx, i) })
	}
	wg.Go(func() { l.definitions(ctx) })
	wg.Wait()
}

// worker writes its share of the objects.
type worker struct {
	*load
	number int
	random *rand.Rand
	pods   []pod
	made   int // of names that are used once
}

func newWorker(l *load, number int) *worker {
	w := &worker{load: l, number: number, random: rand.New(rand.NewPCG(l.seed, uint64(number)))}
	for i := number; i < l.settings.pods; i += workers {
		w.pods = append(w.pods, pod{slot: i})
	}
	return w
}

// step is something that workers do, with its share.
type step struct {
	share int
	do    func(*worker, context.Context)
}

// steps: of a cluster's writes more than nine in ten renew Leases. Here they are four in ten, so that the rest turns over as well.
var steps = []step{
	{400, (*worker).lease}, {260, (*worker).pod}, {70, (*worker).nodeStatus}, {60, (*worker).event}, {40, (*worker).lead}, {30, (*worker).slice},
	{20, (*worker).config}, {20, (*worker).card}, {20, (*worker).token}, {60, (*worker).get}, {8, (*worker).list}, {8, (*worker).namespace}, {4, (*worker).certificate},
}

func (w *worker) run(ctx context.Context) {
	sum := 0
	for _, s := range steps {
		sum += s.share
	}
	for ctx.Err() == nil {
		n := w.random.IntN(sum)
		for _, s := range steps {
			if n -= s.share; n < 0 {
				s.do(w, ctx)
				break
			}
		}
	}
}

// mine draws one of the worker's numbers below n.
func (w *worker) mine(n int) int {
	own := (n - w.number + workers - 1) / workers
	if own < 1 {
		return w.number % n
	}
	return w.number + workers*w.random.IntN(own)
}

// fresh returns a name that is used once.
func (w *worker) fresh(kind string) string {
	w.made++
	return fmt.Sprintf("%s-%d-%d", kind, w.number, w.made)
}
