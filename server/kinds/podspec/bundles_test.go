package podspec_test

import (
	"slices"
	"testing"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// TestProjectedBundles: the ClusterTrustBundles that a volume may show with the gate.
// Without it these fields are dropped before they are checked.
func TestProjectedBundles(t *testing.T) {
	const (
		volume = "spec.volumes[0].projected"
		source = volume + ".sources[0].clusterTrustBundle"
		form   = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
	)
	for name, c := range map[string]struct {
		bundles string
		want    []string
	}{
		"by name":              {`{"clusterTrustBundle": {"name": "a", "path": "ca.pem"}}`, nil},
		"by a signer's name":   {`{"clusterTrustBundle": {"name": "example.com:s:a", "path": "ca.pem", "optional": true}}`, nil},
		"by signer":            {`{"clusterTrustBundle": {"signerName": "example.com/s", "path": "ca.pem"}}`, nil},
		"by signer and labels": {`{"clusterTrustBundle": {"signerName": "example.com/s", "labelSelector": {"matchLabels": {"a": "b"}}, "path": "ca.pem"}}`, nil},
		"neither":              {`{"clusterTrustBundle": {"path": "ca.pem"}}`, []string{source + ": Required value: either name or signerName must be specified"}},
		"labels of a name": {`{"clusterTrustBundle": {"name": "a", "labelSelector": {}, "path": "ca.pem"}}`, []string{
			source + `.labelSelector: Invalid value: v1.LabelSelector{MatchLabels:map[string]string(nil), MatchExpressions:[]v1.LabelSelectorRequirement(nil)}: labelSelector must be unset if name is specified`,
		}},
		"an empty name": {`{"clusterTrustBundle": {"name": "", "path": "ca.pem"}}`, []string{
			source + ".name: Required value: must be a valid object name",
			source + `.name: Invalid value: "": not a valid clustertrustbundlename: ` + form,
		}},
		"a bad name": {`{"clusterTrustBundle": {"name": "example.com:s:A", "path": "ca.pem"}}`, []string{
			source + `.name: Invalid value: "example.com:s:A": not a valid clustertrustbundlename: ` + form,
		}},
		"an empty signer": {`{"clusterTrustBundle": {"signerName": "", "path": "ca.pem"}}`, []string{
			source + ".signerName: Required value: must be a valid signer name", source + ".signerName: Required value",
		}},
		"a bad signer": {`{"clusterTrustBundle": {"signerName": "s", "path": "ca.pem"}}`, []string{
			source + `.signerName: Invalid value: "s": must be a fully qualified domain and path of the form 'example.com/signer-name'`,
		}},
		"bad labels": {`{"clusterTrustBundle": {"signerName": "example.com/s", "labelSelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}, "path": "ca.pem"}}`, []string{
			source + `.labelSelector.matchExpressions[0].operator: Invalid value: "Is": not a valid selector operator`,
		}},
		"no path":       {`{"clusterTrustBundle": {"name": "a"}}`, []string{source + ".path: Required value"}},
		"a path out":    {`{"clusterTrustBundle": {"name": "a", "path": "../x"}}`, []string{source + `.path: Invalid value: "../x": must not contain '..'`}},
		"absolute path": {`{"clusterTrustBundle": {"name": "a", "path": "/x"}}`, []string{source + `.path: Invalid value: "/x": must be a relative path`}},
		"one path twice": {`{"clusterTrustBundle": {"name": "a", "path": "x"}}, {"clusterTrustBundle": {"name": "b", "path": "x"}}`, []string{
			volume + `: Invalid value: "x": conflicting duplicate paths`,
		}},
		"beside another": {`{"clusterTrustBundle": {"name": "a", "path": "x"}, "configMap": {"name": "c"}}`, []string{
			volume + ".sources[0]: Forbidden: may not specify more than 1 volume type per source",
		}},
	} {
		text := podWith(`"volumes": [{"name": "v", "projected": {"sources": [` + c.bundles + `]}}], "serviceAccountName": "s"`)
		for gate, want := range map[bool][]string{true: c.want, false: nil} {
			r := podspec.For(func(name string) bool { return gate && name == "ClusterTrustBundleProjection" })
			pod := decodePod(t, text)
			r.DefaultPodSpec(&pod.Spec)
			r.DropDisabled(&pod.Spec, nil)
			if got := texts(podspec.ValidatePod(pod, r.PodOptions(pod, nil))); !slices.Equal(got, want) {
				t.Errorf("%s, with the gate %t:\n got %q\nwant %q", name, gate, got, want)
			}
			if got := pod.Spec.Volumes[0].Projected.Sources[0].ClusterTrustBundle != nil; got != gate {
				t.Errorf("%s, with the gate %t: the source is there: %t", name, gate, got)
			}
		}
	}
}
