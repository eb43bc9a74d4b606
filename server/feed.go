package server

import (
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/sqlstore"
)

// sink is where the feed of the store leads.
func (s *Server) sink() sqlstore.Sink {
	if s.cfg.Tracer == nil {
		return s.Cache
	}
	return tracedFeed{s.Cache, s.cfg.Tracer}
}

// tracedFeed is the cache, with a span for pages that traced writes are in.
type tracedFeed struct {
	*cache.Cache
	tracer *tracing.Tracer
}

// Apply implements sqlstore.Sink. The span is that of the whole page: when it ends, readers
// see its changes, and watches have them in their queues.
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
