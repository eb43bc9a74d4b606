package documents

import (
	"cmp"
	"log/slog"
	"net/http"
	"reflect"
	"sync"
	"time"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/discovery"
)

// Config configures Documents. All fields but the last two are required.
type Config struct {
	Cache    *cache.Cache
	Services func() *aggregator.Services
	Backend  Backend
	// Proxy passes the request of a client on to the server behind an APIService.
	Proxy func(w http.ResponseWriter, r *http.Request, s *apiregistrationv1.APIService)
	Agent string // User-Agent
	Log   *slog.Logger
	Clock func() time.Time // nil: time.Now
	// Interval is the time between fetches from a server that answers; 0: a minute.
	Interval time.Duration
}

// Documents are the documents of all aggregated servers. They are safe for concurrent use.
type Documents struct {
	cfg Config

	mu      sync.Mutex
	servers map[origin]*server
	changed bool                 // documents have changed since the listing was made
	seen    *aggregator.Services // from which the listing was made
	listing []discovery.Service
	number  uint64 // of the listing

	openAPI uint64 // rises with each change of an OpenAPI document
}

// origin identifies a server: APIServices that lead to the same server in the same way share its documents.
type origin struct {
	namespace, name, bundle string
	port                    int32
	insecure                bool
}

func originOf(s *apiregistrationv1.APIService) origin {
	o := origin{namespace: s.Spec.Service.Namespace, name: s.Spec.Service.Name, bundle: string(s.Spec.CABundle), port: 443, insecure: s.Spec.InsecureSkipTLSVerify}
	if s.Spec.Service.Port != nil {
		o.port = *s.Spec.Service.Port
	}
	return o
}

// New makes Documents, which know nothing before Run.
func New(cfg Config) *Documents {
	if cfg.Clock == nil {
		cfg.Clock = time.Now
	}
	cfg.Interval = cmp.Or(cfg.Interval, interval)
	return &Documents{cfg: cfg, servers: map[origin]*server{}}
}

// Services returns all APIServices, with the documents of other servers, and a number that rises when the list
// changes. It is for discovery.
func (d *Documents) Services() ([]discovery.Service, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// The number must not be newer than the list: otherwise an older list could replace a newer one.
	services := d.cfg.Services()
	if services == d.seen && !d.changed {
		return d.listing, d.number
	}
	d.seen, d.changed = services, false
	list := make([]discovery.Service, 0, len(services.All()))
	for _, s := range services.All() {
		entry := discovery.Service{Group: s.Spec.Group, Version: s.Spec.Version, GroupPriority: s.Spec.GroupPriorityMinimum, VersionPriority: s.Spec.VersionPriority}
		if s.Spec.Service != nil {
			entry.Remote = true
			if at := d.servers[originOf(s)]; at != nil {
				entry.Discovery = at.discoveryOf(aggregator.GroupVersion(s))
			}
		}
		list = append(list, entry)
	}
	if d.number == 0 || !reflect.DeepEqual(list, d.listing) {
		d.listing, d.number = list, d.number+1
	}
	return d.listing, d.number
}

// discoveryOf returns the last discovery document of a version; nil before the first fetch.
func (s *server) discoveryOf(gv schema.GroupVersion) *discoveryv2.APIVersionDiscovery {
	switch {
	case s.result == nil:
		return nil
	case s.result.err != nil, s.result.failed[gv] != nil:
		return &discoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: discoveryv2.DiscoveryFreshnessStale}
	}
	if v := s.result.versions[gv]; v != nil {
		return v
	}
	if s.result.lists { // this version was not fetched yet
		return nil
	}
	return &discoveryv2.APIVersionDiscovery{Version: gv.Version, Freshness: discoveryv2.DiscoveryFreshnessCurrent}
}
