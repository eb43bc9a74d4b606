//go:build unix

// Package traffic is the clients of a run: writers, lists, watches, informers, and users whose rights change. Their
// requests are drawn from the seed, and go with their answers to a history.Recorder.
package traffic

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/cluster"
	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Options set the amount of traffic.
type Options struct {
	Seed  uint64
	Pace  time.Duration // how long a client rests between requests, on average
	Fleet int           // how many nodes send requests without rest

	Release cluster.Release // that servers are once Upgraded is called
	Behind  *Behind
}

// Traffic is the clients of a round.
type Traffic struct {
	c     *cluster.Cluster
	rec   *history.Recorder
	seed  uint64
	round int
	pace  time.Duration
	fleet int

	newest   atomic.Uint64 // that any client saw
	recentMu sync.Mutex
	recent   []uint64
	final    atomic.Uint64   // that watchers have to reach; 0: the traffic goes on
	ctx      context.Context // ends when the readers must end
	stop     context.CancelFunc
	readers  sync.WaitGroup
	release  cluster.Release
	upgraded chan struct{} // closed when all servers are of the release
	gens     generations
	parsed   history.Parser
	behind   *Behind
}

// protocols are the protocols of the clients.
var protocols = []cluster.Protocol{cluster.HTTP1, cluster.HTTP2}

// Setup creates the namespaces, the definitions, and objects that are there from the beginning.
func Setup(ctx context.Context, c *cluster.Cluster, rec *history.Recorder, converter *Converter) error {
	t := &Traffic{c: c, rec: rec}
	admin := t.client("setup", cluster.HTTP1, false)
	if err := admin.keep(keyring{firstKey}); err != nil {
		return err
	}
	create := func(path, body string) error {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			code, answer, err := admin.send(ctx, 0, http.MethodPost, path, "application/json", body)
			if err == nil && (code == http.StatusCreated || code == http.StatusConflict) {
				return nil
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("POST %s: %d %w %s", path, code, err, answer)
			}
		}
	}
	for _, ns := range append([]string{"green", nearNamespace, fleetNamespace, crowdNamespace, ownedNamespace, narrowNamespace, largeNamespace}, Namespaces...) {
		if err := create("/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, ns)); err != nil {
			return err
		}
	}
	for _, text := range []string{definition, converter.definition()} {
		if err := create(definitions, text); err != nil {
			return err
		}
	}
	for i := range 2 * c.Len() {
		for deadline := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
			code, answer, err := admin.send(ctx, i/2, http.MethodGet, []kind{widgets, shifts}[i%2].path(Namespaces[0], ""), "", "")
			if err == nil && code == http.StatusOK {
				break
			}
			if time.Now().After(deadline) {
				return fmt.Errorf("custom resources are not served: %d %w %s", code, err, answer)
			}
		}
	}
	if err := setupRights(ctx, admin); err != nil {
		return err
	}
	return t.setupCrowd(ctx)
}

// New makes the clients of a round.
func New(c *cluster.Cluster, rec *history.Recorder, round int, o Options) *Traffic {
	t := &Traffic{c: c, rec: rec, seed: o.Seed, round: round, pace: o.Pace, fleet: o.Fleet, release: o.Release, upgraded: make(chan struct{}), behind: o.Behind}
	t.ctx, t.stop = context.WithCancel(context.Background())
	return t
}

