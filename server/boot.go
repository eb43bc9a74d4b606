package server

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/sqlstore"
)

// Stages of the start.
const (
	stageLoading int32 = iota // stored objects are loaded
	stageWriting              // the cluster's own objects are written
	stageLooping              // loops run
	stageServing
)

// hooks are the steps of the start, under the names of a stock server's post-start hooks, each with the stage that
// completes it here, and the feature gate that must be on for it.
var hooks = []struct {
	name  string
	after int32
	gate  string
}{
	{name: "poststarthook/start-apiserver-admission-initializer", after: stageLoading},
	{name: "poststarthook/generic-apiserver-start-informers", after: stageLoading},
	{name: "poststarthook/priority-and-fairness-config-consumer", after: stageWriting},
	{name: "poststarthook/priority-and-fairness-filter", after: stageWriting},
	{name: "poststarthook/storage-readiness", after: stageLoading, gate: "WatchCacheInitializationPostStartHook"},
	{name: "poststarthook/storage-object-count-tracker-hook", after: stageLoading},
	{name: "poststarthook/start-apiextensions-informers", after: stageLoading},
	{name: "poststarthook/start-apiextensions-controllers", after: stageLooping},
	{name: "poststarthook/crd-informer-synced", after: stageLoading},
	{name: "poststarthook/start-system-namespaces-controller", after: stageWriting},
	{name: "poststarthook/start-cluster-authentication-info-controller", after: stageLooping},
	{name: "poststarthook/start-kube-apiserver-identity-lease-controller", after: stageLooping, gate: "APIServerIdentity"},
	{name: "poststarthook/start-kube-apiserver-identity-lease-garbage-collector", after: stageLooping, gate: "APIServerIdentity"},
	{name: "poststarthook/start-legacy-token-tracking-controller", after: stageLooping},
	{name: "poststarthook/start-service-ip-repair-controllers", after: stageLoading},
	{name: "poststarthook/start-kubernetes-service-cidr-controller", after: stageLooping, gate: "MultiCIDRServiceAllocator"},
	{name: "poststarthook/rbac/bootstrap-roles", after: stageWriting},
	{name: "poststarthook/scheduling/bootstrap-system-priority-classes", after: stageWriting},
	{name: "poststarthook/priority-and-fairness-config-producer", after: stageWriting},
	{name: "poststarthook/bootstrap-controller", after: stageWriting},
	{name: "poststarthook/start-kube-aggregator-informers", after: stageLoading},
	{name: "poststarthook/apiservice-status-local-available-controller", after: stageWriting},
	{name: "poststarthook/apiservice-status-remote-available-controller", after: stageLooping},
	{name: "poststarthook/apiservice-registration-controller", after: stageWriting},
	{name: "poststarthook/apiservice-wait-for-first-sync", after: stageWriting},
	{name: "poststarthook/apiservice-discovery-controller", after: stageWriting},
	{name: "poststarthook/kube-apiserver-autoregistration", after: stageWriting},
	{name: "autoregister-completion", after: stageWriting},
	{name: "poststarthook/apiservice-openapi-controller", after: stageWriting},
	{name: "poststarthook/apiservice-openapiv3-controller", after: stageWriting},
}

// checks returns all health checks.
func (s *Server) checks() *health.Checks {
	boot := make([]health.Check, 0, len(hooks))
	for _, h := range hooks {
		if h.gate != "" && !s.cfg.Feature(h.gate) {
			continue
		}
		boot = append(boot, health.Check{Name: h.name, Probe: func(context.Context) error {
			if s.stage.Load() <= h.after {
				return errors.New("not finished")
			}
			return nil
		}})
	}
	return health.New(health.Config{
		Live:    []health.Check{{Name: "etcd", Probe: s.probeStore}},
		Healthy: s.cfg.ReadyChecks,
		Ready:   []health.Check{{Name: "informer-sync", Probe: s.probeReady}, {Name: "store", Probe: s.probeStore}, {Name: "feed", Probe: s.probeFeed}, {Name: "store-writes", Probe: s.probeWrites}, {Name: "store-reads", Probe: s.probeReads}, {Name: "store-went-back", Probe: s.probeReturns}, {Name: "connections", Probe: s.probeConnections}, {Name: "corrupt-objects", Probe: s.own.probeObjects}},
		Boot:    boot, Grace: s.cfg.LivezGrace, Clock: s.cfg.Clock, Log: s.cfg.Log,
	})
}

