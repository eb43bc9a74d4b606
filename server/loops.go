package server

import (
	"context"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/server/controllers"
)

// Loop is a loop that runs while the server does.
type Loop struct {
	Name string
	// Run works until ctx ends. An error before that ends the server; if the loop leads,
	// the error is logged and the loop is started again.
	Run func(ctx context.Context) error

	leads  bool // it runs on one server at a time
	writes bool // an error counts even after ctx has ended: something may not be stored
}

// upkeep are the loops that begin once the cache holds everything up to a revision.
func (s *Server) upkeep(from int64) []Loop {
	list := []Loop{
		// Commits, reading the log, compaction and expiry.
		{Name: "store", writes: true, Run: func(ctx context.Context) error {
			s.following.Store(true)
			defer s.following.Store(false)
			return s.cfg.Store.Run(ctx, from, s.sink())
		}},
		{Name: "cache", Run: s.Cache.Run},
		{Name: "definitions", Run: s.Custom.Run},
	}
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

// reopenEvery is how often objects that could not be decrypted are tried again: a key may
// come back with a file that is read again, or a key server with its network.
const reopenEvery = 2 * time.Second

// reopen tries again and again to decrypt what could not be.
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

// work are the loops that begin once the cluster's own objects are there.
func (s *Server) work() []Loop {
	list := []Loop{{Name: "own objects", Run: s.own.heal}, {Name: "aggregated documents", Run: s.elsewhere.Run}, {Name: "discovery", Run: s.discovery.Run}, {Name: "documents", Run: s.openapi.Run}}
	host := controllers.Host{
		API: s, Cache: s.Cache, Catalogue: s.cfg.Catalogue, Follow: s.Custom.Follow, Definitions: s.Custom.Reader(), Objects: s.objects, Authorizer: s.cfg.Authorizer, Log: s.cfg.Log, Clock: s.cfg.Clock, Moves: s.cfg.ClockMoves, Metrics: s.controllers, Aggregator: s.aggregated, Elsewhere: s.elsewhere,
		Homeless: slices.Contains(s.cfg.Admission.Disable, "NamespaceLifecycle"), Release: s.cfg.Release,
	}
	for _, c := range controllers.Loops(host, s.cfg.Controllers) {
		list = append(list, Loop{Name: c.Name, Run: c.Run, leads: !c.EachServer})
	}
	return append(list, s.cfg.Loops...)
}

// start starts loops, which end with ctx. The first that fails ends them all.
func (s *Server) start(ctx context.Context, group *errgroup.Group, list []Loop) {
	for _, l := range list {
		run := l.Run
		if l.leads {
			run = func(ctx context.Context) error { return s.lead(ctx, l) }
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

// lead runs a loop whenever this server is the one to do so.
func (s *Server) lead(ctx context.Context, l Loop) error {
	return s.cfg.Store.Lead(ctx, l.Name, func(ctx context.Context) {
		if err := l.Run(ctx); err != nil && ctx.Err() == nil {
			s.cfg.Log.Warn("a controller ended and is started again", "name", l.Name, "error", err)
		}
	})
}
