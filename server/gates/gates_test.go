package gates_test

import (
	"slices"
	"strings"
	"testing"

	apiextensionsfeatures "k8s.io/apiextensions-apiserver/pkg/features"
	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"
	clientfeatures "k8s.io/client-go/features"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/release"
)

func TestSet(t *testing.T) {
	for _, c := range []struct {
		name     string
		switches map[string]bool
		want     string          // part of the error
		on       map[string]bool // afterwards
	}{
		{"defaults", nil, "", map[string]bool{"APIResponseCompression": true, "CBORServingAndStorage": false, "WatchList": true, "NoSuchGate": false}},
		{"one", map[string]bool{"CBORServingAndStorage": true}, "", map[string]bool{"CBORServingAndStorage": true}},
		{"a stage", map[string]bool{"AllAlpha": true}, "", map[string]bool{"CBORServingAndStorage": true, "ComponentFlagz": true, "WatchList": true}},
		{"a stage but one", map[string]bool{"AllBeta": false, "WatchList": true, "AuthorizeNodeWithSelectors": false}, "", map[string]bool{"WatchList": true, "APIResponseCompression": false, "ComponentSLIs": true}},
		{"unknown", map[string]bool{"NoSuchGate": true}, "unrecognized feature gate: NoSuchGate", nil},
		{"locked", map[string]bool{"ComponentSLIs": false}, "cannot set feature gate ComponentSLIs to false, feature is locked to true", nil},
		{"of an old feature", map[string]bool{"APIListChunking": false}, "cannot set feature gate APIListChunking to false, feature is locked to true", nil},
		{"of an old feature that kubelets still switch", map[string]bool{"ExecProbeTimeout": false}, "", nil},
		{"locked, to what it is", map[string]bool{"ComponentSLIs": true}, "", nil},
		{"needs another", map[string]bool{"AuthorizeWithSelectors": false}, "AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled", nil},
	} {
		g := gates.New(release.Default)
		err := g.Set(c.switches)
		if err == nil {
			err = g.Check()
		}
		if (err == nil) != (c.want == "") || err != nil && err.Error() != c.want {
			t.Errorf("%s: %v, want %q", c.name, err, c.want)
		}
		for name, on := range c.on {
			if g.Enabled(name) != on {
				t.Errorf("%s: %s is %t", c.name, name, !on)
			}
		}
	}
}

func TestRemarks(t *testing.T) {
	g := gates.New(release.Default)
	if err := g.Set(map[string]bool{"CBORServingAndStorage": true, "APIListChunking": true, "WinOverlay": false, "NodeLogQuery": true, "WatchList": true}); err != nil {
		t.Fatal(err)
	}
	want := []string{
		"Setting GA feature gate APIListChunking=true. It will be removed in a future release.",
		"Feature gate NodeLogQuery=true has no effect on this server.",
		"Feature gate WinOverlay=false has no effect on this server.",
	}
	if !slices.Equal(g.Remarks(), want) {
		t.Errorf("remarks are %q, want %q", g.Remarks(), want)
	}
	g = gates.New(release.V136)
	if err := g.Set(map[string]bool{"DRAConsumableCapacity": false, "GenericWorkload": true, "GangScheduling": true, "WorkloadAwarePreemption": true, "TopologyAwareWorkloadScheduling": true}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Feature gate GangScheduling=true has no effect on this server."}; !slices.Equal(g.Remarks(), want) {
		t.Errorf("remarks of release 1.36 are %q, want %q", g.Remarks(), want)
	}
}

func TestHelp(t *testing.T) {
	help := gates.Help(release.Default)
	if !slices.Contains(help, "CBORServingAndStorage=true|false (ALPHA - default=false)") || !slices.Contains(help, "WatchList=true|false (BETA - default=true)") || !slices.IsSorted(help) {
		t.Errorf("help: %s", strings.Join(help, "\n"))
	}
	if slices.ContainsFunc(help, func(s string) bool { return strings.HasPrefix(s, "APIListChunking=") }) {
		t.Error("a gate that can no longer be switched is offered")
	}
}

func TestParseOlder(t *testing.T) {
	for _, pair := range []string{"AggregatedDiscoveryEndpoint=false", "ComponentSLIs=false"} {
		if _, err := gates.Parse(release.Default, []string{pair}); err == nil {
			t.Errorf("%s: taken", pair)
		}
	}
	g, err := gates.ParseOlder(release.Default, []string{"AggregatedDiscoveryEndpoint=false"})
	if err != nil || g.Enabled("AggregatedDiscoveryEndpoint") || len(g.Remarks()) != 1 {
		t.Error(g, err)
	}
	if _, err := gates.ParseOlder(release.Default, []string{"ComponentSLIs=false"}); err == nil {
		t.Error("a gate is unlocked that nothing here knows to switch")
	}
}

