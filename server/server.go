// Package server assembles the API server: filters in their order, the handlers behind them, and the loops
// that run while it serves.
//
// Run returns after everything that it has started has ended. loops.go lists all loops.
package server

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"

	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/forms"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/aggregator/documents"
	"github.com/rowlock/rowlock/server/aggregator/endpoints"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/history"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/webhook"
)

// Server is an API server.
type Server struct {
	cfg     Config
	Cache   *cache.Cache
	Schemas *schema.Schemas
	Verbs   *verbs.Handler
	Health  *health.Checks
	Metrics *metrics.Metrics
	Custom  *definitions.Follower

	objects     *objects.Store
	controllers *reconcile.Metrics
	flows       *flow.Classifier
	turns       *answers.TurnScheduler // of large answers
	revoked     *filters.Revoked
	webhooks    *webhook.Client
	aggregated  *aggregator.Aggregator
	proxy       *aggregator.Proxy
	remote      *documents.Documents
	discovery   *discovery.Handler
	openapi     *schema.Documents
	handler     http.Handler
	loopback    http.Handler    // for calls in process
	watching    context.Context // ends when the server drains
	endWatches  context.CancelFunc
	stage       atomic.Int32
	started     chan struct{} // closed when the server serves
	leaving     chan struct{} // closed when it takes no more requests
	running     atomic.Int64  // counts requests, if needed
	following   atomic.Bool   // the cache follows the store
	own         *ownObjects
	cacheFile   *cacheFile
	accepting   *accepting // nil: no listener
}

// New assembles a server, lower layers first. Nothing runs, and nothing is read, before Run. One dependency
// is circular, and is set last: the function by which parts of the server call its API.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{cfg: cfg, Cache: cfg.Cache, started: make(chan struct{}), leaving: make(chan struct{})}
	if s.Cache == nil {
		s.Cache = NewCache(cfg.Catalogue, json.New(json.Settings{Log: cfg.Log, View: cfg.Catalogue.Release().View()}), cfg.Log)
	}
	s.objects = objects.New(cfg.Catalogue, cfg.Store, s.Cache)
	sizes, err := budget.SizesOf(cfg.MaxObjectBytes)
	if err != nil {
		return nil, fmt.Errorf("server: Config.MaxObjectBytes %w", err)
	}
	s.objects.Bound(sizes)
	s.Cache.BoundEvents(sizes.Events(), sizes.SlowEvents())
	if cfg.Audit != nil {
		cfg.Audit.MaxObject = int(sizes.Recorded())
	}
	s.flows, s.turns, s.revoked = s.newFlows(), answers.NewTurnScheduler(runtime.GOMAXPROCS(0)), filters.NewRevoked(cfg.Authorizer, cfg.Log)
	s.revoked.Further = s.furtherVerbs
	s.controllers = reconcile.NewMetrics(cfg.Clock)
	s.cacheFile = newCacheFile(s)
	s.newMetrics()
	slices := endpoints.New(s.Cache)
	resolver := services(plugins.Reader{Catalogue: cfg.Catalogue, Cache: s.Cache, Objects: s.objects}, slices, cfg.Admission.DirectServices)
	var trace func(context.Context, http.Header)
	if cfg.Tracer != nil {
		trace = cfg.Tracer.Inject
	}
	ofWebhooks, ofServers := webhook.NewObsoleteCertificates("webhooks"), webhook.NewObsoleteCertificates("kube_aggregator")
	s.Metrics.Registry.MustRegister(append(ofWebhooks.Collectors(), ofServers.Collectors()...)...)
	s.webhooks = &webhook.Client{Resolve: resolver.Resolve, Agent: webhookAgent, Trace: trace, Dial: cfg.Egress.Cluster, DialURL: cfg.Egress.ControlPlane, Before: cfg.BeforeWebhook, ObsoleteCertificates: ofWebhooks, MaxAnswer: int(sizes.Answer())}
	s.aggregated = aggregator.New(aggregator.Config{
		Cache: s.Cache, Services: resolver, Slices: slices, Certificate: cfg.Aggregation.Certificate, TellUID: cfg.Feature("RemoteRequestHeaderUID"),
		Trace: trace, Dial: aggregator.Through(cfg.Egress.Cluster), ObsoleteCertificates: ofServers, Release: cfg.Release,
	})
	s.Metrics.Registry.MustRegister(s.aggregated)
	s.Metrics.Aggregated = s.aggregated.RemoteVersions
	s.proxy = &aggregator.Proxy{
		By: s.aggregated, RejectRedirects: !cfg.Aggregation.Redirects, Timeout: cfg.RequestTimeout, Lasts: filters.LongRunning,
		Read: max(cfg.MaxInFlight, 0) / 2, Write: max(cfg.MaxMutatingInFlight, 0) / 2, Fail: s.fail,
	}
	s.remote = documents.New(documents.Config{
		Cache: s.Cache, Services: s.aggregated.Services, Backend: s.aggregated, Proxy: s.proxy.Serve, Agent: webhookAgent, Log: cfg.Log, Clock: cfg.Clock,
	})
	s.Custom = definitions.New(cfg.Catalogue, s.Cache, s.converter, cfg.Log)
	s.objects.FollowWith(s.Custom.Follow)
	s.Schemas = schema.New(cfg.Catalogue)
	s.Schemas.Custom = s.Custom.Merging
	s.watching, s.endWatches = context.WithCancel(context.Background())
	if cfg.Listener != nil {
		s.accepting = &accepting{Listener: cfg.Listener, log: cfg.Log, failed: s.Metrics.AcceptFailed}
	}
	s.own = &ownObjects{cfg: &s.cfg, api: s, cache: s.Cache}
	s.Health = s.checks()
	who := s.authentication()
	if err := s.newVerbs(who); err != nil {
		return nil, err
	}
	if err := s.newDocuments(); err != nil {
		return nil, err
	}
	steps := s.steps(who.Authenticator)
	s.handler, s.loopback = chain(steps, http.HandlerFunc(s.route)), chain(inside(steps), http.HandlerFunc(s.route))
	return s, nil
}

