package server

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"os"
	"regexp"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/access"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/plugins"
	"github.com/rowlock/rowlock/server/audit"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/health"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/metrics"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/verbs/components"
	"github.com/rowlock/rowlock/server/verbs/podverbs"
	"github.com/rowlock/rowlock/server/verbs/reviews"
	"github.com/rowlock/rowlock/server/verbs/tokenverbs"
	"github.com/rowlock/rowlock/server/webhook"
	"github.com/rowlock/rowlock/sqlstore"
)

// Config configures a Server. Fields without a named default are required.
type Config struct {
	Store         *sqlstore.Store
	Catalogue     *kinds.Catalogue
	Authenticator authx.Authenticator // default: made by Authenticate
	Authorizer    authx.Authorizer
	TLS           *tls.Config
	Listener      net.Listener // plain TCP; closed by Run. If it and TLS are nil, requests arrive only through Handler

	// Authenticate makes the authenticator of a server and the reviewer of tokens, for those that read the
	// server's objects. New calls it once.
	Authenticate func(access.Host) access.Authentication

	// ClientAuthorities are the authorities that the server names in handshakes, from which clients choose
	// their certificate; nil: none. They may change.
	ClientAuthorities func() *x509.CertPool

	// Cache comes from NewCache, for an Authorizer that follows objects; default: made by New.
	Cache *cache.Cache
	// CacheFile configures the copy of the cache from which the next start loads.
	CacheFile CacheFile
	// Policy holds the roles and bindings that must exist after the start; nil: none.
	Policy *access.Policy
	// Admission selects the release's admission plugins.
	Admission plugins.Config
	// Plugins run after those of Admission, and cannot be disabled.
	Plugins []admission.Plugin
	// Kubelet configures connections to kubelets, Tokens the issuing and review of service account tokens,
	// Reviews access reviews, and Components the checks of componentstatuses. The server does not offer those
	// that are nil.
	Kubelet    *podverbs.Kubelet
	Tokens     *tokenverbs.Config // except for its Review
	Reviews    *reviews.Config
	Components []components.Component
	// Aggregation configures requests to aggregated API servers.
	Aggregation Aggregation
	// Egress configures outgoing connections.
	Egress Egress
	// Around are filters for each request of other clients. They run in this order, after authentication and
	// before limits and authorization.
	Around []filters.Filter
	// BeforeWebhook is called before each call of a webhook; its error fails the call, and it may delay it.
	// It may be nil.
	BeforeWebhook func(ctx context.Context, t webhook.Target) error
	// Special are additional handlers of virtual resources and subresources; they take precedence over the
	// built-in ones. See verbs.Handler.
	Special map[string]verbs.Special
	// Paths are additional handlers of non-resource paths. One whose path ends in a slash serves the paths below too that have no
	// handler of their own.
	Paths map[string]http.Handler
	// Routes are non-resource paths that check the method and media type, and own the paths below them.
	Routes map[string]Route
	// Controllers selects and configures the controllers.
	Controllers controllers.Config
	// Loops belong to parts of this Config, such as authenticators that reload files.
	Loops []Loop
	// Collectors are additional metrics.
	Collectors []prometheus.Collector
	// Metrics selects the exposed metrics.
	Metrics metrics.Selection
	// Audit records requests; nil: no audit log.
	Audit *audit.Auditor
	// Tracer exports spans of requests; nil: no tracing.
	Tracer *tracing.Tracer
	// ReadyChecks are additional health checks of /readyz. They do not count for /livez, because a restart would
	// not help.
	ReadyChecks []health.Check
	// Bootstrap configures the objects that the first start writes.
	Bootstrap Bootstrap

	// StandardOwnership computes field ownership with the library only. The codec of the Cache has the same
	// choice for JSON.
	StandardOwnership bool
	// DeletesApart is the time for which watches show a Pod without a grace period as terminating before it
	// is removed; 0: no longer than needed.
	DeletesApart time.Duration

	Release             release.Version        // the emulated release; the zero value is release.Default
	Feature             func(gate string) bool // nil: the default gates of the release
	Version             version.Info
	Address             string        // the server's address for clients, host:port
	RequestTimeout      time.Duration // default 60s
	WatchFor            time.Duration // the shortest timeout of a watch that requests none, and half of the longest; default 30 minutes
	ShutdownDelay       time.Duration // time to continue serving after readyz fails; default 0
	ShutdownGrace       time.Duration // the longest time for requests in flight to finish; default 60s
	LivezGrace          time.Duration // time for which /livez ignores that the server is starting; default 0
	Serving             Serving
	MaxInFlight         int // default 400; negative: no limit
	MaxMutatingInFlight int // default 200; negative: no limit
	// Limits apply to users and to long-running requests; Read and Write above take the place of its fields
	// of these names.
	Limits filters.Limits
	// MaxObjectBytes is the maximum size of a stored object as JSON; default budget.DefaultObject.
	MaxObjectBytes int64
	// PlainLimits limits requests by their number alone, without flow schemas and priority levels.
	PlainLimits bool
	Log         *slog.Logger
	Clock       func() time.Time
	// ClockMoves makes controllers look at the clock when a test moves it: the next move closes the returned
	// channel. It may be nil.
	ClockMoves func() <-chan struct{}
	// Started is called once, when the server serves requests. It may be nil.
	Started func()
}

