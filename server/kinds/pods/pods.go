// Package pods is the Pod resource: its subresources, columns and selectable
// fields, what may change in a pod and when, and how it ends.
package pods

import (
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/kinds"
)

// Resource describes pods as core/v1 serves them.
func Resource() *kinds.Resource {
	return &kinds.Resource{
		Version: "v1", Plural: "pods", Singular: "pod", Kind: "Pod", ListKind: "PodList",
		ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true,
		Verbs:   []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		New:     func() kinds.Object { return &corev1.Pod{} },
		NewList: func() runtime.Object { return &corev1.PodList{} },
		Storage: &kinds.Storage{Key: "pods", GVK: corev1.SchemeGroupVersion.WithKind("Pod")},
	}
}
