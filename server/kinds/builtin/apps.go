package builtin

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apps"
)

func (c Config) appsV1() []*kinds.Resource {
	return rows("apps", "v1",
		&kinds.Resource{
			Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true,
			New: object[appsv1.ControllerRevision](), NewList: list[appsv1.ControllerRevisionList](),
			Storage: &kinds.Storage{Strategy: apps.ControllerRevision}, Columns: apps.ControllerRevisionColumns,
		},
		&kinds.Resource{
			Plural: "daemonsets", Kind: "DaemonSet", Namespaced: true, ShortNames: []string{"ds"}, Categories: []string{"all"},
			New: object[appsv1.DaemonSet](), NewList: list[appsv1.DaemonSetList](),
			Storage: &kinds.Storage{Strategy: apps.DaemonSet(c.Feature), FieldAnnotation: appsv1.DeprecatedTemplateGeneration}, Columns: apps.DaemonSetColumns,
			Zero:         apps.ZeroDaemonSet,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "deployments", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}, Categories: []string{"all"},
			New: object[appsv1.Deployment](), NewList: list[appsv1.DeploymentList](),
			Storage: &kinds.Storage{Strategy: apps.Deployment(c.Feature)}, Columns: apps.DeploymentColumns,
			Zero:         noReplicas(apps.DeploymentScale),
			Subresources: []kinds.Subresource{scale(apps.DeploymentScale), status()},
		},
		&kinds.Resource{
			Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true, ShortNames: []string{"rs"}, Categories: []string{"all"},
			New: object[appsv1.ReplicaSet](), NewList: list[appsv1.ReplicaSetList](),
			Storage: &kinds.Storage{Strategy: apps.ReplicaSet(c.Feature)}, Columns: apps.ReplicaSetColumns,
			Zero:         noReplicas(apps.ReplicaSetScale),
			Subresources: []kinds.Subresource{scale(apps.ReplicaSetScale), status()},
		},
		&kinds.Resource{
			Plural: "statefulsets", Kind: "StatefulSet", Namespaced: true, ShortNames: []string{"sts"}, Categories: []string{"all"},
			New: object[appsv1.StatefulSet](), NewList: list[appsv1.StatefulSetList](),
			Storage: &kinds.Storage{Strategy: apps.StatefulSet(c.Feature)}, Columns: apps.StatefulSetColumns,
			Zero:         noReplicas(apps.StatefulSetScale),
			Subresources: []kinds.Subresource{scale(apps.StatefulSetScale), status()},
		},
	)
}

// noReplicas shows that there are none: the stored form of a stock server has a number.
func noReplicas(m *kinds.ScaleMapping) func(kinds.Object) {
	return func(obj kinds.Object) { m.SetReplicas(obj, 0) }
}