// Serving configures HTTP. The zero value is the default.
type Serving struct {
	MaxStreams      uint32           // concurrent requests of an HTTP/2 connection; default 100
	NoHTTP2         bool             // serve HTTP/1.1 only
	GoawayChance    float64          // share of requests after which the server asks the client to reconnect
	StrictTransport string           // value of the header Strict-Transport-Security
	Origins         []*regexp.Regexp // web pages of these origins may use the API
	RefuseLeaving   bool             // while draining, keep listening and answer 429
	HTTP2           HTTP2Mode        // implementation of HTTP/2; default OwnHTTP2
	WatchGrace      time.Duration    // period over which the server ends watches while draining; default: all at once
}

// HTTP2Mode selects the implementation of HTTP/2.
type HTTP2Mode string

const (
	// OwnHTTP2 is package h2, whose watches need no goroutine; package h1stream does the same for HTTP/1.1.
	OwnHTTP2 HTTP2Mode = "own"
	// StandardHTTP2 is package net/http alone: slower, with a goroutine for each watch.
	StandardHTTP2 HTTP2Mode = "standard"
)

// Aggregation configures requests to aggregated API servers.
type Aggregation struct {
	// Certificate is this server's current client certificate; nil: it shows none.
	Certificate func() *tls.Certificate
	// Redirects passes redirects of aggregated servers on to clients, who follow them with their credentials;
	// otherwise redirects are errors.
	Redirects bool
}

// Egress makes connections: to nodes, Pods and Services of the cluster, and to webhooks with URLs. The server
// dials directly those that are nil.
type Egress struct {
	Cluster, ControlPlane func(ctx context.Context, network, address string) (net.Conn, error)
}

// Bootstrap holds the parameters of the cluster's own objects.
type Bootstrap struct {
	ServiceIP     net.IP // of the kubernetes Service
	AdvertiseIP   net.IP // of its endpoint
	AdvertisePort int
}

func (c *Config) complete() error {
	for name, missing := range map[string]bool{
		"Store": c.Store == nil, "Catalogue": c.Catalogue == nil, "Authenticator": (c.Authenticator == nil) == (c.Authenticate == nil),
		"Authorizer": c.Authorizer == nil, "TLS": c.TLS == nil && c.Listener != nil, "Listener": c.Listener == nil && c.TLS != nil,
	} {
		if missing {
			return errors.New("server: Config." + name + " is missing")
		}
	}
	if c.Feature == nil {
		c.Feature = gates.New(c.Release).Enabled
	}
	if err := c.Admission.Validate(c.Release); err != nil {
		return err
	}
	if c.RequestTimeout <= 0 {
		c.RequestTimeout = time.Minute
	}
	c.Serving.MaxStreams = cmp.Or(c.Serving.MaxStreams, 100)
	if c.ShutdownGrace <= 0 {
		c.ShutdownGrace = time.Minute
	}
	c.MaxInFlight = cmp.Or(c.MaxInFlight, 400)
	c.MaxMutatingInFlight = cmp.Or(c.MaxMutatingInFlight, 200)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return nil
}

// SetDefaults sets the fields that every general-purpose server derives from others; Feature and Address must be
// set. services are the networks of services.
func (c *Config) SetDefaults(services []netip.Prefix) {
	if c.Feature("APIServerIdentity") {
		host, err := os.Hostname()
		if err != nil { // without a host name, the server counts as the only one on its host
			host = c.Address
		}
		c.Controllers.Host, c.Controllers.StorageVersions = host, c.Feature("StorageVersionAPI")
	}
	if c.Feature("MultiCIDRServiceAllocator") {
		c.Controllers.ServiceNetworks = services
	}
	c.Controllers.PodsFirst = c.Feature("OrderedNamespaceDeletion")
	c.Components = []components.Component{components.Local("scheduler", 10259), components.Local("controller-manager", 10257)}
	if c.Kubelet == nil {
		c.Kubelet = &podverbs.Kubelet{}
	}
}
