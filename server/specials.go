package server

import (
	"maps"

	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/verbs/components"
	"github.com/rowlock/rowlock/server/verbs/history"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/server/verbs/reviews"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
)

// specials are the handlers of what is no stored object, as far as the Config asks for
// them.
func (s *Server) specials(a access.Authentication) map[string]verbs.Special {
	c, all := &s.cfg, map[string]verbs.Special{}
	if c.Kubelet != nil {
		agents := *c.Kubelet
		agents.Streams = c.Feature("PodLogsQuerySplitStreams")
		if agents.Dial == nil {
			agents.Dial = c.Egress.Cluster
		}
		maps.Copy(all, podverbs.Handlers(agents))
	}
	if c.Tokens != nil {
		tokens := *c.Tokens
		tokens.Review = a.Review
		maps.Copy(all, tokenverbs.Handlers(tokens))
	}
	if c.Reviews != nil {
		maps.Copy(all, reviews.Handlers(*c.Reviews))
	}
	if len(c.Components) > 0 {
		all[components.Key] = components.Handler(c.Components...)
	}
	maps.Copy(all, history.Handlers(history.Config{Authorizer: c.Authorizer, Merging: s.Schemas.Merging}))
	maps.Copy(all, c.Special)
	return all
}
