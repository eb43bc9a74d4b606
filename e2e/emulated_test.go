package e2e

import (
	"encoding/json"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/version"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestEmulatedReleases: a server with --emulated-version reports that release, serves its kinds to kubectl, and
// neither keeps nor explains fields that came after it.
func TestEmulatedReleases(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		release, minCompatibility string
		serves, lacks             string // api-resources
		keeps, drops              string // fields of the Pod
	}{
		{"1.34", "1.33", "resource.k8s.io/v1 networking.k8s.io/v1:ServiceCIDR storage.k8s.io/v1:VolumeAttributesClass", "MutatingAdmissionPolicy", "hostnameOverride", "schedulingGroup"},
		{"1.36", "1.35", "resource.k8s.io/v1 networking.k8s.io/v1:IPAddress admissionregistration.k8s.io/v1:MutatingAdmissionPolicy", "LeaseCandidate", "hostnameOverride schedulingGroup", "noSuchField"},
	} {
		t.Run(c.release, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Args: []string{"--emulated-version=" + c.release}})
			k := s.Kubectl(t)
			var v version.Info
			if err := json.Unmarshal([]byte(k.Run("get", "--raw", "/version")), &v); err != nil {
				t.Fatal(err)
			}
			if v.Minor != "36" || v.EmulationMajor+"."+v.EmulationMinor != c.release || v.MinCompatibilityMajor+"."+v.MinCompatibilityMinor != c.minCompatibility || !strings.HasPrefix(v.GitVersion, "v1.36.") {
				t.Errorf("/version is %+v", v)
			}
			resources := k.Run("api-resources", "--no-headers")
			for _, want := range strings.Fields(c.serves) {
				version, kind, _ := strings.Cut(want, ":")
				found := false
				for line := range strings.Lines(resources) {
					found = found || strings.Contains(line, " "+version+" ") && strings.HasSuffix(strings.TrimSpace(line), kind)
				}
				if !found {
					t.Errorf("no %s in\n%s", want, resources)
				}
			}
			if strings.Contains(resources, c.lacks) {
				t.Errorf("%s is in\n%s", c.lacks, resources)
			}
			for _, field := range strings.Fields(c.keeps) {
				k.Run("explain", "pod.spec."+field)
			}
			for _, field := range strings.Fields(c.drops) {
				if out, err := k.Try("", "explain", "pod.spec."+field); err == nil {
					t.Errorf("explain knows %s:\n%s", field, out)
				}
				pod := `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"late"},"spec":{"containers":[{"name":"c","image":"i"}],"` + field + `":{"podGroupName":"g"}}}`
				if out, err := k.Try(pod, "create", "--validate=strict", "-f", "-"); err == nil || !strings.Contains(out, `unknown field "spec.`+field+`"`) {
					t.Errorf("%s in a Pod: %v\n%s", field, err, out)
				}
			}
			k.Run("create", "deployment", "web", "--image=i")
			k.Want([]string{"web"}, "get", "deployments")
			if out := k.Run("get", "deployment", "web", "-o", "yaml"); strings.Contains(out, "creationTimestamp: null") {
				t.Errorf("a template has a creation time:\n%s", out)
			}
			if _, err := k.Try(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"a"},"data":{"k":"v"}}`, "apply", "--server-side", "-f", "-"); err != nil {
				t.Error(err)
			}
		})
	}
}