func (s *Server) probeStore(ctx context.Context) error {
	_, err := s.cfg.Store.Head(ctx)
	return err
}

// refusedBecause is the text of health checks for each kind of refusal, which every client may read. The
// database's own words are in the log, and in the answer of the single check.
var refusedBecause = map[sqlstore.Kind]string{
	sqlstore.KindFull:        "the store is full",
	sqlstore.KindReadOnly:    "the store is read-only",
	sqlstore.KindDamaged:     "the database is damaged",
	sqlstore.KindRefused:     "the database refuses what the server needs to do",
	sqlstore.KindUncertain:   "what became of a commit cannot be found out",
	sqlstore.KindBusy:        "another program holds a lock in the database",
	sqlstore.KindUnavailable: "the database does not answer, or reports an error of its disk or memory",
}

// probeWrites fails while the store refuses writes. While its disk is full or it is read-only, this server
// serves reads as well as any other; if the database is not at its old place, the state that this server
// shows has no future.
func (s *Server) probeWrites(context.Context) error {
	err := s.cfg.Store.Writable()
	if err == nil || errors.Is(err, sqlstore.ErrGone) {
		return err
	}
	return &health.Remark{Shown: "writes are refused: " + refusedBecause[sqlstore.KindOf(err)], Err: err}
}

// probeReads fails while reads of the database fail. The server continues to serve from memory.
func (s *Server) probeReads(context.Context) error {
	err := s.cfg.Store.Readable()
	if err == nil {
		return nil
	}
	return &health.Remark{Shown: "reads of the store are refused: " + refusedBecause[sqlstore.KindOf(err)], Err: err}
}

// probeConnections fails while the server cannot accept connections. Clients that have a connection can see
// that.
func (s *Server) probeConnections(context.Context) error {
	if s.accepting == nil {
		return nil
	}
	return s.accepting.acceptError()
}

// How long readyz mentions that the database went back to an older state, and that a database was refused.
const (
	returnShown  = time.Hour
	refusalShown = time.Minute
)

// probeReturns fails while the database has gone back to an older state and the server reloads its objects.
// Afterwards it reports for a while what happened, for the operator.
func (s *Server) probeReturns(context.Context) error {
	if s.cfg.Store.Rewound() {
		return fmt.Errorf("%w: all objects are loaded anew", sqlstore.ErrRewound)
	}
	r := s.cfg.Store.Rewinds()
	if r.Others > 0 && time.Since(r.Seen) < refusalShown {
		return &health.Remark{Shown: "another database that the URL names takes writes, and is refused as an older one", Err: errors.New(r.Other)}
	}
	if r.Count > 0 && time.Since(r.At) < returnShown {
		shown := fmt.Sprintf("the database went back, or may have, at %s", r.At.UTC().Format(time.RFC3339))
		return &health.Remark{Shown: shown, Err: fmt.Errorf("%s: %s; newest revision met %d, found %d, goes on behind %d", shown, r.Last.Reason, r.Last.Shown, r.Last.Found, r.Last.ContinuesAt)}
	}
	return nil
}

func (s *Server) probeReady(context.Context) error {
	if !s.Ready() {
		return errors.New("the server is starting")
	}
	return nil
}

// maxLag bounds how far the cache may lag behind the known head of the database before the server is
// not ready.
const maxLag = 10 * time.Second

func (s *Server) probeFeed(context.Context) error {
	if !s.following.Load() {
		return errors.New("the feed does not run")
	}
	if behind := s.cfg.Store.Behind(); behind > maxLag {
		return fmt.Errorf("the feed has been behind the store for %s", behind.Round(time.Second))
	}
	return nil
}

// begin enters the next stage of the start.
func (s *Server) begin(stage int32) {
	s.stage.Store(stage)
	if stage == stageServing {
		close(s.started)
		if s.cfg.Started != nil {
			s.cfg.Started()
		}
	}
}
