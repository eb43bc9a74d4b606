package aggregator

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"sync"
	"sync/atomic"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/aggregator/endpoints"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/follow"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/webhook"
)

// Config configures an Aggregator.
type Config struct {
	Cache *cache.Cache
	// Services finds out where Services are.
	Services *webhook.Resolver
	// Slices finds the EndpointSlices of Services; nil: an index of its own.
	Slices *endpoints.Index
	// Certificate returns this server's present client certificate; if it or its result is nil, the server
	// shows none.
	Certificate func() *tls.Certificate
	// Dial reaches addresses where they are not on this server's network; nil dials them
	// directly.
	Dial func(ctx context.Context, network, address string) (net.Conn, error)
	// Trace sets the headers for the trace of a request; nil leaves the
	// headers as they are.
	Trace func(ctx context.Context, h http.Header)
	// ObsoleteCertificates counts certificates of deprecated forms; nil: not counted.
	ObsoleteCertificates *webhook.ObsoleteCertificates
	// TellUID passes on the UID of users as well, in X-Remote-Uid.
	TellUID bool
	// Release is the release whose messages are used.
	Release release.Version
}

// Aggregator knows the servers behind this one. It is safe for concurrent use.
type Aggregator struct {
	cfg      Config
	follower *follow.Follower
	byName   map[string]*apiregistrationv1.APIService // guarded by the follower's lock
	services atomic.Pointer[Services]                 // made from byName; nil: must be made
	headers  atomic.Pointer[published]                // as they were read last

	mu       sync.Mutex
	backends map[backendKey]*backend
	routes   map[webhook.Service]*route
	verdicts map[string]*checkedService // by the name of the APIService
	turned   map[turn]uint64            // how often one was found to be unavailable
	changed  chan struct{}              // holds an element when an availability has changed
}

// New makes an Aggregator, which reads nothing before its first use.
func New(cfg Config) *Aggregator {
	if cfg.Slices == nil {
		cfg.Slices = endpoints.New(cfg.Cache)
	}
	a := &Aggregator{cfg: cfg, backends: map[backendKey]*backend{}, routes: map[webhook.Service]*route{}, verdicts: map[string]*checkedService{}, turned: map[turn]uint64{}, changed: make(chan struct{}, 1)}
	a.follower = follow.New(cfg.Cache, a.reset, follow.Kind{Storage: Storage, Set: a.set, Delete: a.forget})
	return a
}
