package builtin_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/release"
)

// TestReleases: which versions of the kinds that have changed each release has, those that are off by default in
// brackets, and behind a colon the version that the storage hash stands for.
func TestReleases(t *testing.T) {
	want := map[string][5]string{ // 1.32 to 1.36
		"servicecidrs.networking.k8s.io":                           {"(v1beta1)", "v1 (v1beta1):v1", "v1 (v1beta1):v1", "v1 (v1beta1):v1", "v1 (v1beta1):v1"},
		"ipaddresses.networking.k8s.io":                            {"(v1beta1)", "v1 (v1beta1):v1", "v1 (v1beta1):v1", "v1 (v1beta1):v1", "v1 (v1beta1):v1"},
		"volumeattributesclasses.storage.k8s.io":                   {"(v1beta1) (v1alpha1)", "(v1beta1):v1beta1", "v1 (v1beta1):v1beta1", "v1 (v1beta1):v1", "v1 (v1beta1):v1"},
		"resourceclaims.resource.k8s.io":                           {"(v1beta1) (v1alpha3)", "(v1beta2) (v1beta1):v1beta2", "v1 (v1beta2) (v1beta1):v1beta2", "v1 (v1beta2) (v1beta1):v1", "v1 (v1beta2) (v1beta1):v1"},
		"clustertrustbundles.certificates.k8s.io":                  {"(v1alpha1)", "(v1beta1) (v1alpha1):v1beta1", "(v1beta1) (v1alpha1):v1beta1", "(v1beta1) (v1alpha1):v1beta1", "(v1beta1) (v1alpha1):v1beta1"},
		"leasecandidates.coordination.k8s.io":                      {"(v1alpha2)", "(v1beta1) (v1alpha2):v1beta1", "(v1beta1) (v1alpha2):v1beta1", "(v1beta1) (v1alpha2):v1beta1", "(v1beta1) (v1alpha2):v1beta1"},
		"mutatingadmissionpolicies.admissionregistration.k8s.io":   {"(v1alpha1)", "(v1alpha1):v1beta1", "(v1beta1) (v1alpha1):v1beta1", "(v1beta1) (v1alpha1):v1beta1", "v1 (v1beta1) (v1alpha1):v1beta1"},
		"validatingadmissionpolicies.admissionregistration.k8s.io": {"v1 (v1beta1)", "v1 (v1beta1):v1", "v1:v1", "v1:v1", "v1:v1"},
		"selfsubjectreviews.authentication.k8s.io":                 {"v1 (v1beta1)", "v1", "v1", "v1", "v1"},
		"horizontalpodautoscalers.autoscaling":                     {"v2 v1", "v2 v1:v2", "v2 v1:v2", "v2 v1:v2", "v2 v1:v2"},
		"customresourcedefinitions.apiextensions.k8s.io":           {"v1:v1beta1", "v1:v1beta1", "v1:v1beta1", "v1:v1beta1", "v1:v1beta1"},
		"pods": {"v1", "v1:v1", "v1:v1", "v1:v1", "v1:v1"},
	}
	for i, v := range release.All() {
		got := map[string]string{}
		for _, r := range (builtin.Config{Release: v, MinCompatibility: v.MinCompatibility()}).Resources() {
			name, version := r.GroupResource().String(), r.Version
			if r.Off {
				version = "(" + version + ")"
			}
			shown, hashed, _ := strings.Cut(got[name], ":")
			if r.Storage != nil {
				hashed = r.Storage.HashedVersion
			}
			got[name] = strings.TrimSuffix(strings.TrimSpace(shown+" "+version)+":"+hashed, ":")
		}
		for name, versions := range want {
			if got[name] != versions[i] {
				t.Errorf("%s has %s in %q, want %q", v, name, got[name], versions[i])
			}
		}
	}
}

// TestOrderOfVersions: the resources of a version are in the order of their names, as in discovery, and the rows of a group are
// together.
func TestOrderOfVersions(t *testing.T) {
	for _, v := range release.All() {
		last, seen := "", map[string]bool{}
		var names []string
		for _, r := range append((builtin.Config{Release: v}).Resources(), &kinds.Resource{}) {
			if gv := r.APIVersion(); gv != last {
				if seen[gv] {
					t.Errorf("%s: %s stands in two places", v, gv)
				}
				if last != "v1" && !slices.IsSorted(names) {
					t.Errorf("%s: %s has %q", v, last, names)
				}
				seen[gv], last, names = true, gv, nil
			}
			names = append(names, r.Plural)
		}
	}
}

// TestResourceVersions: fields that v1beta1 has in other places than later versions.
func TestResourceVersions(t *testing.T) {
	find := func(version, plural string) *kinds.Resource {
		for _, r := range (builtin.Config{Release: release.V136}).Resources() {
			if r.Group == "resource.k8s.io" && r.Version == version && r.Plural == plural {
				return r
			}
		}
		t.Fatalf("%s %s is missing", version, plural)
		return nil
	}
	for _, version := range []string{"v1", "v1beta2"} {
		for _, c := range []struct{ plural, newer, stored string }{
			{
				"resourceclaims", `{"devices":{"requests":[{"name":"a","exactly":{"deviceClassName":"c","allocationMode":"ExactCount","count":2}},{"name":"b","firstAvailable":[{"name":"x","deviceClassName":"d"}]},{"name":"c"}]}}`,
				`{"devices":{"requests":[{"name":"a","deviceClassName":"c","allocationMode":"ExactCount","count":2},{"name":"b","deviceClassName":"","firstAvailable":[{"name":"x","deviceClassName":"d"}]},{"name":"c","deviceClassName":""}]}}`,
			},
			{
				"resourceslices", `{"driver":"d","pool":{"name":"","generation":0,"resourceSliceCount":0},"devices":[{"name":"gpu","attributes":{"m":{"string":"x"}},"capacity":{"mem":{"value":"1Gi"}},"allNodes":true},{"name":"bare"}]}`,
				`{"driver":"d","pool":{"name":"","generation":0,"resourceSliceCount":0},"devices":[{"name":"gpu","basic":{"attributes":{"m":{"string":"x"}},"capacity":{"mem":{"value":"1Gi"}},"allNodes":true}},{"name":"bare","basic":{}}]}`,
			},
		} {
			r := find(version, c.plural)
			obj := r.New()
			if err := json.Unmarshal(fmt.Appendf(nil, `{"metadata":{"name":"n"},"spec":%s}`, c.newer), obj); err != nil {
				t.Fatal(err)
			}
			stored, err := r.ToStorage(obj)
			if err != nil {
				t.Fatal(err)
			}
			compareSpec(t, stored, c.stored)
			back, err := r.FromStorage(stored)
			if err != nil {
				t.Fatal(err)
			}
			compareSpec(t, back, c.newer)
		}
	}
}

func compareSpec(t *testing.T, obj kinds.Object, want string) {
	t.Helper()
	text, err := json.Marshal(obj)
	if err != nil {
		t.Fatal(err)
	}
	var got struct{ Spec any }
	var wanted any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal([]byte(want), &wanted); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(wanted, got.Spec); diff != "" {
		t.Errorf("%T: %s", obj, diff)
	}
}
