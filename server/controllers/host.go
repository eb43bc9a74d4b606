package controllers

import (
	"crypto/x509"
	"log/slog"
	"net/netip"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/migrations"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Host is what a server lets its controllers use.
type Host struct {
	API         reconcile.API
	Cache       *cache.Cache
	Catalogue   *kinds.Catalogue
	Follow      func()              // has Catalogue know all definitions that Cache has; may be nil
	Definitions *definitions.Reader // may be nil
	Objects     migrations.Restorer
	Authorizer  authx.Authorizer
	Log         *slog.Logger
	Clock       func() time.Time
	Moves       reconcile.Moves // of the clock
	Metrics     *reconcile.Metrics
	Aggregator  *aggregator.Aggregator
	Elsewhere   reconcile.Elsewhere
	Homeless    bool // objects may be made in namespaces that are not there
	Release     release.Version
}

// base is what a controller works with whose work is measured under a name, "": it is not.
func (h *Host) base(queue string) reconcile.Base {
	b := reconcile.Base{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves}
	if queue != "" {
		b.Meter = h.Metrics.Of(queue)
	}
	return b
}

// settling is base for a controller, or a part of its work, that leaves alone for a while what it sees unless its switch
// was named.
func (h *Host) settling(c *Config, name, queue string) reconcile.Base {
	b := h.base(queue)
	b.Settle = c.Settle(name)
	return b
}

// Config says which controllers run, and gives them what only operators know.
type Config struct {
	// Runs says whether a controller runs, or, of one that has switches, whether it does
	// the work of a switch. Nil: as the zero Selection says.
	Runs func(name string) bool
	// Named says whether a controller runs, or does the work of a switch, because it was
	// named, and not because it is on by default; see Settle. Nil: none was.
	Named func(name string) bool
	// ManagerLease is the Lease, as namespace/name, that a kube-controller-manager renews;
	// see reconcile.Standby. Empty: reconcile.DefaultManagerLease.
	ManagerLease string
	// NeverStandby has controllers work beside a kube-controller-manager.
	NeverStandby bool
	// Sign signs certificates of kubelets and clients; nil: nobody does.
	Sign func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error)
	// Authority reads, as PEM, the authorities that each namespace is told of.
	Authority func() ([]byte, error)
	// IssueForSecret signs tokens that Secrets hold; see accounts.Tokens. Nil: nobody does.
	IssueForSecret func(namespace, account, uid, secret string) (string, error)
	// JoinAt is the URL at which machines that join by a bootstrap token reach the API;
	// see clusterinfo.Publisher. Empty: they are told nothing.
	JoinAt string
	// Authentication reads what extension servers are told of how requests are
	// authenticated; see clusterinfo.Authentication. Nil: they are told nothing.
	Authentication func() (map[string]string, error)
	// NamespaceInterval and NamespaceWorkers are those of namespaces.Controller; PodsFirst has Pods go before
	// everything else.
	NamespaceInterval time.Duration
	NamespaceWorkers  int
	PodsFirst         bool
	// ServiceNetworks are those of the default ServiceCIDR, where ServiceCIDRs say from which
	// networks services get their addresses; else none.
	ServiceNetworks []netip.Prefix
	// Host is the name of the host, by which others know of this server; see storageversions.Identity. "":
	// nobody shall.
	Host string
	// StorageVersions has the server say in which versions it stores objects, where others
	// know of it.
	StorageVersions bool
	// GarbageWorkers is how many objects the garbage collector works on at once. 0:
	// garbage.Workers.
	GarbageWorkers int
	// TerminatedPods is how many pods that have ended PodCollector keeps; 0 or less: all.
	TerminatedPods int
	// QuotaInterval is how often quotas are counted everything; 0: every 5 minutes; less: never.
	QuotaInterval time.Duration
	// Elections has leaders chosen among LeaseCandidates, where these are served. Nil: nobody
	// chooses.
	Elections *elections.Config
}

// settleFor is for how long a controller that nobody asked for leaves alone what it sees.
// Clients of a server without a kube-controller-manager look at what they just did and
// expect to find that, as on a stock server; a second is longer than such a look takes, and
// shorter than people wait. A kube-controller-manager takes as long to notice anything on a
// busy cluster, and all servers of a store have heard of a change by then.
const settleFor = time.Second

// settleLonger are those whose objects clients of such a server look at later and expect to
// be as they left them, as recorded answers show: the rules of a role and what a terminating
// namespace holds, and a claim that is being deleted, after one second, the Secrets of tokens after three, the ConfigMaps of a
// namespace after five.
var settleLonger = map[string]time.Duration{
	"namespace":      5 * time.Second,
	"pvc-protection": 3 * time.Second, "pv-protection": 3 * time.Second,
	"serviceaccount-token": 10 * time.Second, "clusterrole-aggregation": 10 * time.Second, "root-ca-cert-publisher": 10 * time.Second,
}

// Settle is for how long the controller, or the part of its work, that has a switch leaves
// alone what it sees: not at all where that was named.
func (c *Config) Settle(name string) time.Duration {
	if c.Named != nil && c.Named(name) {
		return 0
	}
	return max(settleFor, settleLonger[name])
}
