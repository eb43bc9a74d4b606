package controllers

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"

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
	"github.com/rowlock/rowlock/server/release"
)

// controller is an entry of the table.
type controller struct {
	name       string   // also of the lock that lets one server run it; never renamed
	switches   []string // of --controllers, one for each part of its work; none: it always runs
	eachServer bool
	// build makes its loops, if a switch of it is on; nil if there is nothing to do. Controllers with
	// switches are also in kube-controller-manager, and are on standby while one runs.
	build func(h *Host, c *Config) run
}

// run is the work of a controller, until ctx ends.
type run func(ctx context.Context) error

// all is the table of controllers. Docs and flags list them in this order.
var all = []controller{
	{name: "namespaces", switches: []string{"namespace"}, build: func(h *Host, c *Config) run {
		n := &namespaces.Controller{
			Base: h.debounced(c, "namespace", "namespace"), Catalogue: h.Catalogue, Follow: h.Follow,
			Workers: c.NamespaceWorkers, Ordered: c.PodsFirst, AnyNamespace: h.AnyNamespace, Remote: h.Remote,
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
		return (&networks.Addresses{Base: h.base("serviceipaddresses"), Networks: c.ServiceNetworks, Release: h.Release}).Run
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
		served := h.serves(elections.CandidatesStorage)
		if c.Elections == nil || served == "" {
			return nil
		}
		return elections.Run(h.base(elections.Elector), served, *c.Elections)
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
		a := &aggregation.Controller{Base: h.debounced(c, "clusterrole-aggregation", "ClusterRoleAggregator")}
		if a.Debounce > 0 {
			a.Skip = aggregation.OwnRole // which count as if they were filled, and are shown as a stock server shows them
		}
		return a.Run
	}},
	{name: "rootca", switches: []string{"root-ca-cert-publisher"}, build: func(h *Host, c *Config) run {
		if c.Authority == nil {
			return nil
		}
		return (&accounts.RootCA{Base: h.debounced(c, "root-ca-cert-publisher", "root_ca_cert_publisher"), Authority: reconcile.Authority{Read: c.Authority}}).Run
	}},
	{name: "accounttokens", switches: []string{"serviceaccount-token"}, build: func(h *Host, c *Config) run {
		if c.Authority == nil || c.IssueForSecret == nil {
			return nil
		}
		return (&accounts.Tokens{
			Base: h.debounced(c, "serviceaccount-token", "serviceaccount_tokens_secret"), Authority: reconcile.Authority{Read: c.Authority}, Issue: c.IssueForSecret,
		}).Run
	}},
	{name: "garbagecollector", switches: []string{"garbagecollector"}, build: func(h *Host, c *Config) run {
		return (&garbage.Collector{
			Base: h.debounced(c, "garbagecollector", "garbage_collector_attempt_to_delete"), Catalogue: h.Catalogue, Remote: h.Remote, Workers: c.GarbageWorkers,
			Orphans: h.Metrics.Of("garbage_collector_attempt_to_orphan"), Changes: h.Metrics.Of("garbage_collector_graph_changes"),
		}).Run
	}},
	{name: "resourcequotas", switches: []string{"resourcequota"}, build: func(h *Host, c *Config) run {
		return (&quotas.Controller{
			Base: h.debounced(c, "resourcequota", "resourcequota_primary"), Catalogue: h.Catalogue, Remote: h.Remote,
			Every: c.QuotaInterval, Priority: h.Metrics.Of("resourcequota_priority"),
		}).Run
	}},
	{name: "ttlafterfinished", switches: []string{"ttl-after-finished"}, build: func(h *Host, c *Config) run {
		return (&workloads.FinishedJobs{Base: h.debounced(c, "ttl-after-finished", "ttl_jobs_to_delete")}).Run
	}},
	{name: "csrcleaner", switches: []string{"csrcleaner"}, build: func(h *Host, _ *Config) run { return (&certificates.Cleaner{Base: h.base("")}).Run }},
	{name: "podgc", switches: []string{"podgc"}, build: func(h *Host, c *Config) run {
		return (&workloads.Pods{Base: h.base("orphaned_pods_nodes"), Keep: c.TerminatedPods}).Run
	}},
	{name: "pvprotection", switches: []string{"pv-protection"}, build: func(h *Host, c *Config) run {
		return (&claims.Volumes{Base: h.debounced(c, "pv-protection", "pvprotection")}).Run
	}},
	{name: "pvcprotection", switches: []string{"pvc-protection"}, build: func(h *Host, c *Config) run {
		return claims.Claims(h.debounced(c, "pvc-protection", "pvcprotection")).Run
	}},
	{name: "vacprotection", switches: []string{claims.ClassesSwitch}, build: func(h *Host, c *Config) run {
		served := h.serves(claims.ClassesStorage)
		if served == "" || !h.Release.Has(release.KindRules133) {
			return nil
		}
		return claims.Classes(h.debounced(c, claims.ClassesSwitch, "vacprotection"), served).Run
	}},
	{name: "podgroupprotection", switches: []string{claims.GroupsSwitch}, build: func(h *Host, c *Config) run {
		served := h.serves(claims.GroupsStorage)
		if served == "" {
			return nil
		}
		return claims.Groups(h.debounced(c, claims.GroupsSwitch, "podgroup-protection"), served).Run
	}},
	{name: "storageversiongc", switches: []string{storageversions.CollectorSwitch}, build: func(h *Host, c *Config) run {
		if c.Host == "" || !c.StorageVersions {
			return nil
		}
		return (&storageversions.Collector{Base: h.debounced(c, storageversions.CollectorSwitch, "storage_version_garbage_collector_storageversions")}).Run
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
		return (&networks.CIDRs{Base: h.base("ipaddresses"), Release: h.Release}).Run
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

// tokenRetry is the first backoff of the controllers of bootstrap tokens.
const tokenRetry = 5 * time.Second
