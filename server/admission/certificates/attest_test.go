package certificates_test

import (
	"context"
	"testing"
	"time"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/certificates"
	"github.com/rowlock/rowlock/server/kinds"
)

func TestAttest(t *testing.T) {
	bundles := &kinds.Resource{Group: "certificates.k8s.io", Version: "v1alpha1", Plural: "clustertrustbundles"}
	const refusal = `clustertrustbundles.certificates.k8s.io "b" is forbidden: user not permitted to attest for signerName "example.org/web"`
	now := metav1.NewTime(time.Unix(1, 0))
	for _, c := range []struct {
		name    string
		op      admission.Operation
		signer  string
		deleted *metav1.Time
		grants  grants
		want    string
	}{
		{"by name", admission.Create, "example.org/web", nil, grants{"attest example.org/web"}, ""},
		{"by domain", admission.Update, "example.org/web", nil, grants{"attest example.org/*"}, ""},
		{"nobody", admission.Create, "example.org/web", nil, nil, refusal},
		{"another verb", admission.Update, "example.org/web", nil, grants{"sign example.org/web", "approve example.org/*"}, refusal},
		{"no signer", admission.Create, "", nil, nil, ""},
		{"being deleted, and another bundle", admission.Update, "example.org/web", &now, nil, refusal},
		{"made as if it were being deleted", admission.Create, "example.org/web", &now, nil, refusal},
	} {
		b := &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "b", DeletionTimestamp: c.deleted}}
		b.Spec.SignerName = c.signer
		err := certificates.Attest(c.grants).Validate(context.Background(), &admission.Attributes{Operation: c.op, Resource: bundles, Name: "b", Object: b})
		if got := text(err); got != c.want {
			t.Errorf("%s: %q", c.name, got)
		}
	}
}

// A user who may update a bundle may do what the garbage collector does, and no more.
func TestAttestLeavesGarbageAlone(t *testing.T) {
	bundles := &kinds.Resource{Group: "certificates.k8s.io", Version: "v1alpha1", Plural: "clustertrustbundles"}
	now := metav1.NewTime(time.Unix(1, 0))
	old := &certificatesv1beta1.ClusterTrustBundle{ObjectMeta: metav1.ObjectMeta{Name: "b", Finalizers: []string{"example.org/a"}, DeletionTimestamp: &now}}
	old.Spec.SignerName, old.Spec.TrustBundle = "example.org/web", "one"
	for name, test := range map[string]struct {
		change func(*certificatesv1beta1.ClusterTrustBundle)
		passes bool
	}{
		"nothing":    {func(*certificatesv1beta1.ClusterTrustBundle) {}, true},
		"finalizers": {func(b *certificatesv1beta1.ClusterTrustBundle) { b.Finalizers = nil }, true},
		"owners": {func(b *certificatesv1beta1.ClusterTrustBundle) {
			b.OwnerReferences = []metav1.OwnerReference{{Name: "o"}}
		}, true},
		"owners of fields": {func(b *certificatesv1beta1.ClusterTrustBundle) {
			b.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "m"}}
		}, true},
		"a label":           {func(b *certificatesv1beta1.ClusterTrustBundle) { b.Labels = map[string]string{"a": "b"} }, false},
		"what it trusts":    {func(b *certificatesv1beta1.ClusterTrustBundle) { b.Spec.TrustBundle = "two" }, false},
		"both with garbage": {func(b *certificatesv1beta1.ClusterTrustBundle) { b.Finalizers, b.Spec.TrustBundle = nil, "two" }, false},
	} {
		b := old.DeepCopy()
		test.change(b)
		err := certificates.Attest(grants{}).Validate(context.Background(), &admission.Attributes{Operation: admission.Update, Resource: bundles, Name: "b", Object: b, Old: old})
		if (err == nil) != test.passes {
			t.Errorf("%s: %v", name, err)
		}
	}
}
