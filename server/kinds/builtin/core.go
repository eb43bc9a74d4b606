package builtin

import (
	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/kinds/pods"
)

func (c Config) coreV1(events *kinds.Storage) []*kinds.Resource {
	return rows("", "v1",
		&kinds.Resource{
			Plural: "bindings", Kind: "Binding", Namespaced: true,
			Verbs: createOnly(), New: object[corev1.Binding](),
		},
		&kinds.Resource{
			Plural: "componentstatuses", Kind: "ComponentStatus", ShortNames: []string{"cs"},
			Verbs: []string{"get", "list"},
			New:   object[corev1.ComponentStatus](), NewList: list[corev1.ComponentStatusList](),
			Columns: core.ComponentStatusColumns, Deprecation: &kinds.Deprecation{Warning: "v1 ComponentStatus is deprecated in v1.19+"},
		},
		&kinds.Resource{
			Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, ShortNames: []string{"cm"},
			New: object[corev1.ConfigMap](), NewList: list[corev1.ConfigMapList](),
			Storage: &kinds.Storage{Strategy: core.ConfigMap}, Columns: core.ConfigMapColumns,
		},
		&kinds.Resource{
			Plural: "endpoints", Kind: "Endpoints", Namespaced: true, ShortNames: []string{"ep"},
			New: object[corev1.Endpoints](), NewList: list[corev1.EndpointsList](),
			Storage: &kinds.Storage{Registry: "services/endpoints", Strategy: core.Endpoints(c.Feature)}, Columns: core.EndpointsColumns,
		},
		&kinds.Resource{
			Plural: "events", Kind: "Event", Namespaced: true, ShortNames: []string{"ev"},
			New: object[corev1.Event](), NewList: list[corev1.EventList](),
			Storage: events, Columns: core.EventColumns,
		},
		&kinds.Resource{
			Plural: "limitranges", Kind: "LimitRange", Namespaced: true, ShortNames: []string{"limits"},
			New: object[corev1.LimitRange](), NewList: list[corev1.LimitRangeList](),
			Storage: &kinds.Storage{Strategy: core.LimitRange},
		},
		&kinds.Resource{
			Plural: "namespaces", Kind: "Namespace", ShortNames: []string{"ns"},
			Verbs: []string{"create", "delete", "get", "list", "patch", "update", "watch"},
			New:   object[corev1.Namespace](), NewList: list[corev1.NamespaceList](),
			Storage: &kinds.Storage{Strategy: core.Namespace, Fields: core.NamespaceFields}, Columns: core.NamespaceColumns,
			Subresources: []kinds.Subresource{
				{Name: "finalize", Kind: "Namespace", Verbs: []string{"update"}, Update: &core.NamespaceFinalize, NoTable: true},
				status(),
			},
		},
		&kinds.Resource{
			Plural: "nodes", Kind: "Node", ShortNames: []string{"no"},
			New: object[corev1.Node](), NewList: list[corev1.NodeList](),
			Storage: &kinds.Storage{Registry: "minions", Strategy: without(c, core.Node(c.Feature), &corev1.Node{}, dropNodeFeatures, "SupplementalGroupsPolicy"), Fields: core.NodeFields}, Columns: core.NodeColumns,
			Subresources: []kinds.Subresource{
				{Name: "proxy", Kind: "NodeProxyOptions", Verbs: proxyVerbs()},
				status(),
			},
		},
		&kinds.Resource{
			Plural: "persistentvolumeclaims", Kind: "PersistentVolumeClaim", Namespaced: true, ShortNames: []string{"pvc"},
			New: object[corev1.PersistentVolumeClaim](), NewList: list[corev1.PersistentVolumeClaimList](),
			Storage: &kinds.Storage{Strategy: core.PersistentVolumeClaim(c.Feature)}, Columns: core.PersistentVolumeClaimColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "persistentvolumes", Kind: "PersistentVolume", ShortNames: []string{"pv"},
			New: object[corev1.PersistentVolume](), NewList: list[corev1.PersistentVolumeList](),
			Storage: &kinds.Storage{Strategy: core.PersistentVolume(c.Feature)}, Columns: core.PersistentVolumeColumns,
			Subresources: []kinds.Subresource{status()},
		},
		pods.Resource(c.Feature),
		&kinds.Resource{
			Plural: "podtemplates", Kind: "PodTemplate", Namespaced: true,
			New: object[corev1.PodTemplate](), NewList: list[corev1.PodTemplateList](),
			Storage: &kinds.Storage{Strategy: core.PodTemplate(c.Feature)}, Columns: core.PodTemplateColumns,
		},
		&kinds.Resource{
			Plural: "replicationcontrollers", Kind: "ReplicationController", Namespaced: true,
			ShortNames: []string{"rc"}, Categories: []string{"all"},
			New: object[corev1.ReplicationController](), NewList: list[corev1.ReplicationControllerList](),
			Storage: &kinds.Storage{Registry: "controllers", Strategy: core.ReplicationController(c.Feature), Fields: core.ReplicationControllerFields}, Columns: core.ReplicationControllerColumns,
			Zero:         noReplicas(core.ReplicationControllerScale),
			Subresources: []kinds.Subresource{scale(core.ReplicationControllerScale), status()},
		},
		&kinds.Resource{
			Plural: "resourcequotas", Kind: "ResourceQuota", Namespaced: true, ShortNames: []string{"quota"},
			New: object[corev1.ResourceQuota](), NewList: list[corev1.ResourceQuotaList](),
			Storage: &kinds.Storage{Strategy: core.ResourceQuota(c.Feature)}, Columns: core.ResourceQuotaColumns,
			Subresources: []kinds.Subresource{status()},
		},
		&kinds.Resource{
			Plural: "secrets", Kind: "Secret", Namespaced: true,
			New: object[corev1.Secret](), NewList: list[corev1.SecretList](),
			Storage: &kinds.Storage{Strategy: core.Secret, Fields: core.SecretFields}, Columns: core.SecretColumns,
		},
		&kinds.Resource{
			Plural: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true, ShortNames: []string{"sa"},
			New: object[corev1.ServiceAccount](), NewList: list[corev1.ServiceAccountList](),
			Storage: &kinds.Storage{Strategy: core.ServiceAccount}, Columns: core.ServiceAccountColumns,
			Subresources: []kinds.Subresource{
				{Name: "token", Group: "authentication.k8s.io", Version: "v1", Kind: "TokenRequest", Verbs: createOnly()},
			},
		},
		&kinds.Resource{
			Plural: "services", Kind: "Service", Namespaced: true,
			ShortNames: []string{"svc"}, Categories: []string{"all"},
			New: object[corev1.Service](), NewList: list[corev1.ServiceList](),
			Storage: &kinds.Storage{Registry: "services/specs", Strategy: without(c, core.Service(c.services(), c.Feature), &corev1.Service{}, dropTrafficDistribution, "ServiceTrafficDistribution"), Fields: core.ServiceFields}, Columns: core.ServiceColumns,
			Subresources: []kinds.Subresource{
				{Name: "proxy", Kind: "ServiceProxyOptions", Verbs: proxyVerbs()},
				status(),
			},
		},
	)
}
