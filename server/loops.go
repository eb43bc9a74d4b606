package server

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/sqlstore"
)

// Loop runs as long as the server.
type Loop struct {
	Name string
	// Run works until ctx ends. If it fails earlier, the server ends; a loop that leads is restarted instead,
	// and the error is logged.
	Run func(ctx context.Context) error

	leads  bool // runs on one server at a time
	writes bool // an error counts even after ctx has ended: something may not have been stored
}

// upkeep returns the loops that start when the cache is complete up to a revision.
func (s *Server) upkeep(from int64) []Loop {
	list := []Loop{
		// Commits, the log of changes, compaction and expiry.
		{Name: "store", writes: true, Run: func(ctx context.Context) error {
			s.following.Store(true)
			defer s.following.Store(false)
			return s.cfg.Store.Run(ctx, from, s.sink())
		}},
		{Name: "cache", Run: s.Cache.Run},
		{Name: "definitions", Run: s.Custom.Run},
	}
	list = append(list, Loop{Name: "recent events", Run: s.backfill})
	if s.cacheFile.from != nil {
		list = append(list, Loop{Name: "cache file", Run: s.cacheFile.run})
	}
	if s.cfg.Store.ChecksRows() {
		list = append(list, Loop{Name: "rows", Run: s.checkRows})
	}
	if s.cfg.Store.Sealed() {
		list = append(list, Loop{Name: "decryption", Run: s.reopen})
	}
	return list
}

// backfill reads the events before the start, for watches that continue after a restart.
func (s *Server) backfill(ctx context.Context) error {
	began := time.Now()
	switch err := s.Cache.Backfill(ctx, s.cfg.Store); {
	case ctx.Err() != nil:
	case err != nil:
		s.cfg.Log.Warn("events from before the start are not in memory: each watch that resumes from one reads the database", "error", err)
	default:
		s.cfg.Log.Debug("read the events from before the start", "took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}

// reopenEvery is the interval between attempts to decrypt objects that could not be decrypted: reloading a
// file may bring their key back, or the network its key server.
const reopenEvery = 2 * time.Second

// reopen repeatedly tries to decrypt those objects.
func (s *Server) reopen(ctx context.Context) error {
	tick := time.NewTicker(reopenEvery)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		if n := s.Cache.Reopen(ctx, s.cfg.Store); n > 0 {
			s.cfg.Log.Info("objects can be decrypted again", "count", n)
		}
	}
}

// work returns the loops that start when the cluster's own objects exist, after the revision at which the server started.
func (s *Server) work(from int64) []Loop {
	list := []Loop{{Name: "own objects", Run: s.own.heal}, {Name: "aggregated documents", Run: s.remote.Run}, {Name: "discovery", Run: s.discovery.Run}, {Name: "documents", Run: s.openapi.Run}, {Name: "revoked rights", Run: s.revoked.Run}}
	host := controllers.Host{
		API: s, Cache: s.Cache, Catalogue: s.cfg.Catalogue, Follow: s.Custom.Follow, Definitions: s.Custom.Reader(), Objects: s.objects, Authorizer: s.cfg.Authorizer, Log: s.cfg.Log, Clock: s.cfg.Clock, Moves: s.cfg.ClockMoves, Metrics: s.controllers, Aggregator: s.aggregated, Remote: s.remote,
		Start: from, AnyNamespace: s.anyNamespace(), Release: s.cfg.Release,
	}
	for _, c := range controllers.Loops(host, s.cfg.Controllers) {
		list = append(list, Loop{Name: c.Name, Run: c.Run, leads: !c.EachServer})
	}
	return append(list, s.cfg.Loops...)
}

// start starts loops, which end with ctx. The first failure ends all of them.
func (s *Server) start(ctx context.Context, group *errgroup.Group, list []Loop) {
	for _, l := range list {
		run := func(ctx context.Context) error { return s.runAgain(ctx, l) }
		switch {
		case l.leads:
			run = func(ctx context.Context) error { return s.lead(ctx, l) }
		case l.writes:
			run = l.Run
		}
		group.Go(func() error {
			err := run(ctx)
			if ctx.Err() != nil && !l.writes {
				return nil
			}
			return err
		})
	}
}

// unreadRest is the pause of a loop that found an unreadable object.
const unreadRest = 5 * time.Second

// runAgain runs a loop, and restarts it after a pause if it found an unreadable object.
func (s *Server) runAgain(ctx context.Context, l Loop) (err error) {
	for {
		unread := cache.Try(func() { err = l.Run(ctx) })
		if unread == nil {
			return err
		}
		s.cfg.Log.Error("a loop found an object that cannot be read; starting the loop again", "name", l.Name, "error", unread)
		if !sqlstore.Sleep(ctx, unreadRest) {
			return nil
		}
	}
}

// lead runs a loop while this server is the leader.
func (s *Server) lead(ctx context.Context, l Loop) error {
	return s.cfg.Store.Lead(ctx, l.Name, func(ctx context.Context) {
		var err error
		if unread := cache.Try(func() { err = l.Run(ctx) }); unread != nil {
			err = unread
		}
		if err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("a controller ended and is started again", "name", l.Name, "error", err)
		}
	})
}

// sink receives the feed of the store.
func (s *Server) sink() sqlstore.Sink {
	if s.cfg.Tracer == nil {
		return s.Cache
	}
	return tracedFeed{s.Cache, s.cfg.Tracer}
}

// tracedFeed is the cache with a span for each page that contains traced writes.
type tracedFeed struct {
	*cache.Cache
	tracer *tracing.Tracer
}

// Apply implements sqlstore.Sink. Its span is that of the whole page: when it ends, readers see the changes,
// and watches have queued them.
func (f tracedFeed) Apply(changes []sqlstore.Change) {
	var commits []*tracing.Span
	own := 0
	for i := range changes {
		if changes[i].Aux != nil {
			own++
		}
		if p, ok := changes[i].Aux.(*cache.Pending); ok && p.Commit != nil {
			commits = append(commits, p.Commit)
		}
	}
	span := f.tracer.Page(commits)
	f.Cache.Apply(changes)
	if span.On() {
		span.Number("rows", len(changes))
		span.Number("own", own)
		span.Number("revision", int(changes[len(changes)-1].Revision))
		span.End()
	}
}

// rowsShare is the share of one processor for comparing the table with its indexes.
const rowsShare = 0.1

// checkRows compares the table with its indexes once, in the background; the start has compared their numbers
// of rows only. If objects were loaded from the cache file, it first verifies the checksums of their rows,
// which the start did not read. It marks objects whose rows differ as corrupt.
func (s *Server) checkRows(ctx context.Context) error {
	loaded, began := s.cacheFile.loaded.Load(), time.Now()
	values := loaded != nil && loaded.FromFile > 0
	damaged, err := s.Cache.CheckRows(ctx, s.cfg.Store, values, rowsShare)
	for _, c := range damaged[:min(len(damaged), maxLogged)] {
		s.cfg.Log.Error("an object in the store cannot be read", "key", c.Key, "revision", c.Revision, "error", c.Reason)
	}
	switch {
	case ctx.Err() != nil:
	case err != nil:
		s.own.unchecked.Store(&err)
		s.cfg.Log.Error("the table could not be compared with its indexes; run `rowlock store verify`", "error", err)
	default:
		s.cfg.Log.Debug("compared the table with its indexes", "objects that differ", len(damaged), "took", time.Since(began).Round(time.Millisecond))
	}
	return nil
}
