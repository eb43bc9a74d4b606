package builtin_test

import (
	"testing"

	autoscalingv2 "k8s.io/api/autoscaling/v2"
	certificatesv1 "k8s.io/api/certificates/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestErrorsAreBounded: objects with a fault in each of many items, which clients write in three bytes each, have about as many
// errors as an answer lists.
func TestErrorsAreBounded(t *testing.T) {
	const many = 5 * rules.MaxErrors
	catalogue := kinds.NewCatalogue(builtin.Resources())
	for _, c := range []struct {
		group, version, plural string
		obj                    kinds.Object
	}{
		{"", "v1", "configmaps", &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Finalizers: make([]string, many)}}},
		{"", "v1", "services", &corev1.Service{Spec: corev1.ServiceSpec{Ports: make([]corev1.ServicePort, many)}}},
		{"", "v1", "limitranges", &corev1.LimitRange{Spec: corev1.LimitRangeSpec{Limits: make([]corev1.LimitRangeItem, many)}}},
		{"", "v1", "resourcequotas", &corev1.ResourceQuota{Spec: corev1.ResourceQuotaSpec{Scopes: make([]corev1.ResourceQuotaScope, many)}}},
		{"", "v1", "nodes", &corev1.Node{Spec: corev1.NodeSpec{Taints: make([]corev1.Taint, many)}}},
		{"rbac.authorization.k8s.io", "v1", "rolebindings", &rbacv1.RoleBinding{Subjects: make([]rbacv1.Subject, many)}},
		{"rbac.authorization.k8s.io", "v1", "roles", &rbacv1.Role{Rules: make([]rbacv1.PolicyRule, many)}},
		{"networking.k8s.io", "v1", "networkpolicies", &networkingv1.NetworkPolicy{Spec: networkingv1.NetworkPolicySpec{
			Ingress: []networkingv1.NetworkPolicyIngressRule{{From: make([]networkingv1.NetworkPolicyPeer, many)}},
		}}},
		{"autoscaling", "v2", "horizontalpodautoscalers", &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{
			Metrics: make([]autoscalingv2.MetricSpec, many),
		}}},
		{"storage.k8s.io", "v1", "csinodes", &storagev1.CSINode{Spec: storagev1.CSINodeSpec{Drivers: make([]storagev1.CSINodeDriver, many)}}},
		{"certificates.k8s.io", "v1", "certificatesigningrequests", &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{
			Usages: make([]certificatesv1.KeyUsage, many),
		}}},
	} {
		r := catalogue.Lookup(c.group, c.version, c.plural)
		c.obj.GetObjectKind().SetGroupVersionKind(schema.GroupVersionKind{Group: c.group, Version: c.version, Kind: r.Kind})
		errs := r.ValidateNewMeta(nil, c.obj)
		if f := r.Storage.Validate; f != nil {
			errs = append(errs, f(t.Context(), c.obj)...)
		}
		if len(errs) < rules.MaxErrors/4 || len(errs) >= many/2 {
			t.Errorf("%s: %d errors about %d items", c.plural, len(errs), many)
		}
	}
}
