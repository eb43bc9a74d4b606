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
	"github.com/rowlock/rowlock/server/controllers/claims"
	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/migrations"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Host gives controllers access to the server.
type Host struct {
	API          reconcile.API
	Cache        *cache.Cache
	Catalogue    *kinds.Catalogue
	Follow       func()              // updates Catalogue with all definitions in Cache; may be nil
	Definitions  *definitions.Reader // may be nil
	Objects      migrations.Restorer
	Authorizer   authx.Authorizer
	Log          *slog.Logger
	Clock        func() time.Time
	Moves        reconcile.Moves // of the clock
	Metrics      *reconcile.Metrics
	Aggregator   *aggregator.Aggregator
	Remote       reconcile.RemoteResources
	Start        int64 // the store's revision when the server started
	AnyNamespace bool  // objects may be made in namespaces that are not there
	Release      release.Version
}

// base returns the Base of a controller whose metrics have a name; "": no metrics.
func (h *Host) base(queue string) reconcile.Base {
	b := reconcile.Base{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Start: h.Start}
	if queue != "" {
		b.Meter = h.Metrics.Of(queue)
	}
	return b
}

// serves returns the first group and version at which the server serves a kind; "": it does not.
func (h *Host) serves(storage string) string {
	for _, r := range h.Catalogue.All() {
		if r.Storage != nil && r.Storage.Key == storage {
			return r.Group + "/" + r.Version
		}
	}
	return ""
}

// debounced is base for a controller, or a part of one, that leaves new changes alone for a while unless its
// switch was named.
func (h *Host) debounced(c *Config, name, queue string) reconcile.Base {
	b := h.base(queue)
	b.Debounce = c.Debounce(name)
	return b
}

// Config selects the running controllers, and holds their parameters.
type Config struct {
	// Runs reports whether a controller, or the part of one that has a switch, runs. Nil: as with the zero
	// Selection.
	Runs func(name string) bool
	// Named reports whether a controller runs, or does the work of a switch, because it was
	// named, and not because it is on by default; see Debounce. Nil: none was.
	Named func(name string) bool
	// ManagerLease is the Lease, as namespace/name, that a kube-controller-manager renews;
	// see reconcile.Standby. Empty: reconcile.DefaultManagerLease.
	ManagerLease string
	// NeverStandby has controllers work even while a kube-controller-manager does.
	NeverStandby bool
	// Sign signs certificates of kubelets and clients; nil: none are signed.
	Sign func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error)
	// Authority reads, as PEM, the authorities that are published in each namespace.
	Authority func() ([]byte, error)
	// IssueForSecret signs tokens that Secrets hold; see accounts.Tokens. Nil: none are signed.
	IssueForSecret func(namespace, account, uid, secret string) (string, error)
	// JoinAt is the URL at which machines that join by a bootstrap token reach the API;
	// see clusterinfo.Publisher. Empty: it is not published.
	JoinAt string
	// Authentication reads the data that is published for extension servers about how requests are
	// authenticated; see clusterinfo.Authentication. Nil: none is published.
	Authentication func() (map[string]string, error)
	// NamespaceInterval and NamespaceWorkers are the parameters of namespaces.Controller; PodsFirst deletes
	// Pods before everything else.
	NamespaceInterval time.Duration
	NamespaceWorkers  int
	PodsFirst         bool
	// ServiceNetworks are the networks of the default ServiceCIDR, if ServiceCIDRs define the networks of
	// services; otherwise none.
	ServiceNetworks []netip.Prefix
	// Host is the name of the host, by which other servers identify this one; see storageversions.Identity.
	// Empty: the server publishes no identity.
	Host string
	// StorageVersions makes the server publish the versions in which it stores objects.
	StorageVersions bool
	// GarbageWorkers is the number of objects that the garbage collector processes concurrently. 0:
	// garbage.Workers.
	GarbageWorkers int
	// TerminatedPods is the number of terminated pods that PodCollector keeps; 0 or less: all.
	TerminatedPods int
	// QuotaInterval is the interval of full recounts of quotas; 0: 5 minutes; less: never.
	QuotaInterval time.Duration
	// Elections has the server choose leaders among LeaseCandidates, where these are served. Nil: it does
	// not.
	Elections *elections.Config
}

// debounceFor is the delay after a change of a controller that the configuration does not name.
// Clients of a server without a kube-controller-manager read back their own writes and
// expect to find them unchanged, as on a stock server; a second is longer than such a read takes, and
// short for people. A kube-controller-manager takes as long to notice a change on a
// busy cluster, and all servers of a store have received it by then.
const debounceFor = time.Second

// debounceLonger are controllers whose objects clients of such a server read later and expect unchanged, as recorded
// answers show: the rules of a role, the objects of a terminating namespace and a claim that is being deleted after one
// second, the Secrets of tokens after three, the ConfigMaps of a namespace after five.
var debounceLonger = map[string]time.Duration{
	"namespace":      5 * time.Second,
	"pvc-protection": 3 * time.Second, "pv-protection": 3 * time.Second,
	claims.ClassesSwitch: 3 * time.Second, claims.GroupsSwitch: 3 * time.Second,
	"serviceaccount-token": 10 * time.Second, "clusterrole-aggregation": 10 * time.Second, "root-ca-cert-publisher": 10 * time.Second,
}

// Debounce returns how long a controller, or a part of one, leaves changes alone: zero if its switch was named.
func (c *Config) Debounce(name string) time.Duration {
	if c.Named != nil && c.Named(name) {
		return 0
	}
	return max(debounceFor, debounceLonger[name])
}
