package server

import (
	"context"
	"maps"
	"slices"

	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/apiservices"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/verbs/components"
	"github.com/rowlock/rowlock/server/verbs/history"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/server/verbs/reviews"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
	"github.com/rowlock/rowlock/server/watches"
	"github.com/rowlock/rowlock/server/writes"
)

// packedBytes is the memory for compressed lists; a list of 5,000 Pods of 5 KB needs two to four million
// bytes.
const packedBytes = 16 << 20

// newVerbs makes the handler of requests for resources.
func (s *Server) newVerbs(who access.Authentication) error {
	c, answering := &s.cfg, s.answers()
	admits, err := s.admission()
	if err != nil {
		return err
	}
	s.Verbs = &verbs.Handler{
		Catalogue: c.Catalogue, Follow: s.Custom.Follow, Objects: s.objects, Answers: answering,
		Writes: &writes.Writer{
			Objects:   s.objects,
			Owner:     ownership.New(ownership.Config{Schemas: s.Schemas, JSON: s.objects.Codec(), StandardOnly: c.StandardOwnership, Count: s.Metrics.Ownership, Log: c.Log}),
			Admission: admits, Authorizer: c.Authorizer, Clock: c.Clock, Log: c.Log, Changed: s.changed(), Apart: c.DeletesApart,
			NeverPast: c.Release.Has(release.DeletionsNeverPast), AnyNamespace: s.anyNamespace(),
		},
		Watches: &watches.Server{Objects: s.objects, Answers: answering, Sent: s.Metrics.Delivery.Sent, Measure: s.Metrics, Log: c.Log, For: c.WatchFor},
		Feature: c.Feature, Special: s.specials(who),
		MaxBody: s.objects.Sizes().Body(), Gate: verbs.NewGate(s.objects.Sizes()),
	}
	return nil
}

// anyNamespace reports whether objects may be created in namespaces that do not exist.
func (s *Server) anyNamespace() bool {
	return slices.Contains(s.cfg.Admission.Disable, "NamespaceLifecycle")
}

// changed returns the callbacks, by storage, that an update calls before it is answered.
func (s *Server) changed() map[string]func(context.Context, *cache.Item) {
	services := &apiservices.Controller{Base: reconcile.Base{API: s, Cache: s.Cache, Log: s.cfg.Log, Clock: s.cfg.Clock}, Aggregator: s.aggregated}
	return map[string]func(context.Context, *cache.Item){aggregator.Storage: services.Restore}
}

// admission makes the admission chain of writes.
func (s *Server) admission() (*admission.Chain, error) {
	c := &s.cfg
	list, err := plugins.Build(plugins.Host{
		Catalogue: c.Catalogue, Cache: s.Cache, Objects: s.objects, Schemas: s.Schemas, API: s, Authorizer: c.Authorizer, Webhooks: s.webhooks,
		RemoteKinds: s.remote.OfKind,
		Registry:    s.Metrics.Registry, Feature: c.Feature, Clock: c.Clock, Log: c.Log,
	}, c.Admission)
	if err != nil {
		return nil, err
	}
	chain := admission.NewChain(append(list, c.Plugins...)...)
	chain.Observer = s.Metrics
	return chain, nil
}

// answers makes the encoder of stored objects in answers.
func (s *Server) answers() *answers.Answers {
	on := s.cfg.Feature
	return &answers.Answers{
		Items: s.objects, Forms: s.forms(), Packed: packed.New(packedBytes), Turns: s.turns, Large: answers.NewMemoryGate(s.objects.Sizes()),
		Clock: s.cfg.Clock, Log: s.cfg.Log, NoBlueprints: s.cfg.Release.Has(release.NoBlueprints),
		Compress: on("APIResponseCompression"), NameCorrupt: on("AllowUnsafeMalformedObjectDeletion"),
	}
}

// specials returns the handlers of resources that are not stored, as far as the Config enables them.
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
