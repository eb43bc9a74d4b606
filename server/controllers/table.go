package controllers

import (
	"context"
	"crypto/x509"
	"log/slog"
	"net/netip"
	"slices"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/garbage"
	following "github.com/rowlock/rowlock/server/definitions"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// Host is what a server lets its controllers use.
type Host struct {
	API         API
	Cache       *cache.Cache
	Catalogue   *kinds.Catalogue
	Follow      func()            // has Catalogue know all definitions that Cache has; may be nil
	Definitions *following.Reader // may be nil
	Objects     Restorer
	Authorizer  authx.Authorizer
	Log         *slog.Logger
	Clock       func() time.Time
	Moves       Moves   // of the clock
	Queues      *Queues // metrics of their work
	Aggregator  *aggregator.Aggregator
	Elsewhere   Elsewhere
	Homeless    bool // objects may be made in namespaces that are not there
	Release     release.Version
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
	// see StandBack. Empty: DefaultManagerLease.
	ManagerLease string
	// NeverBack has controllers work beside a kube-controller-manager.
	NeverBack bool
	// Sign signs certificates of kubelets and clients; nil: nobody does.
	Sign func(r *x509.CertificateRequest, usages []certificatesv1.KeyUsage, life time.Duration) ([]byte, error)
	// Authority reads, as PEM, the authorities that each namespace is told of.
	Authority func() ([]byte, error)
	// IssueForSecret signs tokens that Secrets hold; see AccountTokens. Nil: nobody does.
	IssueForSecret func(namespace, account, uid, secret string) (string, error)
	// JoinAt is the URL at which machines that join by a bootstrap token reach the API;
	// see ClusterInfo. Empty: they are told nothing.
	JoinAt string
	// Authentication reads what extension servers are told of how requests are
	// authenticated; see ClusterAuthentication. Nil: they are told nothing.
	Authentication func() (map[string]string, error)
	// NamespaceInterval and NamespaceWorkers are those of Namespaces; PodsFirst has Pods go before
	// everything else.
	NamespaceInterval time.Duration
	NamespaceWorkers  int
	PodsFirst         bool
	// ServiceNetworks are those of the default ServiceCIDR, where ServiceCIDRs say from which
	// networks services get their addresses; else none.
	ServiceNetworks []netip.Prefix
	// Host is the name of the host, by which others know of this server; see Identity. "":
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
	// QuotaInterval is how often Quotas counts everything; 0: every 5 minutes; less: never.
	QuotaInterval time.Duration
	// Elections has leaders chosen among LeaseCandidates, where these are served. Nil: nobody
	// chooses.
	Elections *ElectionConfig
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
	// build makes its work, where a switch of it is on; nil where it would have nothing to
	// do. Controllers that have switches are those of a kube-controller-manager too, and
	// stand back for it.
	build func(h Host, c Config) func(ctx context.Context) error
}

// all is the table of controllers. Docs and flags list them in this order.
var all = []controller{
	{name: "namespaces", switches: []string{"namespace"}, build: func(h Host, c Config) func(context.Context) error {
		n := &Namespaces{
			API: h.API, Cache: h.Cache, Catalogue: h.Catalogue, Follow: h.Follow, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Rest: c.Settle("namespace"), Interval: c.NamespaceInterval,
			Workers: c.NamespaceWorkers, Ordered: c.PodsFirst, Homeless: h.Homeless, Queue: h.Queues.Of("namespace"), Elsewhere: h.Elsewhere,
		}
		return n.Run
	}},
	{name: "customresourcedefinitions", build: func(h Host, _ Config) func(context.Context) error {
		return (&Definitions{API: h.API, Cache: h.Cache, Own: h.Catalogue.Own, Reader: h.Definitions, Log: h.Log, Queue: h.Queues.Of("crd")}).Run
	}},
	{name: "serviceaccounts", switches: []string{"serviceaccount"}, build: func(h Host, _ Config) func(context.Context) error {
		return (&Accounts{API: h.API, Cache: h.Cache, Log: h.Log, Queue: h.Queues.Of("serviceaccount")}).Run
	}},
	{name: "flowschemas", build: func(h Host, _ Config) func(context.Context) error {
		f := &FlowSchemas{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Release: h.Release, Queue: h.Queues.Of("priority_and_fairness_config_queue")}
		return f.Run
	}},
	{name: "apiservicechecks", eachServer: true, build: func(h Host, _ Config) func(context.Context) error {
		return h.Aggregator.Run
	}},
	{name: "apiservices", build: func(h Host, _ Config) func(context.Context) error {
		s := &APIServices{API: h.API, Cache: h.Cache, Aggregator: h.Aggregator, Log: h.Log, Clock: h.Clock, Queue: h.Queues.Of("AvailableConditionController")}
		return s.Run
	}},
	{name: "serviceaddresses", build: serviceAddresses},
	{name: "identity", eachServer: true, build: identity},
	{name: "storageversions", eachServer: true, build: storageVersions},
	{name: "elections", eachServer: true, build: elections},
	{name: "certificates", switches: []string{"csrsigning", "csrapproving"}, build: signing},
	{name: "bootstraptokens", switches: []string{"tokencleaner", "bootstrapsigner"}, build: bootstrapTokens},
	{name: "aggregation", switches: []string{"clusterrole-aggregation"}, build: func(h Host, c Config) func(context.Context) error {
		a := &Aggregation{API: h.API, Cache: h.Cache, Log: h.Log, Rest: c.Settle("clusterrole-aggregation"), Moves: h.Moves, Queue: h.Queues.Of("ClusterRoleAggregator")}
		if a.Rest > 0 {
			a.Skip = OwnRole // which count as if they were filled, and are shown as a stock server shows them
		}
		return a.Run
	}},
	{name: "rootca", switches: []string{"root-ca-cert-publisher"}, build: func(h Host, c Config) func(context.Context) error {
		if c.Authority == nil {
			return nil
		}
		return (&RootCA{API: h.API, Cache: h.Cache, Log: h.Log, PEM: c.Authority, Rest: c.Settle("root-ca-cert-publisher"), Moves: h.Moves, Queue: h.Queues.Of("root_ca_cert_publisher")}).Run
	}},
	{name: "accounttokens", switches: []string{"serviceaccount-token"}, build: func(h Host, c Config) func(context.Context) error {
		if c.Authority == nil || c.IssueForSecret == nil {
			return nil
		}
		return (&AccountTokens{
			API: h.API, Cache: h.Cache, Log: h.Log, Issue: c.IssueForSecret, PEM: c.Authority, Rest: c.Settle("serviceaccount-token"), Moves: h.Moves,
			Queue: h.Queues.Of("serviceaccount_tokens_secret"),
		}).Run
	}},
	{name: "garbagecollector", switches: []string{garbageSwitch}, build: func(h Host, c Config) func(context.Context) error {
		g := &garbage.Collector{
			API: h.API, Cache: h.Cache, Catalogue: h.Catalogue, Elsewhere: h.Elsewhere, Log: h.Log, Clock: h.Clock, Moves: h.Moves, Workers: c.GarbageWorkers, Settle: c.Settle(garbageSwitch),
			Deletes: h.Queues.Of("garbage_collector_attempt_to_delete"), Orphans: h.Queues.Of("garbage_collector_attempt_to_orphan"), Changes: h.Queues.Of("garbage_collector_graph_changes"),
		}
		return g.Run
	}},
	{name: "resourcequotas", switches: []string{"resourcequota"}, build: resourceQuotas},
	{name: "ttlafterfinished", switches: []string{"ttl-after-finished"}, build: finishedJobs},
	{name: "csrcleaner", switches: []string{"csrcleaner"}, build: certificateCleaner},
	{name: "podgc", switches: []string{"podgc"}, build: podCollector},
	{name: "pvprotection", switches: []string{"pv-protection"}, build: volumeProtection},
	{name: "pvcprotection", switches: []string{"pvc-protection"}, build: claimProtection},
	{name: "storageversiongc", switches: []string{versionGCSwitch}, build: collectVersions},
	{name: "storageversionmigrator", switches: []string{migrationSwitch}, build: migrations},
	{name: "servicecidrs", switches: []string{serviceCIDRSwitch}, build: serviceCIDRs},
	{name: "clusterinfo", build: func(h Host, c Config) func(context.Context) error {
		if c.JoinAt == "" || c.Authority == nil {
			return nil
		}
		return (&ClusterInfo{API: h.API, Cache: h.Cache, Log: h.Log, Server: c.JoinAt, PEM: c.Authority, Queue: h.Queues.Of("cluster_info")}).Run
	}},
	{name: "clusterauthentication", eachServer: true, build: func(h Host, c Config) func(context.Context) error {
		if c.Authentication == nil {
			return nil
		}
		p := &ClusterAuthentication{API: h.API, Log: h.Log, Clock: h.Clock, Data: c.Authentication, Queue: h.Queues.Of("cluster_authentication_trust_controller")}
		return p.Run
	}},
}

// signing builds the controller that approves and signs.
func signing(h Host, c Config) func(context.Context) error {
	sign, approve := c.runs("csrsigning"), c.runs("csrapproving")
	k := &Certificates{API: h.API, Cache: h.Cache, Authorizer: h.Authorizer, Log: h.Log, Clock: h.Clock, Approve: approve, Queue: h.Queues.Of("certificate")}
	if sign {
		k.Sign = c.Sign
	}
	return k.Run
}

// bootstrapTokens builds the controller of bootstrap tokens.
func bootstrapTokens(h Host, c Config) func(context.Context) error {
	clean, sign := c.runs("tokencleaner"), c.runs("bootstrapsigner")
	b := &BootstrapTokens{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Clean: clean, Sign: sign}
	if clean {
		b.Cleaning = h.Queues.Of("token_cleaner")
	}
	if sign {
		b.Signing = h.Queues.Of("bootstrap_signer_queue")
	}
	return b.Run
}

// Loops are the controllers that run, in the order of the table, behind the one that finds
// out whether those with switches are to stand back.
func Loops(h Host, c Config) []Loop {
	if c.Runs == nil {
		c.Runs = Selection{}.Runs
	}
	var list []Loop
	back := newStandBack(h, c)
	stands := false // one that would stand back runs
	for _, k := range all {
		if k.build == nil || !k.chosen(&c) {
			continue
		}
		run := k.build(h, c)
		if run == nil {
			continue
		}
		run = h.Queues.shown(k.shownAs(c), run)
		if len(k.switches) > 0 && back != nil {
			work := run
			run, stands = func(ctx context.Context) error { return back.While(ctx, work) }, true
		}
		list = append(list, Loop{Name: k.name, EachServer: k.eachServer, Run: run})
	}
	if stands {
		list = append([]Loop{{Name: "standback", EachServer: true, Run: back.Run}}, list...)
	}
	return list
}

// chosen says whether a controller, or a part of its work, is to be done.
func (k *controller) chosen(c *Config) bool {
	if len(k.switches) == 0 {
		return c.runs(k.name)
	}
	return slices.ContainsFunc(k.switches, c.runs)
}

// shownAs is what metrics call a controller: as stock components do, by the first of its
// switches that is on, where it has any.
func (k *controller) shownAs(c Config) string {
	for _, on := range k.switches {
		if !c.runs(on) {
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

func (c *Config) runs(name string) bool { return c.Runs(name) }

// settling is for how long a controller that nobody asked for leaves alone what it sees.
// Clients of a server without a kube-controller-manager look at what they just did and
// expect to find that, as on a stock server; a second is longer than such a look takes, and
// shorter than people wait. A kube-controller-manager takes as long to notice anything on a
// busy cluster, and all servers of a store have heard of a change by then.
const settling = time.Second

// settlingLonger are those whose objects clients of such a server look at later and expect to
// be as they left them, as recorded answers show: the rules of a role and what a terminating
// namespace holds, and a claim that is being deleted, after one second, the Secrets of tokens after three, the ConfigMaps of a
// namespace after five.
var settlingLonger = map[string]time.Duration{
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
	return max(settling, settlingLonger[name])
}

// garbageSwitch is the name of the garbage collector in --controllers.
const garbageSwitch = "garbagecollector"