func TestParse(t *testing.T) {
	for text, want := range map[string]string{
		" ":                            "missing bool value for ",
		"WatchList":                    "missing bool value for WatchList",
		"WatchList=maybe":              `invalid value of WatchList=maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"NoSuchGate=true":              "unrecognized feature gate: NoSuchGate",
		"wardle:WatchList=true":        "component not registered: wardle",
		"kube:NoSuchGate=true":         "unrecognized feature gate: NoSuchGate",
		"WatchList=true:x":             "component not registered: WatchList=true",
		"MutatingAdmissionPolicyX=1":   "unrecognized feature gate: MutatingAdmissionPolicyX",
		"ShardedListAndWatch=true":     "unrecognized feature gate: ShardedListAndWatch",
		"AuthorizeWithSelectors=false": "AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled",
	} {
		if _, err := gates.Parse(release.Default, []string{text}); err == nil || err.Error() != want {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
	g, err := gates.Parse(release.Default, []string{"WatchList=false", "", " ComponentFlagz = 1"})
	if err != nil || g.Enabled("WatchList") || !g.Enabled("ComponentFlagz") {
		t.Error(g, err)
	}
}

func TestParsePrefix(t *testing.T) {
	g, err := gates.Parse(release.Default, []string{"kube:WatchList=false", " kube : ComponentFlagz=1"})
	if err != nil || g.Enabled("WatchList") || !g.Enabled("ComponentFlagz") {
		t.Error(g, err)
	}
	const want = "set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use"
	if _, err := gates.Parse(release.Default, []string{"kube:WatchList=false", "ComponentFlagz=1"}); err == nil || err.Error() != want {
		t.Errorf("both forms: %v, want %s", err, want)
	}
	for pair, want := range map[string]string{"kube:A=1": "A", " A = 1": "A", "A": "A", "x:A=1": "x:A"} {
		if got := gates.Name(pair); got != want {
			t.Errorf("%q names %q, want %q", pair, got, want)
		}
	}
}

func TestReleases(t *testing.T) {
	for _, c := range []struct {
		pair string
		want [5]string // 1.32 to 1.36: on, off, or the error
	}{
		{"MutatingAdmissionPolicy", [5]string{"off", "off", "off", "off", "on"}},
		{"InPlacePodVerticalScaling", [5]string{"off", "on", "on", "on", "on"}},
		{"WatchList", [5]string{"on", "off", "on", "on", "on"}},
		{"AllowServiceExternalIPs", [5]string{"off", "on", "on", "on", "on"}},
		{"ServerSideApply=true", [5]string{"unrecognized feature gate: ServerSideApply", "unrecognized feature gate: ServerSideApply", "unrecognized feature gate: ServerSideApply", "unrecognized feature gate: ServerSideApply", "unrecognized feature gate: ServerSideApply"}},
		{"ComponentSLIs=false", [5]string{
			"cannot set feature gate ComponentSLIs to false, feature is locked to true", "unrecognized feature gate: ComponentSLIs", "unrecognized feature gate: ComponentSLIs",
			"unrecognized feature gate: ComponentSLIs", "unrecognized feature gate: ComponentSLIs",
		}},
		{"AuthorizeWithSelectors=false", [5]string{
			"AuthorizeNodeWithSelectors feature requires AuthorizeWithSelectors feature to be enabled", "AuthorizeNodeWithSelectors is enabled, but depends on features that are disabled: [AuthorizeWithSelectors]",
			"cannot set feature gate AuthorizeWithSelectors to false, feature is locked to true", "cannot set feature gate AuthorizeWithSelectors to false, feature is locked to true", "cannot set feature gate AuthorizeWithSelectors to false, feature is locked to true",
		}},
		{"ConstrainedImpersonation=true", [5]string{
			"unrecognized feature gate: ConstrainedImpersonation",
			"cannot set feature gate ConstrainedImpersonation to true, feature is PreAlpha at emulated version 1.33, min compatibility version 1.33",
			"cannot set feature gate ConstrainedImpersonation to true, feature is PreAlpha at emulated version 1.34, min compatibility version 1.33", "on", "on",
		}},
		{"DynamicResourceAllocation=false", [5]string{"off", "off", "DRA", "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true", "cannot set feature gate DynamicResourceAllocation to false, feature is locked to true"}},
		{"ProbeHostPodSecurityStandards=true", [5]string{
			"unrecognized feature gate: ProbeHostPodSecurityStandards", "unrecognized feature gate: ProbeHostPodSecurityStandards", "unrecognized feature gate: ProbeHostPodSecurityStandards",
			"unrecognized feature gate: ProbeHostPodSecurityStandards", "unrecognized feature gate: ProbeHostPodSecurityStandards",
		}},
		{"NoSuchGate=true", [5]string{"unrecognized feature gate: NoSuchGate", "unrecognized feature gate: NoSuchGate", "unrecognized feature gate: NoSuchGate", "unrecognized feature gate: NoSuchGate", "unrecognized feature gate: NoSuchGate"}},
	} {
		for i, v := range release.All() {
			name, _, set := strings.Cut(c.pair, "=")
			pairs := []string{c.pair}
			if !set {
				pairs = nil
			}
			g, err := gates.Parse(v, pairs)
			got := "off"
			if err != nil {
				got = err.Error()
			} else if g.Enabled(name) {
				got = "on"
			}
			if want := c.want[i]; got != want && (want != "DRA" || !strings.Contains(got, "DRAAdminAccess is enabled, but depends on features that are disabled: [DynamicResourceAllocation]")) {
				t.Errorf("%s with %s: %s, want %s", v, c.pair, got, want)
			}
		}
	}
}

// TestGone: the feature of a removed gate stays on.
func TestGone(t *testing.T) {
	for name, want := range map[string]bool{"AggregatedDiscoveryEndpoint": true, "ComponentSLIs": true, "InPlacePodVerticalScalingAllocatedStatus": false, "ShardedListAndWatch": false} {
		for _, v := range release.All() {
			g := gates.New(v)
			if got := g.Enabled(name); got != want {
				t.Errorf("%s: %s is on: %t", v, name, got)
			}
			g.All(func(k gates.Gate, _ bool) {
				if k.Name == "AggregatedDiscoveryEndpoint" && v > release.V132 {
					t.Errorf("%s still has %s", v, k.Name)
				}
			})
		}
	}
}

// TestDefaultsHoldTogether finds a release whose gates would not start a server.
func TestDefaultsHoldTogether(t *testing.T) {
	for _, v := range release.All() {
		for _, pairs := range [][]string{nil, {"AllAlpha=true", "AllBeta=true"}} {
			if _, err := gates.Parse(v, pairs); err != nil {
				t.Errorf("%s with %q: %v", v, pairs, err)
			}
		}
		known := map[string]bool{}
		gates.New(v).All(func(k gates.Gate, on bool) {
			known[k.Name] = true
			if k.Stage == "" || on != k.Default {
				t.Errorf("%s: %s is %s and on %t", v, k.Name, k.Stage, on)
			}
		})
		if len(known) < 150 || !known["AllAlpha"] {
			t.Errorf("%s has %d gates", v, len(known))
		}
	}
}

// TestLibrariesAreKnown finds gates of the libraries that the table does not have: they have moved to a newer
// release, which belongs into gen/main.go.
func TestLibrariesAreKnown(t *testing.T) {
	known := map[string]bool{}
	for _, v := range release.All() {
		gates.New(v).All(func(k gates.Gate, _ bool) { known[k.Name] = true })
	}
	_, _ = genericfeatures.APIServerTracing, apiextensionsfeatures.CRDValidationRatcheting // their packages register them
	var r registry
	if err := clientfeatures.AddFeaturesToExistingFeatureGates(&r); err != nil {
		t.Fatal(err)
	}
	names := r.names
	for name := range utilfeature.DefaultMutableFeatureGate.GetAll() {
		names = append(names, string(name))
	}
	if len(names) < 30 {
		t.Errorf("the libraries have %d gates", len(names))
	}
	for _, name := range names {
		if !known[name] {
			t.Errorf("the libraries have the gate %s, which the table lacks: name the release in gen/main.go and run go generate ./server/gates", name)
		}
	}
}

// registry takes the gates of client-go.
type registry struct{ names []string }

func (r *registry) Add(all map[clientfeatures.Feature]clientfeatures.FeatureSpec) error {
	for name := range all {
		r.names = append(r.names, string(name))
	}
	return nil
}
