// Package server puts the API server together: the filters in their order, the
// routes behind them, and every loop that runs while it serves.
//
// It promises: Run returns when everything that it started has ended. All loops are
// listed in loops.go.
package server

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sync/atomic"

	"github.com/prometheus/client_golang/prometheus"
	"golang.org/x/sync/errgroup"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/forms"
	jsoncodec "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/codecs/packed"
	"github.com/rowlock/rowlock/codecs/protobuf"
	"github.com/rowlock/rowlock/codecs/yaml"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/apply"
	"github.com/rowlock/rowlock/server/apply/ownership"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/conns"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/discovery"
	"github.com/rowlock/rowlock/server/flow"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/schema"
	"github.com/rowlock/rowlock/server/verbs"
)

// packedBytes is how much is kept of compressed lists: some 5,000 Pods of 5 KB take
// two to four million bytes of it.
const packedBytes = 16 << 20

// Server is one API server.
type Server struct {
	cfg     Config
	Cache   *cache.Cache
	Schemas *schema.Schemas
	Verbs   *verbs.Handler
	Health  *health.Checks
	Metrics *metrics.Metrics
	Custom  *definitions.Follower

	queues     *controllers.Queues
	flows      *flow.Classifier
	dynamic    dynamic
	discovery  *discovery.Handler
	openapi    *schema.Documents
	handler    http.Handler
	loopback   http.Handler    // for calls in process
	watching   context.Context // ends when the server drains
	endWatches context.CancelFunc
	stage      atomic.Int32
	started    chan struct{} // closed when the server serves
	leaving    chan struct{} // closed when it takes no more requests
	running    atomic.Int64  // requests, where they are counted
	following  atomic.Bool   // the store tells the cache of changes
	impaired   impaired
}

// New puts a server together. Nothing runs and nothing is read until Run.
func New(cfg Config) (*Server, error) {
	if err := cfg.complete(); err != nil {
		return nil, err
	}
	s := &Server{
		cfg: cfg, Schemas: schema.New(cfg.Catalogue),
		started: make(chan struct{}), leaving: make(chan struct{}), flows: flow.New(),
	}
	s.Cache = cache.NewWith(cfg.Catalogue, cache.Config{Corrupt: s.feedCorrupt})
	s.Custom = definitions.New(cfg.Catalogue, s.Cache, s.converter, cfg.Log)
	s.Schemas.Custom = s.Custom.Merging
	for _, f := range append(cfg.Followers, s.flows.Follower) {
		f.Attach(s.Cache)
	}
	s.Metrics = metrics.New(cfg.Catalogue, cfg.Clock)
	s.Metrics.Shown = cfg.Metrics
	s.Metrics.Registry.MustRegister(append([]prometheus.Collector{metrics.State{Store: cfg.Store, Cache: s.Cache}}, cfg.Collectors...)...)
	s.queues = controllers.NewQueues(cfg.Clock)
	s.Metrics.Registry.MustRegister(s.queues)
	s.Metrics.Registry.MustRegister(append(s.flows.Collectors(), metrics.Build(cfg.Version))...)
	s.watching, s.endWatches = context.WithCancel(context.Background())
	store := objects.New(cfg.Catalogue, cfg.Store, s.Cache)
	s.Verbs = &verbs.Handler{
		Catalogue: cfg.Catalogue, Follow: s.Custom.Follow, Objects: store, Answers: s.answers(store),
		Owner:      ownership.New(ownership.Config{Schemas: s.Schemas, StandardOnly: cfg.StandardOwnership, Count: s.Metrics.Ownership, Log: cfg.Log}),
		Patcher:    apply.New(apply.Config{StandardOnly: cfg.StandardMerge, Count: s.Metrics.StrategicMerge, Log: cfg.Log}),
		Authorizer: cfg.Authorizer, Feature: cfg.Feature, Special: cfg.Special, Clock: cfg.Clock, Log: cfg.Log, WatchFor: cfg.WatchFor, Measure: s.Metrics,
		Gate:     budget.NewGate(),
		Delivery: conns.NewDelivery(conns.DeliveryConfig{Mode: cfg.Serving.WatchDelivery, Log: cfg.Log, Observer: s.Metrics.Delivery}),
	}
	plugins, err := s.plugins()
	if err != nil {
		return nil, err
	}
	reading := policy.Reading{Authorizer: cfg.Authorizer, Catalogue: cfg.Catalogue, Objects: stored{s}}
	s.Verbs.Admission = admission.NewChain(slices.Concat([]admission.Plugin{reading}, plugins, cfg.Plugins)...)
	s.Verbs.Admission.Observer = s.Metrics
	s.Health = s.checks()
	s.openapi = schema.NewDocuments(cfg.Catalogue, cfg.Version.Major+"."+cfg.Version.Minor)
	s.openapi.CBOR = cfg.Feature("CBORServingAndStorage")
	s.openapi.CustomSchema = s.Custom.OpenAPI
	s.discovery, err = discovery.New(discovery.Config{
		Catalogue: cfg.Catalogue, Codecs: []codecs.Codec{jsoncodec.Codec{}, yaml.Codec{}, protobuf.Codec{}},
		Address: cfg.Address, Version: cfg.Version, Fail: s.fail,
	})
	if err != nil {
		return nil, fmt.Errorf("discovery: %w", err)
	}
	steps := s.steps()
	s.handler, s.loopback = chain(steps, http.HandlerFunc(s.route)), chain(inside(steps), s.Verbs)
	return s, nil
}

