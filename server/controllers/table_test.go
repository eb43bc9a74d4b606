package controllers_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/controllers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"

	"github.com/rowlock/rowlock/server/controllers/controllertest"
	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/release"
)

func host(c *controllertest.Cluster) controllers.Host {
	return controllers.Host{
		API: c, Cache: c.Cache, Catalogue: c.Catalogue, Authorizer: authx.SystemMasters{}, Log: controllertest.DiscardLog, Clock: time.Now, Metrics: reconcile.NewMetrics(time.Now),
		Aggregator: aggregator.New(aggregator.Config{Cache: c.Cache}),
	}
}

// running names the loops that a configuration makes, in alphabetical order; those of every server end with !.
func running(t *testing.T, c controllers.Config) (names []string) {
	all := controllertest.NewCluster(t)
	all.Catalogue.ByStorage("storageversionmigrations.storagemigration.k8s.io").Off = false
	for _, l := range controllers.Loops(host(all), c) {
		name := l.Name
		if l.EachServer {
			name += "!"
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

func sorted(names []string) []string { return slices.Sorted(slices.Values(names)) }

func TestWhichControllersRun(t *testing.T) {
	always := []string{"customresourcedefinitions", "flowschemas", "apiservicechecks!", "apiservices"}
	with := func(names ...string) []string { // those that can be on standby come with standby
		return append(append([]string{"standby!"}, always...), names...)
	}
	usual := func(names ...string) []string {
		return append([]string{"standby!", "namespaces", "customresourcedefinitions", "serviceaccounts", "flowschemas", "apiservicechecks!", "apiservices", "garbagecollector",
			"resourcequotas", "ttlafterfinished", "csrcleaner", "pvprotection", "pvcprotection", "aggregation", "rootca", "accounttokens"}, names...)
	}
	without := func(list []string, names ...string) []string {
		return slices.DeleteFunc(list, func(name string) bool { return slices.Contains(names, name) })
	}
	published := func() (map[string]string, error) { return nil, nil }
	for text, want := range map[string][]string{
		"*":             usual("certificates"),
		"":              always,
		"-*":            always,
		"*,-csrsigning": usual("certificates"),
		"*,-csrsigning,-certificatesigningrequest-approving-controller": usual(),
		"*,-namespace-controller,-serviceaccount,-csrsigning,-csrapproving,-gc,-resourcequota-controller,-ttl-after-finished,-csrcleaner,-pv-protection,-pvc-protection,-clusterrole-aggregation,-root-ca-cert-publisher,-serviceaccount-token": always,
		"podgc":                          with("podgc"),
		"csrapproving":                   with("certificates"),
		"*,token-cleaner-controller":     usual("certificates", "bootstraptokens"),
		"bootstrapsigner, -tokencleaner": with("bootstraptokens"),
		"*,clusterrole-aggregation,root-ca-cert-publisher": usual("certificates"),
		"clusterrole-aggregation,-clusterrole-aggregation": always,
		"serviceaccount-token-controller":                  with("accounttokens"),
		"*,storage-version-migrator-controller":            usual("certificates", "storageversionmigrator"),
		"service-cidr-controller":                          always, // without networks there is nothing for it to do
	} {
		var list []string
		if text != "" {
			list = strings.Split(text, ",")
		}
		s, err := controllers.Select(list)
		if err != nil {
			t.Errorf("%q: %v", text, err)
		}
		if d := cmp.Diff(sorted(want), running(t, controllers.Config{
			Runs: s.Runs, Authority: func() ([]byte, error) { return nil, nil },
			IssueForSecret: func(_, _, _, _ string) (string, error) { return "", nil },
		})); d != "" {
			t.Errorf("%q: %s", text, d)
		}
	}
	if d := cmp.Diff(sorted(append(without(usual("certificates"), "rootca", "accounttokens"), "clusterauthentication!")), running(t, controllers.Config{Authentication: published})); d != "" {
		t.Errorf("with nothing selected: %s", d)
	}
	if d := cmp.Diff(sorted(without(usual("certificates"), "standby!", "rootca", "accounttokens")), running(t, controllers.Config{NeverStandby: true})); d != "" {
		t.Errorf("with those that are never on standby: %s", d)
	}
	none := controllers.Config{Runs: func(string) bool { return false }}
	if list := running(t, none); len(list) > 0 {
		t.Errorf("with everything off: %v", list)
	}
}

// Leaders are chosen where both the feature is on and candidates are served.
func TestWhoChoosesLeaders(t *testing.T) {
	for served, want := range map[string]bool{"api/beta=true": false, "coordination.k8s.io/v1alpha2=true": true} {
		resources := builtin.Resources()
		on := func(string) bool { return true }
		if _, err := kinds.Enable(release.Default, resources, kinds.ParseRuntimeConfig([]string{served}), true, on); err != nil {
			t.Fatal(err)
		}
		h := host(controllertest.NewCluster(t))
		h.Catalogue = kinds.NewCatalogue(resources)
		for _, config := range []*elections.Config{nil, {}} {
			found := false
			for _, l := range controllers.Loops(h, controllers.Config{Elections: config}) {
				found = found || l.Name == "elections" && l.EachServer
			}
			if found != (want && config != nil) {
				t.Errorf("with %q and %v: %v", served, config, found)
			}
		}
	}
}

// Controllers that run by default wait a while before they change an object; those that were named do not.
func TestWhatSettles(t *testing.T) {
	for text, want := range map[string]bool{"*": true, "*,namespace-controller": false, "namespace": false, "namespace,-namespace": true} {
		s, err := controllers.Select(strings.Split(text, ","))
		if err != nil {
			t.Fatal(err)
		}
		c := controllers.Config{Runs: s.Runs, Named: s.Named}
		if got := c.Debounce("namespace"); got > 0 != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	if c := (controllers.Config{}); c.Debounce("namespace") == 0 {
		t.Error("without a selection nothing settles")
	}
}

func TestWithout(t *testing.T) {
	for text, want := range map[string]bool{"*": false, "*,serviceaccount": true, "namespace": false, "*,-serviceaccount": false} {
		s, err := controllers.Select(strings.Split(text, ","))
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Without("serviceaccount"); w.Runs("serviceaccount") != want || w.Runs("namespace") != s.Runs("namespace") {
			t.Errorf("%q: %v", text, w)
		}
	}
	if (controllers.Selection{}).Without("serviceaccount").Runs("serviceaccount") {
		t.Error("by default it runs though it is left out")
	}
}

func TestUnknownControllers(t *testing.T) {
	for _, text := range []string{"nodeipam", "-nodeipam", "namespaces", "", "**"} {
		if _, err := controllers.Select([]string{"*", text}); err == nil || !strings.Contains(err.Error(), "is not in the list of known controllers") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// Each loop of the table does not need more than its Host and Config, and ends with
// its context, whether it has only begun or waits for what comes.
func TestControllersEnd(t *testing.T) {
	cfg := controllers.Config{
		Runs:           func(string) bool { return true },
		Authority:      func() ([]byte, error) { return nil, nil },
		Authentication: func() (map[string]string, error) { return nil, nil },
	}
	for i, l := range controllers.Loops(host(controllertest.NewCluster(t)), cfg) {
		for _, waits := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancel(t.Context())
				done := make(chan error, 1)
				run := controllers.Loops(host(controllertest.NewCluster(t)), cfg)[i].Run
				go func() { done <- run(ctx) }()
				if waits {
					synctest.Wait()
				}
				cancel()
				if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
					t.Errorf("%s: %v", l.Name, err)
				}
			})
		}
	}
}
