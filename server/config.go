package server

import (
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

// Config is what a server is made of. Zero values take the defaults named; what has
// none is required.
type Config struct {
	Store         *sqlstore.Store
	Catalogue     *kinds.Catalogue
	Authenticator authx.Authenticator // nil: Authenticate makes it
	Authorizer    authx.Authorizer
	TLS           *tls.Config
	Listener      net.Listener // plain TCP; closed by Run. Nil, as TLS then is: requests come by Handler alone

	// Authenticate makes the authenticator of a server, and what reviews tokens, where
	// they look at the server's objects. New calls it once.
	Authenticate func(access.Host) access.Authentication

	// ClientAuthorities are those that handshakes name, for clients to choose among their
	// certificates; nil: none. They may change.
	ClientAuthorities func() *x509.CertPool

	// Cache is that of NewCache, for an Authorizer that follows objects; nil: New makes it.
	Cache *cache.Cache
	// CacheFile says where a copy of what the Cache holds is kept for the next start.
	CacheFile CacheFile
	// Policy is the roles and bindings that there must be from the start; nil: none.
	Policy *access.Policy
	// Admission says which of the release's admission plugins run.
	Admission plugins.Config
	// Plugins run behind them, and cannot be switched off.
	Plugins []admission.Plugin
	// Kubelet says how the node agents of pods are reached, Tokens how tokens of service
	// accounts are issued and reviewed, Reviews who answers reviews of access, Components
	// whose health componentstatuses tell. What is nil is not served.
	Kubelet    *podverbs.Kubelet
	Tokens     *tokenverbs.Config // but for its Review
	Reviews    *reviews.Config
	Components []components.Component
	// Aggregation says how other API servers are asked.
	Aggregation Aggregation
	// Egress says how connections leave.
	Egress Egress
	// Around meet each request of others once it is known who sends it, before it is limited
	// and allowed, in this order.
	Around []filters.Filter
	// BeforeWebhook is asked before each call of a webhook, and fails it with an error or takes
	// its time; nil: nobody is asked.
	BeforeWebhook func(ctx context.Context, t webhook.Target) error
	// Special are more handlers of virtual resources and subresources, which come before
	// those; see verbs.Handler.
	Special map[string]verbs.Special
	// Paths are further handlers of non-resource paths, by exact path.
	Paths map[string]http.Handler
	// Routes are non-resource paths that are strict about what they are asked, and
	// own their children.
	Routes map[string]Route
	// Controllers says which of them run, and how.
	Controllers controllers.Config
	// Loops are those of parts of this Config, such as authenticators that read files again.
	Loops []Loop
	// Collectors are more metrics.
	Collectors []prometheus.Collector
	// Metrics says which of them are shown.
	Metrics metrics.Selection
	// Audit records requests; nil records none.
	Audit *audit.Auditor
	// Tracer sends spans of requests and their parts to a collector; nil: there is none.
	Tracer *tracing.Tracer
	// Checks are more health checks, ReadyChecks those that do not count for /livez: a
	// restart would not help.
	Checks, ReadyChecks []health.Check
	// Bootstrap says what the first start writes.
	Bootstrap Bootstrap

	// StandardOwnership leaves the owners of fields to the library alone. The same for reading and
	// writing JSON is a setting of the codec of the Cache.
	StandardOwnership bool
	// DeletesApart is for how long watchers see a Pod that has no grace period be deleted,
	// before it goes; 0: as long as it takes.
	DeletesApart time.Duration

	Release             release.Version        // the release that the server behaves as; the zero value is release.Default
	Feature             func(gate string) bool // nil: gates are as they are by default in the release
	Version             version.Info
	Address             string        // where clients reach the server, host:port
	RequestTimeout      time.Duration // default 60s
	WatchFor            time.Duration // a watch without timeout lasts this to twice this; default 30 minutes
	ShutdownDelay       time.Duration // how long to go on serving once readyz is red; default 0
	ShutdownGrace       time.Duration // how long requests under way may take to finish; default 60s
	LivezGrace          time.Duration // how long /livez hides that the server is starting; default 0
	Serving             Serving
	MaxInFlight         int // default 400; negative: no limit
	MaxMutatingInFlight int // default 200; negative: no limit
	// Limits are those of users, and of requests that last; its Read and Write are the
	// two above.
	Limits filters.Limits
	// MaxObjectBytes is the size of the largest object, as JSON, that is stored; default budget.DefaultObject.
	MaxObjectBytes int64
	// PlainLimits has requests limited by their number alone, whatever flow schemas and
	// priority levels say.
	PlainLimits bool
	Log         *slog.Logger
	Clock       func() time.Time
	// ClockMoves has controllers look at the clock when somebody moves it: what it returns is
	// closed by the next move. Nil: nobody does.
	ClockMoves func() <-chan struct{}
	// Started is called once, when requests are served. It may be nil.
	Started func()
}

// Serving says how HTTP is spoken. The zero value is how it usually is.
type Serving struct {
	MaxStreams      uint32           // requests at once on an HTTP/2 connection; default 100
	NoHTTP2         bool             // speak HTTP/1.1 alone
	GoawayChance    float64          // part of requests after which the client connects anew
	StrictTransport string           // value of the header Strict-Transport-Security
	Origins         []*regexp.Regexp // whose pages in browsers may use the API
	RefuseLeaving   bool             // while shutting down, go on listening and answer 429
	HTTP2           HTTP2Mode        // which server of HTTP/2; default OwnHTTP2
	WatchGrace      time.Duration    // over which watches end while shutting down; default: all at once
}

// HTTP2Mode says which server speaks HTTP/2.
type HTTP2Mode string

const (
	// OwnHTTP2 is package h2, whose watches have no handlers; those of HTTP/1.1 are served by
	// package h1stream.
	OwnHTTP2 HTTP2Mode = "own"
	// StandardHTTP2 is package net/http for everything: slower, and larger for each watch.
	StandardHTTP2 HTTP2Mode = "standard"
)

// Aggregation says how API servers behind this one are asked.
type Aggregation struct {
	// Certificate is what this server shows them, as it is now; nil: it shows none.
	Certificate func() *tls.Certificate
	// Redirects passes redirects of theirs on to clients, who go there with what they
	// prove themselves with; else they are errors.
	Redirects bool
}

// Egress is how connections are made: to nodes, pods and Services of the cluster, and to
// what webhooks name by URL. What is nil is dialed directly.
type Egress struct {
	Cluster, ControlPlane func(ctx context.Context, network, address string) (net.Conn, error)
}

// Bootstrap is what a cluster's own objects need to know.
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
	if c.Serving.MaxStreams == 0 {
		c.Serving.MaxStreams = 100
	}
	if c.ShutdownGrace <= 0 {
		c.ShutdownGrace = time.Minute
	}
	if c.MaxInFlight == 0 {
		c.MaxInFlight = 400
	}
	if c.MaxMutatingInFlight == 0 {
		c.MaxMutatingInFlight = 200
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.Clock == nil {
		c.Clock = time.Now
	}
	return nil
}

// Usual fills in what follows from the rest of a Config, its Feature and Address above all,
// in each server that is not made for one purpose. services are the networks of services.
func (c *Config) Usual(services []netip.Prefix) {
	if c.Feature("APIServerIdentity") {
		host, err := os.Hostname()
		if err != nil { // the host name is unknown: the server counts as a host of its own
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