// Run runs all clients until ctx ends, and then until the writers have their answers. Watches and informers go on until
// Finish.
func (t *Traffic) Run(ctx context.Context) {
	var writers sync.WaitGroup
	each := func(n int, name string, f func(*client, context.Context)) {
		for i := range n {
			c := t.client(fmt.Sprintf("%s-%d", name, i), protocols[i%2], false)
			writers.Go(func() {
				defer c.http.CloseIdleConnections()
				f(c, ctx)
			})
		}
	}
	each(6, "register", (*client).registers)
	each(3, "set", (*client).sets)
	each(3, "toggle", (*client).toggles)
	each(3, "owner", (*client).applies)
	each(3, "status", (*client).statuses)
	each(1, "neighbour", (*client).similarNames)
	each(1, "cluster-scoped", (*client).clusterScoped)
	each(2, "batch", (*client).batches)
	each(2, "holder", (*client).holders)
	each(2, "home", (*client).vacates)
	each(2, "happens", (*client).happens)
	each(3, "scheduler", (*client).schedules)
	each(2, "owners", (*client).owners)
	each(1, "quotas", (*client).quotas)
	each(1, "evictions", (*client).evictions)
	each(2, "services", (*client).services)
	each(1, "relics", (*client).recreateDefinitions)
	each(2, "pages", (*client).pages)
	each(2, "past", (*client).past)
	each(1, "historian", (*client).historians)
	each(2, "lists", (*client).lists)
	each(1, "crowd", (*client).crowds)
	each(2, "user", (*client).rights)
	each(2, "watched", (*client).watched)
	each(1, "rules", (*client).breaks)
	each(1, "hooks", (*client).hooks)
	each(1, "policies", (*client).policies)
	each(1, "conditions", (*client).conditions)
	each(1, "limits", (*client).limits)
	each(1, "effects", (*client).takesEffect)
	each(1, "jobs", (*client).jobs)
	each(1, "claims-in-use", (*client).claimsInUse)
	each(1, "graces", (*client).graces)
	each(1, "tenants", (*client).tenants)
	each(1, "classes", (*client).classes)
	each(1, "doors", (*client).doors)
	each(1, "returns", (*client).returns)
	each(1, "restores", (*client).restores)
	each(1, "ends", (*client).ends)
	each(1, "culls", (*client).culls)
	each(1, "large", (*client).large)
	each(1, "heavy", (*client).heavies)
	each(1, "pieces", (*client).pieces)
	each(1, "expires", (*client).expires)
	each(2, "shifts", (*client).shifts)
	each(1, "shift-lists", (*client).shiftLists)
	each(1, "definitions", (*client).definitions)
	each(1, "schemas", (*client).schemas)
	each(1, "grants", (*client).grants)
	each(1, "verbs", (*client).verbs)
	each(1, "kubelets", (*client).kubelets)
	each(1, "authorities", (*client).authorities)
	each(1, "certificates", (*client).certificates)
	each(1, "times", (*client).tokenTimes)
	each(1, "rotates", (*client).rotates)
	each(2, "secrets", (*client).secrets)
	each(1, "relays", (*client).relays)
	each(1, "floods", (*client).floods)
	each(1, "aggregated", (*client).aggregated)
	writers.Go(func() { t.startLater(ctx, each) })
	t.startFleet(ctx, func(node func()) { writers.Go(node) })
	t.startWatches()
	t.watchCSINodes()
	t.startEncoded()
	t.startInformers()
	writers.Wait()
}

// saw notes a version that a client has seen.
func (t *Traffic) saw(version uint64) {
	for old := t.newest.Load(); version > old && !t.newest.CompareAndSwap(old, version); old = t.newest.Load() {
	}
	t.recentMu.Lock()
	defer t.recentMu.Unlock()
	if t.recent = append(t.recent, version); len(t.recent) > 2000 {
		t.recent = t.recent[1000:]
	}
}

// someVersion returns one of the last versions that clients saw, more often a late one; 0: none.
func (t *Traffic) someVersion(c *client) uint64 {
	t.recentMu.Lock()
	defer t.recentMu.Unlock()
	if len(t.recent) == 0 {
		return 0
	}
	back := int(c.rand.ExpFloat64() * float64(len(t.recent)) / 4)
	return t.recent[max(0, len(t.recent)-1-back)]
}

// Finish waits until watches and informers have reached a version, and ends them. Those that do not reach it in time are
// noted.
func (t *Traffic) Finish(version uint64, patience time.Duration) {
	t.final.Store(version)
	timer := time.AfterFunc(patience, t.stop)
	defer timer.Stop()
	t.readers.Wait()
	t.stop()
}

// over reports whether a reader that is at a version may end.
func (t *Traffic) over(at uint64) bool {
	final := t.final.Load()
	return final != 0 && at >= final || t.ctx.Err() != nil
}

// Settle waits until every server takes a write, and returns the highest version of these.
func (t *Traffic) Settle(patience time.Duration) (uint64, error) {
	final := uint64(0)
	for i := range t.c.Len() {
		c := t.client(fmt.Sprintf("settle-%d", i), cluster.HTTP1, false)
		for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
			op := &history.Op{ID: t.rec.ID(), Server: i, Kind: history.Create, Field: "v"}
			op.Key = history.Key{Resource: configMaps.resource, Namespace: Namespaces[0], Name: "settled-" + op.ID}
			on := true
			if c.do(op, http.MethodPost, configMaps.path(Namespaces[0], ""), plainJSON, configMaps.body(op.Key.Name, 0, "v", op.ID, &on, 0)); op.Outcome == history.OK {
				final = max(final, op.Got.Version)
				break
			}
			if time.Now().After(deadline) {
				return 0, fmt.Errorf("server %d takes no writes %s after the faults: %s", i, patience, op)
			}
		}
		c.http.CloseIdleConnections()
	}
	return final, nil
}