// answers is what leaves the server of what is stored.
func (s *Server) answers(store *objects.Store) *answers.Answers {
	on := s.cfg.Feature
	return &answers.Answers{
		Items: store, Forms: forms.Forms{CBOR: on("CBORServingAndStorage")}, Packed: packed.New(packedBytes), Line: budget.NewLine(),
		Clock: s.cfg.Clock, Log: s.cfg.Log,
		Compress: on("APIResponseCompression"), NameCorrupt: on("AllowUnsafeMalformedObjectDeletion"),
	}
}

// Config is what the server was made of.
func (s *Server) Config() *Config { return &s.cfg }

// Ready says whether the server serves: what it stores is loaded, and the cluster's
// own objects are there.
func (s *Server) Ready() bool { return s.stage.Load() == stageServing }

// Handler serves everything; tests call it without a listener.
func (s *Server) Handler() http.Handler { return s.handler }

// Run listens, loads the cache, serves, and drains once ctx ends. It closes the
// listener. Until everything is loaded only health checks are answered; other
// requests wait.
func (s *Server) Run(ctx context.Context) error {
	defer s.endWatches()
	f, err := s.open()
	if err != nil {
		return errors.Join(err, s.cfg.Listener.Close())
	}
	if err := s.run(ctx, f); err != nil {
		f.close()
		return err
	}
	return nil
}

// run does everything but opening and, where it fails, closing the front.
func (s *Server) run(ctx context.Context, f *front) error {
	from, err := s.Cache.Load(ctx, s.cfg.Store)
	if err != nil {
		return fmt.Errorf("loading the stored objects: %w", err)
	}
	s.sayCorrupt()
	s.begin(stageWriting)
	// Loops outlive ctx: requests under way still need them.
	loops, stopLoops := context.WithCancel(context.WithoutCancel(ctx))
	defer stopLoops()
	group, loops := errgroup.WithContext(loops)
	s.start(loops, group, s.upkeep(from))
	if err := s.bootstrap(ctx); err != nil {
		stopLoops()
		return errors.Join(fmt.Errorf("writing the cluster's own objects: %w", err), group.Wait())
	}
	s.begin(stageLooping)
	s.start(loops, group, s.work())
	s.begin(stageServing)
	select {
	case <-ctx.Done():
		err = s.drain(f)
	case <-f.served:
		err = fmt.Errorf("serving: %w", f.err)
	case <-loops.Done(): // one of them failed
		f.close()
	}
	stopLoops()
	return errors.Join(err, group.Wait())
}
