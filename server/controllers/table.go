package controllers

import (
	"context"
	"crypto/x509"
	"fmt"
	"log/slog"
	"net/netip"
	"slices"
	"strings"
	"time"

	certificatesv1 "k8s.io/api/certificates/v1"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// Host is what a server lets its controllers use.
type Host struct {
	API        API
	Cache      *cache.Cache
	Catalogue  *kinds.Catalogue
	Objects    Restorer
	Authorizer authx.Authorizer
	Log        *slog.Logger
	Clock      func() time.Time
	Queues     *Queues // metrics of their work
	Aggregator *aggregator.Aggregator
	Elsewhere  Elsewhere
}

// Config says which controllers run, and gives them what only operators know.
type Config struct {
	// Runs says whether a controller runs, or, of one that has switches, whether it does
	// the work of a switch. Nil: as the zero Selection says.
	Runs func(name string) bool
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
	// NamespaceGrace and NamespaceInterval are those of Namespaces.
	NamespaceGrace, NamespaceInterval time.Duration
	// ServiceNetworks are those of the default ServiceCIDR, where ServiceCIDRs say from which
	// networks services get their addresses; else none.
	ServiceNetworks []netip.Prefix
	// ServerName is what this server is called where it says in which versions it stores
	// objects; "": it does not say so. See ServerName.
	ServerName string
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
	build      func(h Host, c Config) func(ctx context.Context) error // nil where it would have nothing to do
}

// all is the table of controllers. Docs and flags list them in this order.
var all = []controller{
	{name: "namespaces", build: func(h Host, c Config) func(context.Context) error {
		n := &Namespaces{
			API: h.API, Cache: h.Cache, Catalogue: h.Catalogue, Log: h.Log, Clock: h.Clock, Grace: c.NamespaceGrace, Interval: c.NamespaceInterval,
			Queue: h.Queues.Of("namespace"), Elsewhere: h.Elsewhere,
		}
		return n.Run
	}},
	{name: "customresourcedefinitions", build: func(h Host, _ Config) func(context.Context) error {
		return (&Definitions{API: h.API, Cache: h.Cache, Own: h.Catalogue.Own, Log: h.Log, Queue: h.Queues.Of("crd")}).Run
	}},
	{name: "serviceaccounts", build: func(h Host, _ Config) func(context.Context) error {
		return (&Accounts{API: h.API, Cache: h.Cache, Log: h.Log, Queue: h.Queues.Of("serviceaccount")}).Run
	}},
	{name: "flowschemas", build: func(h Host, _ Config) func(context.Context) error {
		f := &FlowSchemas{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Queue: h.Queues.Of("priority_and_fairness_config_queue")}
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
	{name: "storageversions", eachServer: true, build: storageVersions},
	{name: "elections", eachServer: true, build: elections},
	{name: "certificates", switches: []string{"csrsigning", "csrapproving"}, build: signing},
	{name: "bootstraptokens", switches: []string{"tokencleaner", "bootstrapsigner"}, build: bootstrapTokens},
	{name: "aggregation", switches: []string{"clusterrole-aggregation"}, build: func(h Host, c Config) func(context.Context) error {
		if !c.runs("clusterrole-aggregation") {
			return nil
		}
		return (&Aggregation{API: h.API, Cache: h.Cache, Log: h.Log, Queue: h.Queues.Of("ClusterRoleAggregator")}).Run
	}},
	{name: "rootca", switches: []string{"root-ca-cert-publisher"}, build: func(h Host, c Config) func(context.Context) error {
		if !c.runs("root-ca-cert-publisher") || c.Authority == nil {
			return nil
		}
		return (&RootCA{API: h.API, Cache: h.Cache, Log: h.Log, PEM: c.Authority, Queue: h.Queues.Of("root_ca_cert_publisher")}).Run
	}},
	{name: "accounttokens", switches: []string{"serviceaccount-token"}, build: func(h Host, c Config) func(context.Context) error {
		if !c.runs("serviceaccount-token") || c.Authority == nil || c.IssueForSecret == nil {
			return nil
		}
		return (&AccountTokens{
			API: h.API, Cache: h.Cache, Log: h.Log, Issue: c.IssueForSecret, PEM: c.Authority, Queue: h.Queues.Of("serviceaccount_tokens_secret"),
		}).Run
	}},
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
	if !sign && !approve {
		return nil
	}
	k := &Certificates{API: h.API, Cache: h.Cache, Authorizer: h.Authorizer, Log: h.Log, Clock: h.Clock, Approve: approve, Queue: h.Queues.Of("certificate")}
	if sign {
		k.Sign = c.Sign
	}
	return k.Run
}

// bootstrapTokens builds the controller of bootstrap tokens.
func bootstrapTokens(h Host, c Config) func(context.Context) error {
	clean, sign := c.runs("tokencleaner"), c.runs("bootstrapsigner")
	if !clean && !sign {
		return nil
	}
	b := &BootstrapTokens{API: h.API, Cache: h.Cache, Log: h.Log, Clock: h.Clock, Clean: clean, Sign: sign}
	if clean {
		b.Cleaning = h.Queues.Of("token_cleaner")
	}
	if sign {
		b.Signing = h.Queues.Of("bootstrap_signer_queue")
	}
	return b.Run
}

// Loops are the controllers that run, in the order of the table.
func Loops(h Host, c Config) []Loop {
	if c.Runs == nil {
		c.Runs = Selection{}.Runs
	}
	var list []Loop
	for _, k := range all {
		if len(k.switches) == 0 && !c.runs(k.name) {
			continue
		}
		if run := k.build(h, c); run != nil {
			list = append(list, Loop{Name: k.name, EachServer: k.eachServer, Run: run})
		}
	}
	return list
}

func (c *Config) runs(name string) bool { return c.Runs(name) }

// onRequest are the switches that are off unless they are named.
var onRequest = []string{
	"tokencleaner", "bootstrapsigner", "clusterrole-aggregation", "root-ca-cert-publisher", "serviceaccount-token", migrationSwitch, serviceCIDRSwitch,
}

// longNames are what stock components call switches besides.
var longNames = map[string]string{
	"certificatesigningrequest-signing-controller": "csrsigning", "certificatesigningrequest-approving-controller": "csrapproving",
	"token-cleaner-controller": "tokencleaner", "bootstrap-signer-controller": "bootstrapsigner",
	"clusterrole-aggregation-controller": "clusterrole-aggregation", "root-ca-certificate-publisher-controller": "root-ca-cert-publisher",
	"serviceaccount-token-controller": "serviceaccount-token",
}

// Switches are the names that a Selection knows: those that are on by default, and
// those that are on where they are named.
func Switches() (byDefault, named []string) {
	for _, k := range all {
		for _, s := range k.switches {
			if slices.Contains(onRequest, s) {
				named = append(named, s)
			} else {
				byDefault = append(byDefault, s)
			}
		}
	}
	return byDefault, named
}

// Selection is a choice of controllers. The zero Selection is all that are on by
// default.
type Selection struct {
	noDefaults bool // what is on by default is off
	on, off    map[string]bool
}

// Select reads a list of "*", which is all that are on by default, "name" and "-name".
func Select(list []string) (Selection, error) {
	s := Selection{noDefaults: true, on: map[string]bool{}, off: map[string]bool{}}
	byDefault, named := Switches()
	known := append(append([]string{"*"}, byDefault...), named...)
	for _, text := range list {
		name, off := strings.CutPrefix(strings.TrimSpace(text), "-")
		if short, ok := longNames[name]; ok {
			name = short
		}
		switch {
		case !slices.Contains(known, name):
			return s, fmt.Errorf("%q is not in the list of known controllers", text)
		case off:
			s.off[name] = true
		case name == "*":
			s.noDefaults = false
		default:
			s.on[name] = true
		}
	}
	return s, nil
}

// Runs says whether a controller, or the work of a switch, is chosen. Controllers
// without switches always are.
func (s Selection) Runs(name string) bool {
	byDefault, named := Switches()
	switch {
	case s.off[name]:
		return false
	case s.on[name]:
		return true
	case slices.Contains(named, name):
		return false
	}
	return !s.noDefaults || !slices.Contains(byDefault, name)
}
