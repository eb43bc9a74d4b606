package kinds_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

func someResources() []*kinds.Resource {
	return []*kinds.Resource{
		resource("", "v1", "pods", false),
		resource("apps", "v1", "deployments", false),
		resource("apps", "v1", "daemonsets", false),
		resource("batch", "v1", "jobs", false),
		resource("autoscaling", "v2", "horizontalpodautoscalers", false),
		resource("autoscaling", "v1", "horizontalpodautoscalers", false),
		resource("flowcontrol.apiserver.k8s.io", "v1", "flowschemas", false),
		{Group: "x.k8s.io", Version: "v1beta1", Plural: "beans", Off: true},
		{Group: "x.k8s.io", Version: "v2alpha1", Plural: "beans", Off: true},
	}
}

func pairs(text string) map[string]string {
	asked := kinds.ParseRuntimeConfig(strings.Split(text, ","))
	delete(asked, "")
	return asked
}

// noGate returns a server whose feature gates are all off.
func noGate(string) bool { return false }

func TestEnable(t *testing.T) {
	const flow = "flowcontrol.apiserver.k8s.io/v1"
	for _, c := range []struct{ asked, off, remarks string }{
		{"", "x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", ""},
		{"batch/v1=false", "batch/v1/jobs x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", ""},
		{"/v1=false", "/v1/pods x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", ""},
		{"autoscaling/v1=0,apps/v1/daemonsets=false", "apps/v1/daemonsets autoscaling/v1/horizontalpodautoscalers x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", ""},
		{"x.k8s.io/v1beta1", "x.k8s.io/v2alpha1/beans", ""},
		{"api/beta=true", "x.k8s.io/v2alpha1/beans", ""},
		{"api/alpha=true,api/beta=false", "x.k8s.io/v1beta1/beans", ""},
		{"api/all=true", "", ""},
		{"api/all=true,api/alpha=false", "x.k8s.io/v2alpha1/beans", ""},
		{"api/all=false," + flow + "=true,apps/v1/daemonsets=true", "/v1/pods apps/v1/deployments autoscaling/v1/horizontalpodautoscalers autoscaling/v2/horizontalpodautoscalers batch/v1/jobs x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", ""},
		{"api/ga=false,api/all=true," + flow + "=true", "/v1/pods apps/v1/daemonsets apps/v1/deployments autoscaling/v1/horizontalpodautoscalers autoscaling/v2/horizontalpodautoscalers batch/v1/jobs", ""},
		{"batch/v1/nothing=true", "x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", ""},
		{"batch/v1beta1=true", "x.k8s.io/v1beta1/beans x.k8s.io/v2alpha1/beans", "batch/v1beta1 is turned on, and has nothing that this server serves"},
	} {
		all := someResources()
		remarks, err := kinds.Enable(release.Default, all, pairs(c.asked), true, noGate)
		if err != nil {
			t.Errorf("%s: %v", c.asked, err)
			continue
		}
		var off []string
		for _, r := range all {
			if r.Off {
				off = append(off, r.Group+"/"+r.Version+"/"+r.Plural)
			}
		}
		slices.Sort(off)
		if got := strings.Join(off, " "); got != c.off {
			t.Errorf("%s:\n got %s\nwant %s", c.asked, got, c.off)
		}
		if got := strings.Join(remarks, "; "); got != c.remarks {
			t.Errorf("%s: %q", c.asked, got)
		}
	}
}

// TestGates: a kind that needs a gate is served if the gate is on and the kind is enabled.
func TestGates(t *testing.T) {
	for _, c := range []struct {
		asked         string
		gate, on      bool
		other, remark string
	}{
		{"", true, false, "off", ""},
		{"api/all", false, false, "on", ""},
		{"api/all", true, true, "on", ""},
		{"y.k8s.io/v1alpha1", false, false, "on", "peas of y.k8s.io/v1alpha1 is turned on, and needs the feature gate Peas"},
		{"y.k8s.io/v1alpha1/peas", false, false, "off", "peas of y.k8s.io/v1alpha1 is turned on, and needs the feature gate Peas"},
		{"y.k8s.io/v1alpha1/peas", true, true, "off", ""},
		{"api/all,y.k8s.io/v1alpha1=false", true, false, "off", ""},
	} {
		gated := &kinds.Resource{Group: "y.k8s.io", Version: "v1alpha1", Plural: "peas", Gate: "Peas", Off: true}
		other := &kinds.Resource{Group: "y.k8s.io", Version: "v1alpha1", Plural: "pods", Off: true}
		remarks, err := kinds.Enable(release.Default, []*kinds.Resource{gated, other}, pairs(c.asked), true, func(name string) bool { return name == "Peas" && c.gate })
		if err != nil || gated.Off == c.on || other.Off != (c.other == "off") || strings.Join(remarks, "; ") != c.remark {
			t.Errorf("%q with the gate %t: off %t and %t, %q, %v", c.asked, c.gate, gated.Off, other.Off, remarks, err)
		}
	}
}

