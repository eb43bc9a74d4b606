// Package controllers lists the control loops that run inside the API server, so that it works without a controller
// manager, and selects which of them run. Each group of them is a package below this one; they are built from package
// reconcile.
//
// It promises: controllers change objects through the API alone, so that admission, finalizers and grace periods apply
// to them as to any other client.
package controllers

import (
	"cmp"
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"
	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/accounts"
	"github.com/rowlock/rowlock/server/controllers/aggregation"
	"github.com/rowlock/rowlock/server/controllers/apiservices"
	"github.com/rowlock/rowlock/server/controllers/certificates"
	"github.com/rowlock/rowlock/server/controllers/claims"
	"github.com/rowlock/rowlock/server/controllers/clusterinfo"
	crds "github.com/rowlock/rowlock/server/controllers/definitions"
	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/flow"
	"github.com/rowlock/rowlock/server/controllers/garbage"
	"github.com/rowlock/rowlock/server/controllers/migrations"
	"github.com/rowlock/rowlock/server/controllers/namespaces"
	"github.com/rowlock/rowlock/server/controllers/networks"
	"github.com/rowlock/rowlock/server/controllers/quotas"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/controllers/storageversions"
	"github.com/rowlock/rowlock/server/controllers/workloads"
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

// Loop is the work of a controller, for a server to run until ctx ends.
type Loop struct {
	Name       string
	EachServer bool // it runs on every server; others run on one at a time
	Run        func(ctx context.Context) error
}

// controller is an entry of the table.
type controller struct {
	name       string   // also of the lock that lets one server run it; never renamed
	switches   []string // of --controllers, one for each part of its work; none: it always runs
	eachServer bool
	// build makes its work, where a switch of it is on; nil where it would have nothing to do. Controllers that have
	// switches are those of a kube-controller-manager too, and are on standby while one works.
	build func(h *Host, c *Config) run
}

// run is the work of a controller, until ctx ends.
type run func(ctx context.Context) error

// all is the table of controllers. Docs and flags list them in this order.
var all = []controller{
	{name: "namespaces", switches: []string{"namespace"}, build: func(h *Host, c *Config) run {
		n := &namespaces.Controller{
			Base: h.settling(c, "namespace", "namespace"), Catalogue: h.Catalogue, Follow: h.Follow,
			Workers: c.NamespaceWorkers, Ordered: c.PodsFirst, Homeless: h.Homeless, Elsewhere: h.Elsewhere,
		}
		n.Retry = c.NamespaceInterval
		return n.Run
	}},
	{name: "customresourcedefinitions", build: func(h *Host, _ *Config) run {
		return (&crds.Controller{Base: h.base("crd"), Own: h.Catalogue.Own, Reader: h.Definitions}).Run
	}},
	{name: "serviceaccounts", switches: []string{"serviceaccount"}, build: func(h *Host, _ *Config) run {
		return (&accounts.Default{Base: h.base("serviceaccount")}).Run
	}},
	{name: "flowschemas", build: func(h *Host, _ *Config) run {
		return (&flow.Controller{Base: h.base("priority_and_fairness_config_queue"), Release: h.Release}).Run
	}},
	{name: "apiservicechecks", eachServer: true, build: func(h *Host, _ *Config) run { return h.Aggregator.Run }},
	{name: "apiservices", build: func(h *Host, _ *Config) run {
		return (&apiservices.Controller{Base: h.base("AvailableConditionController"), Aggregator: h.Aggregator}).Run
	}},
	{name: "serviceaddresses", build: func(h *Host, c *Config) run {
		if len(c.ServiceNetworks) == 0 {
			return nil
		}
		return (&networks.Addresses{Base: h.base("serviceipaddresses"), Networks: c.ServiceNetworks}).Run
	}},
	{name: "identity", eachServer: true, build: func(h *Host, c *Config) run {
		if c.Host == "" {
			return nil
		}
		return (&storageversions.Identity{Base: h.base(""), Host: c.Host}).Run
	}},
	{name: "storageversions", eachServer: true, build: func(h *Host, c *Config) run {
		if c.Host == "" || !c.StorageVersions {
			return nil
		}
		return (&storageversions.Publisher{Base: h.base("storageversions"), Catalogue: h.Catalogue, Host: c.Host}).Run
	}},
	{name: "elections", eachServer: true, build: func(h *Host, c *Config) run {
		r := h.Catalogue.Lookup("coordination.k8s.io", "v1alpha2", "leasecandidates")
		if c.Elections == nil || r == nil || r.Off {
			return nil
		}
		return elections.Run(h.base(elections.Elector), *c.Elections)
	}},
	{name: "certificates", switches: []string{"csrsigning", "csrapproving"}, build: func(h *Host, c *Config) run {
		k := &certificates.Signer{Base: h.base("certificate"), Authorizer: h.Authorizer, Approve: c.Runs("csrapproving")}
		if c.Runs("csrsigning") {
			k.Sign = c.Sign
		}
		return k.Run
	}},
	{name: "bootstraptokens", switches: []string{"tokencleaner", "bootstrapsigner"}, build: bootstrapTokens},
	{name: "aggregation", switches: []string{"clusterrole-aggregation"}, build: func(h *Host, c *Config) run {
		a := &aggregation.Controller{Base: h.settling(c, "clusterrole-aggregation", "ClusterRoleAggregator")}
		if a.Settle > 0 {
			a.Skip = aggregation.OwnRole // which count as if they were filled, and are shown as a stock server shows them
		}
		return a.Run
	}},
	{name: "rootca", switches: []string{"root-ca-cert-publisher"}, build: func(h *Host, c *Config) run {
		if c.Authority == nil {
			return nil
		}
		return (&accounts.RootCA{Base: h.settling(c, "root-ca-cert-publisher", "root_ca_cert_publisher"), Authority: reconcile.Authority{Read: c.Authority}}).Run
	}},
	{name: "accounttokens", switches: []string{"serviceaccount-token"}, build: func(h *Host, c *Config) run {
		if c.Authority == nil || c.IssueForSecret == nil {
			return nil
		}
		return (&accounts.Tokens{
			Base: h.settling(c, "serviceaccount-token", "serviceaccount_tokens_secret"), Authority: reconcile.Authority{Read: c.Authority}, Issue: c.IssueForSecret,
		}).Run
	}},
	{name: "garbagecollector", switches: []string{garbageSwitch}, build: func(h *Host, c *Config) run {
		return (&garbage.Collector{
			Base: h.settling(c, garbageSwitch, "garbage_collector_attempt_to_delete"), Catalogue: h.Catalogue, Elsewhere: h.Elsewhere, Workers: c.GarbageWorkers,
			Orphans: h.Metrics.Of("garbage_collector_attempt_to_orphan"), Changes: h.Metrics.Of("garbage_collector_graph_changes"),
		}).Run
	}},
	{name: "resourcequotas", switches: []string{"resourcequota"}, build: func(h *Host, c *Config) run {
		return (&quotas.Controller{
			Base: h.settling(c, "resourcequota", "resourcequota_primary"), Catalogue: h.Catalogue, Elsewhere: h.Elsewhere,
			Every: c.QuotaInterval, Priority: h.Metrics.Of("resourcequota_priority"),
		}).Run
	}},
	{name: "ttlafterfinished", switches: []string{"ttl-after-finished"}, build: func(h *Host, c *Config) run {
		return (&workloads.FinishedJobs{Base: h.settling(c, "ttl-after-finished", "ttl_jobs_to_delete")}).Run
	}},
	{name: "csrcleaner", switches: []string{"csrcleaner"}, build: func(h *Host, _ *Config) run { return (&certificates.Cleaner{Base: h.base("")}).Run }},
	{name: "podgc", switches: []string{"podgc"}, build: func(h *Host, c *Config) run {
		return (&workloads.Pods{Base: h.base("orphaned_pods_nodes"), Keep: c.TerminatedPods}).Run
	}},
	{name: "pvprotection", switches: []string{"pv-protection"}, build: func(h *Host, c *Config) run {
		return (&claims.Volumes{Base: h.settling(c, "pv-protection", "pvprotection")}).Run
	}},
	{name: "pvcprotection", switches: []string{"pvc-protection"}, build: func(h *Host, c *Config) run {
		return (&claims.Claims{Base: h.settling(c, "pvc-protection", "pvcprotection")}).Run
	}},
	{name: "storageversiongc", switches: []string{storageversions.CollectorSwitch}, build: func(h *Host, c *Config) run {
		if c.Host == "" || !c.StorageVersions {
			return nil
		}
		return (&storageversions.Collector{Base: h.settling(c, storageversions.CollectorSwitch, "storage_version_garbage_collector_storageversions")}).Run
	}},
	{name: "storageversionmigrator", switches: []string{migrations.Switch}, build: func(h *Host, _ *Config) run {
		if r := h.Catalogue.ByStorage(migrations.Storage); r == nil || r.Off {
			h.Log.Warn("nothing to do for a controller, as storage migrations are not served; see the gate StorageVersionMigrator and --runtime-config", "name", migrations.Switch)
			return nil
		}
		return (&migrations.Controller{Base: h.base(migrations.Switch), Catalogue: h.Catalogue, Follow: h.Follow, Objects: h.Objects}).Run
	}},
	{name: "servicecidrs", switches: []string{networks.CIDRSwitch}, build: func(h *Host, c *Config) run {
		if len(c.ServiceNetworks) == 0 {
			return nil
		}
		return (&networks.CIDRs{Base: h.base("ipaddresses")}).Run
	}},
	{name: "clusterinfo", build: func(h *Host, c *Config) run {
		if c.JoinAt == "" || c.Authority == nil {
			return nil
		}
		return (&clusterinfo.Publisher{Base: h.base("cluster_info"), Server: c.JoinAt, Authority: reconcile.Authority{Read: c.Authority}}).Run
	}},
	{name: "clusterauthentication", eachServer: true, build: func(h *Host, c *Config) run {
		if c.Authentication == nil {
			return nil
		}
		return (&clusterinfo.Authentication{Base: h.base("cluster_authentication_trust_controller"), Data: c.Authentication}).Run
	}},
}

// bootstrapTokens builds the controllers of bootstrap tokens, which share a lock.
func bootstrapTokens(h *Host, c *Config) run {
	var parts []run
	if c.Runs("tokencleaner") {
		cleaner := &clusterinfo.TokenCleaner{Base: h.base("token_cleaner")}
		cleaner.Retry = tokenRetry
		parts = append(parts, cleaner.Run)
	}
	if c.Runs("bootstrapsigner") {
		signer := &clusterinfo.Signer{Base: h.base("bootstrap_signer_queue")}
		signer.Retry = tokenRetry
		parts = append(parts, signer.Run)
	}
	return func(ctx context.Context) error {
		group, ctx := errgroup.WithContext(ctx)
		for _, part := range parts {
			group.Go(func() error { return part(ctx) })
		}
		return group.Wait()
	}
}

// tokenRetry is the first backoff of what is done for bootstrap tokens.
const tokenRetry = 5 * time.Second

// Loops are the controllers that run, in the order of the table, behind the one that finds out whether those with
// switches are on standby.
func Loops(h Host, c Config) []Loop {
	if c.Runs == nil {
		c.Runs = Selection{}.Runs
	}
	var list []Loop
	standby, waits := &reconcile.Standby{Base: h.base(""), Lease: cmp.Or(c.ManagerLease, reconcile.DefaultManagerLease), Metrics: h.Metrics}, false
	for _, k := range all {
		if k.build == nil || !k.chosen(&c) {
			continue
		}
		run := k.build(&h, &c)
		if run == nil {
			continue
		}
		run = h.Metrics.Shown(k.shownAs(c), run)
		if len(k.switches) > 0 && !c.NeverStandby {
			work := run
			run, waits = func(ctx context.Context) error { return standby.While(ctx, work) }, true
		}
		list = append(list, Loop{Name: k.name, EachServer: k.eachServer, Run: run})
	}
	if waits {
		list = append([]Loop{{Name: "standby", EachServer: true, Run: standby.Run}}, list...)
	}
	return list
}

// chosen says whether a controller, or a part of its work, is to be done.
func (k *controller) chosen(c *Config) bool {
	if len(k.switches) == 0 {
		return c.Runs(k.name)
	}
	return slices.ContainsFunc(k.switches, c.Runs)
}

// shownAs is what metrics call a controller: as stock components do, by the first of its
// switches that is on, where it has any.
func (k *controller) shownAs(c Config) string {
	for _, on := range k.switches {
		if !c.Runs(on) {
			continue
		}
		for long, short := range longNames {
			if short == on {
				return long
			}
		}
		return on
	}
	return k.name
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

// garbageSwitch is the name of the garbage collector in --controllers.
const garbageSwitch = "garbagecollector"