// newMetrics registers the metrics of all parts made so far, and those of the Config.
func (s *Server) newMetrics() {
	s.Metrics = metrics.New(s.cfg.Catalogue, s.cfg.Clock)
	s.Metrics.Shown = s.cfg.Metrics
	register := s.Metrics.Registry.MustRegister
	register(metrics.State{Store: s.cfg.Store, Cache: s.Cache, Catalogue: s.cfg.Catalogue, ByGroup: s.cfg.Release.Has(release.MetricsByGroup)}, metrics.JSON{Codec: s.Cache.JSON()}, s.controllers, metrics.Build(s.cfg.Version))
	register(s.cfg.Collectors...)
	if s.cacheFile.from != nil {
		register(s.cacheFile)
	}
	register(s.flows.Collectors()...)
}

// forms returns the served wire forms.
func (s *Server) forms() forms.Forms {
	return forms.Forms{JSON: s.Cache.JSON(), CBOR: s.cfg.Feature("CBORServingAndStorage")}
}

// authentication makes the authenticator.
func (s *Server) authentication() access.Authentication {
	if s.cfg.Authenticate == nil {
		return access.Authentication{Authenticator: s.cfg.Authenticator}
	}
	return s.cfg.Authenticate(access.Host{Catalogue: s.cfg.Catalogue, Cache: s.Cache, Objects: s.objects, API: s})
}

// newDocuments makes the documents that describe the API.
func (s *Server) newDocuments() (err error) {
	c := &s.cfg
	s.openapi = schema.NewDocuments(c.Catalogue, c.Release.String())
	s.openapi.CBOR = s.forms().CBOR
	s.openapi.CustomSchema = func(r *kinds.Resource) stdjson.RawMessage {
		if text := history.OpenAPI(r); text != nil {
			return text
		}
		return s.Custom.OpenAPI(r)
	}
	s.openapi.CustomText = func(r *kinds.Resource) []byte { return s.Custom.Text(r) }
	s.openapi.CustomDigest = definitions.Digest
	s.openapi.Others, s.openapi.Fail = s.remote, s.fail
	s.discovery, err = discovery.New(discovery.Config{
		Catalogue: c.Catalogue, Follow: func() { s.Custom.Follow() }, Services: s.remote.Services, Codecs: s.forms().Discovery(), VersionCodecs: s.forms().Versions(),
		Compress: c.Feature("APIResponseCompression"), NoHashes: !c.Feature("StorageVersionHash"), Single: !c.Feature("AggregatedDiscoveryEndpoint"), OnlyV2: c.Feature("AggregatedDiscoveryRemoveBetaType"), Address: c.Address, Version: c.Version, Fail: s.failText,
	})
	if err != nil {
		return fmt.Errorf("discovery: %w", err)
	}
	s.Metrics.Registry.MustRegister(s.discovery)
	return nil
}

// Config returns the configuration of the server.
func (s *Server) Config() *Config { return &s.cfg }

// Ready reports whether the server serves: stored objects are loaded, and the cluster's own objects exist.
func (s *Server) Ready() bool { return s.stage.Load() == stageServing }

// Started is closed when Ready becomes true.
func (s *Server) Started() <-chan struct{} { return s.started }

// Handler serves all requests; tests call it without a listener.
func (s *Server) Handler() http.Handler { return s.handler }

// Run listens, loads the cache, serves, and drains when ctx ends. It closes the listener. Until everything is
// loaded, only health checks are answered; other requests wait.
func (s *Server) Run(ctx context.Context) (err error) {
	defer s.endWatches()
	f := s.open()
	defer func() {
		if err != nil {
			f.close()
		}
	}()
	from, err := s.cacheFile.load(ctx)
	if err != nil {
		return fmt.Errorf("loading the stored objects: %w", err)
	}
	s.own.logCorrupt()
	s.begin(stageWriting)
	// Loops outlive ctx: requests in flight still need them.
	loops, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoops()
	group, loops := errgroup.WithContext(loops)
	s.start(loops, group, s.upkeep(from))
	if err := s.own.begin(ctx, loops.Done()); err != nil {
		stopLoops()
		return errors.Join(fmt.Errorf("writing the cluster's own objects: %w", err), group.Wait())
	}
	s.begin(stageLooping)
	s.start(loops, group, s.work(from))
	s.begin(stageServing)
	select {
	case <-ctx.Done():
		err = s.drain(f)
	case <-f.served:
		err = fmt.Errorf("serving: %w", f.err)
	case <-loops.Done(): // a loop failed
		f.close()
	}
	stopLoops()
	err = errors.Join(err, group.Wait())
	s.cacheFile.stop()
	s.Cache.Close() // no more changes are applied
	s.aggregated.Close()
	s.webhooks.Close()
	return err
}
