package builtin

import (
	"cmp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	networkingv1 "k8s.io/api/networking/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/batch"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/kinds/networking"
	"github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/kinds/storage"
	"github.com/rowlock/rowlock/server/kinds/storagemigration"
	"github.com/rowlock/rowlock/server/release"
)

// retabled are the Table forms of release.Tables133.
var retabled = map[schema.GroupResource]kinds.Columns{
	{Resource: "nodes"}:                                                      core.NodeColumnsSince133,
	{Resource: "pods"}:                                                       pods.ColumnsSince133(),
	{Resource: "resourcequotas"}:                                             core.ResourceQuotaColumnsSince133,
	{Resource: "serviceaccounts"}:                                            core.ServiceAccountColumnsSince133,
	{Group: "batch", Resource: "jobs"}:                                       batch.JobColumnsSince133,
	{Group: "networking.k8s.io", Resource: "ingressclasses"}:                 networking.IngressClassColumnsSince133,
	{Group: "storage.k8s.io", Resource: "volumeattributesclasses"}:           storage.VolumeAttributesClassColumnsSince133,
	{Group: "storagemigration.k8s.io", Resource: "storageversionmigrations"}: storagemigration.MigrationColumnsSince133,
}

// redescribed are the descriptions of columns that release.Tables133 takes from the served version of a kind;
// earlier releases have those of a version that is no longer served.
var redescribed = map[schema.GroupResource]map[string]string{
	{Group: "apps", Resource: "controllerrevisions"}: {"Revision": appsv1.ControllerRevision{}.SwaggerDoc()["revision"]},
	{Group: "apps", Resource: "daemonsets"}: {
		"Ready":    appsv1.DaemonSetStatus{}.SwaggerDoc()["numberReady"],
		"Selector": appsv1.DaemonSetSpec{}.SwaggerDoc()["selector"],
	},
	{Group: "apps", Resource: "deployments"}: {"Selector": appsv1.DeploymentSpec{}.SwaggerDoc()["selector"]},
	{Group: "apps", Resource: "replicasets"}: {
		"Ready":    appsv1.ReplicaSetStatus{}.SwaggerDoc()["readyReplicas"],
		"Selector": appsv1.ReplicaSetSpec{}.SwaggerDoc()["selector"],
	},
	{Group: "autoscaling", Resource: "horizontalpodautoscalers"}: {"Targets": autoscalingv2.HorizontalPodAutoscalerSpec{}.SwaggerDoc()["metrics"]},
	{Group: "networking.k8s.io", Resource: "networkpolicies"}:    {"Pod-Selector": networkingv1.NetworkPolicySpec{}.SwaggerDoc()["podSelector"]},
}

// misspelled is the spelling of a word of descriptions in the oldest release.
const misspelled, spelled = "configration", "configuration"

// retable gives a resource the Table form of its release.
func retable(r *kinds.Resource) {
	if !r.Release.Has(release.Tables133) {
		return
	}
	name := schema.GroupResource{Group: r.Group, Resource: r.Plural}
	if c, ok := retabled[name]; ok {
		r.Columns = c
	}
	r.Columns.Definitions = slices.Clone(r.Columns.Definitions)
	for i := range r.Columns.Definitions {
		d := &r.Columns.Definitions[i]
		d.Description = cmp.Or(redescribed[name][d.Name], strings.ReplaceAll(d.Description, misspelled, spelled))
	}
}
