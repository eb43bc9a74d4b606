package builtin

import (
	appsv1 "k8s.io/api/apps/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

func appsV1() []*kinds.Resource {
	return rows("apps", "v1",
		&kinds.Resource{
			Plural: "controllerrevisions", Kind: "ControllerRevision", Namespaced: true,
			New: object[appsv1.ControllerRevision](), NewList: list[appsv1.ControllerRevisionList](),
			Storage: &kinds.Storage{},
		},
		&kinds.Resource{
			Plural: "daemonsets", Kind: "DaemonSet", Namespaced: true, ShortNames: []string{"ds"}, Categories: []string{"all"},
			New: object[appsv1.DaemonSet](), NewList: list[appsv1.DaemonSetList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{status("DaemonSet", kinds.Strategy{})},
		},
		&kinds.Resource{
			Plural: "deployments", Kind: "Deployment", Namespaced: true, ShortNames: []string{"deploy"}, Categories: []string{"all"},
			New: object[appsv1.Deployment](), NewList: list[appsv1.DeploymentList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{scale(&kinds.ScaleMapping{}), status("Deployment", kinds.Strategy{})},
		},
		&kinds.Resource{
			Plural: "replicasets", Kind: "ReplicaSet", Namespaced: true, ShortNames: []string{"rs"}, Categories: []string{"all"},
			New: object[appsv1.ReplicaSet](), NewList: list[appsv1.ReplicaSetList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{scale(&kinds.ScaleMapping{}), status("ReplicaSet", kinds.Strategy{})},
		},
		&kinds.Resource{
			Plural: "statefulsets", Kind: "StatefulSet", Namespaced: true, ShortNames: []string{"sts"}, Categories: []string{"all"},
			New: object[appsv1.StatefulSet](), NewList: list[appsv1.StatefulSetList](),
			Storage:      &kinds.Storage{},
			Subresources: []kinds.Subresource{scale(&kinds.ScaleMapping{}), status("StatefulSet", kinds.Strategy{})},
		},
	)
}