func TestEnableErrors(t *testing.T) {
	const conflict = "--runtime-config=api/all=false conflicts with --enable-priority-and-fairness=true"
	for asked, want := range map[string]string{
		"foo/v1=true":         "unknown api groups foo",
		"foo/v1,bar/v1/x":     "unknown api groups bar,foo",
		"batch/v9=true":       "group version batch/v9 that has not been registered",
		"batch/v1=maybe":      `invalid value of batch/v1: maybe, err: strconv.ParseBool: parsing "maybe": invalid syntax`,
		"batch=true":          "runtime-config invalid key batch",
		"apps/v1/d/scale":     "runtime-config invalid key apps/v1/d/scale",
		"apps/v1/Deployments": `invalid key apps/v1/Deployments: group/version/resource and resource is always lowercase plural, not "Deployments"`,
		"api/all=false":       "[" + conflict + ", invalid key with only api/all=false]",
		"api/beta=yes":        "invalid value api/beta=yes",
		"api/all=false,/v1":   conflict,
		"api/ga=false":        "--runtime-config=api/ga=false conflicts with --enable-priority-and-fairness=true",
	} {
		if _, err := kinds.Enable(release.Default, someResources(), pairs(asked), true, noGate); err == nil || err.Error() != want {
			t.Errorf("%s:\n got %v\nwant %s", asked, err, want)
		}
	}
}

// TestWithoutValue: a key without a value is "true", whichever it is.
func TestWithoutValue(t *testing.T) {
	for _, key := range []string{"api/all", "api/ga", "api/beta", "api/alpha", "batch/v1", "batch/v1/jobs"} {
		var off [2][]string
		for i, asked := range []string{key, key + "=true"} {
			all := someResources()
			if _, err := kinds.Enable(release.Default, all, pairs(asked), true, noGate); err != nil {
				t.Errorf("%s: %v", asked, err)
			}
			for _, r := range all {
				if r.Off {
					off[i] = append(off[i], r.GVR().String())
				}
			}
		}
		if !slices.Equal(off[0], off[1]) {
			t.Errorf("%s: %q are off, and with =true %q", key, off[0], off[1])
		}
	}
	// A stronger key without a value overrides a weaker one, as with "true".
	if _, err := kinds.Enable(release.Default, someResources(), pairs("api/ga,api/all=false"), true, noGate); err != nil {
		t.Error(err)
	}
}

// TestUnfair: without flow control its API group may be disabled.
func TestUnfair(t *testing.T) {
	for _, asked := range []string{"api/ga=false", "api/all=false,batch/v1=true"} {
		if _, err := kinds.Enable(release.Default, someResources(), pairs(asked), false, noGate); err != nil {
			t.Errorf("%s: %v", asked, err)
		}
		if _, err := kinds.Enable(release.Default, someResources(), pairs(asked), true, noGate); err == nil {
			t.Errorf("%s: taken together with fairness", asked)
		}
	}
}

// TestOff: a resource that is off can be found, and is not served.
func TestOff(t *testing.T) {
	all := someResources()
	if _, err := kinds.Enable(release.Default, all, pairs("autoscaling/v2=false,batch/v1=false"), true, noGate); err != nil {
		t.Fatal(err)
	}
	c := kinds.NewCatalogue(all)
	if r := c.Lookup("batch", "v1", "jobs"); r == nil || !r.Off {
		t.Error("jobs cannot be found")
	}
	if c.Versions("batch") != nil || !slices.Equal(c.Versions("autoscaling"), []string{"v1"}) {
		t.Error(c.Versions("batch"), c.Versions("autoscaling"))
	}
	if len(c.Known()) != len(all) || len(c.All()) != len(all)-4 || slices.ContainsFunc(c.All(), func(r *kinds.Resource) bool { return r.Off }) {
		t.Errorf("%d of %d are served", len(c.All()), len(c.Known()))
	}
}

// FuzzEnable: only the value of the flag decides.
func FuzzEnable(f *testing.F) {
	f.Add("batch/v1=false,api/all=true")
	f.Add("apps/v1/daemonsets=0,api/beta=false")
	f.Add("/v1,foo/v1=x")
	f.Fuzz(func(t *testing.T, text string) {
		asked := pairs(text)
		first, again := someResources(), someResources()
		remarks, err := kinds.Enable(release.Default, first, maps.Clone(asked), true, noGate)
		remarks2, err2 := kinds.Enable(release.Default, again, asked, true, noGate)
		if (err == nil) != (err2 == nil) || err != nil && err.Error() != err2.Error() || !slices.Equal(remarks, remarks2) {
			t.Fatalf("%q: %v %v, then %v %v", text, remarks, err, remarks2, err2)
		}
		for i, r := range first {
			if r.Off != again[i].Off {
				t.Fatalf("%q: %s is on and off", text, r.Plural)
			}
			exact, ok := asked[r.Group+"/"+r.Version+"/"+r.Plural]
			if on := exact == "" || exact == "true"; err == nil && ok && (exact == "" || exact == "true" || exact == "false") && r.Off == on {
				t.Fatalf("%q: the most exact key does not count for %s", text, r.Plural)
			}
		}
	})
}
