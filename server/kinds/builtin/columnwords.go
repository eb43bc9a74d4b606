package builtin

import (
	"slices"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/networking"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/release/words"
)

// reworded are the columns whose descriptions, which are those of a field, differ between releases.
var reworded = []struct {
	group, version, plural, column string
	name, field                    string
}{
	{"apps", "v1", "deployments", "Up-to-date", "k8s.io/api/apps/v1.DeploymentStatus", "updatedReplicas"},
	{"apps", "v1", "deployments", "Available", "k8s.io/api/apps/v1.DeploymentStatus", "availableReplicas"},
	{"apps", "v1", "replicasets", "Desired", "k8s.io/api/apps/v1.ReplicaSetSpec", "replicas"},
	{"apps", "v1", "replicasets", "Current", "k8s.io/api/apps/v1.ReplicaSetStatus", "replicas"},
	{"networking.k8s.io", "v1", "networkpolicies", "Pod-Selector", "k8s.io/api/networking/v1.NetworkPolicySpec", "podSelector"},
	{"storage.k8s.io", "v1", "csidrivers", "AttachRequired", "k8s.io/api/storage/v1.CSIDriverSpec", "attachRequired"},
	{"discovery.k8s.io", "v1", "endpointslices", "AddressType", "k8s.io/api/discovery/v1.EndpointSlice", "addressType"},
	{"discovery.k8s.io", "v1", "endpointslices", "Ports", "k8s.io/api/discovery/v1.EndpointSlice", "ports"},
	{"resource.k8s.io", "v1beta1", "resourceslices", "Node", "k8s.io/api/resource/v1beta1.ResourceSliceSpec", "nodeName"},
	{"resource.k8s.io", "v1beta1", "resourceslices", "Driver", "k8s.io/api/resource/v1beta1.ResourceSliceSpec", "driver"},
	{"resource.k8s.io", "v1alpha3", "resourceslices", "Node", "k8s.io/api/resource/v1beta1.ResourceSliceSpec", "nodeName"},
	{"resource.k8s.io", "v1alpha3", "resourceslices", "Driver", "k8s.io/api/resource/v1beta1.ResourceSliceSpec", "driver"},
	{"internal.apiserver.k8s.io", "v1alpha1", "storageversions", "CommonEncodingVersion", "k8s.io/api/apiserverinternal/v1alpha1.StorageVersionStatus", "commonEncodingVersion"},
	{"internal.apiserver.k8s.io", "v1alpha1", "storageversions", "StorageVersions", "k8s.io/api/apiserverinternal/v1alpha1.StorageVersionStatus", "storageVersions"},
}

// columnWords are the descriptions of those columns in a release, in order; "" for those of the newest one.
// All servers of a process share them.
var columnWords sync.Map // release.Version -> []string

func wordsOf(v release.Version) []string {
	if made, ok := columnWords.Load(v); ok {
		return made.([]string)
	}
	texts, err := words.Of(v)
	if err != nil {
		panic(err) // the build is broken
	}
	out := make([]string, len(reworded))
	for i, c := range reworded {
		out[i] = texts.Text(c.name, c.field, "")
	}
	columnWords.Store(v, out)
	return out
}

// reword gives the columns of a resource the words of its release.
func reword(r *kinds.Resource) {
	for i, c := range reworded {
		if c.group != r.Group || c.version != r.Version || c.plural != r.Plural {
			continue
		}
		text := wordsOf(r.Release.Binary())[i]
		if r.Plural == "networkpolicies" && text != "" { // those of the version in which it was first served
			text = networking.FirstWords(text)
		}
		at := slices.IndexFunc(r.Columns.Definitions, func(d metav1.TableColumnDefinition) bool { return d.Name == c.column })
		if text != "" && at >= 0 {
			r.Columns.Definitions = slices.Clone(r.Columns.Definitions)
			r.Columns.Definitions[at].Description = text
		}
	}
}
