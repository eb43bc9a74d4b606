package nodes_test

import (
	"errors"
	"testing"

	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/nodes"
	"github.com/rowlock/rowlock/server/release"
)

// TestPodCertificates: an agent requests certificates for pods of its node alone. What may have changed a moment ago is
// refused with 500, for the agent to try again.
func TestPodCertificates(t *testing.T) {
	account := func(p *corev1.Pod) { p.Spec.ServiceAccountName = "app" }
	shown := pod("shown", "n1", account)
	shown.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	p := nodes.Restriction{Certificates: true, Release: release.V136, Objects: stored{
		"nodes/n1": node("n1"), "serviceaccounts/app": &corev1.ServiceAccount{ObjectMeta: meta("app")},
		"pods/here": pod("here", "n1", account), "pods/there": pod("there", "n2", account), "pods/shown": shown,
		"pods/alone": pod("alone", "n1", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "gone" }),
	}}
	type spec = certificatesv1beta1.PodCertificateRequestSpec
	const of = `podcertificaterequests.certificates.k8s.io "r" is forbidden: `
	for name, c := range map[string]struct {
		change func(*spec)
		want   string
		stale  bool
	}{
		"its pod":      {func(*spec) {}, "", false},
		"another node": {func(s *spec) { s.NodeName = "n2" }, of + `PodCertificateRequest.Spec.NodeName="n2", which is not the requesting node "n1"`, false},
		"former node":  {func(s *spec) { s.NodeUID = "old" }, `PodCertificateRequest for pod "ns/here" names node UID "old", inconsistent with the running node ("uid-n1")`, true},
		"no pod":       {func(s *spec) { s.PodName = "gone" }, `while retrieving pod "ns/gone" named in the PodCertificateRequest: pod "gone" not found`, true},
		"former pod":   {func(s *spec) { s.PodUID = "old" }, `PodCertificateRequest for pod "ns/here" contains pod UID ("old") which differs from running pod "uid-here"`, true},
		"another's pod": {func(s *spec) { s.PodName, s.PodUID = "there", "uid-there" },
			of + `pod "ns/there" is not running on node "n1" named in the PodCertificateRequest`, false},
		"mirror pod":      {func(s *spec) { s.PodName, s.PodUID = "shown", "uid-shown" }, of + `pod "ns/shown" is a mirror pod`, false},
		"another account": {func(s *spec) { s.ServiceAccountName = "x" }, of + `PodCertificateRequest for pod "ns/here" contains serviceAccountName ("x") that differs from running pod ("app")`, false},
		"no account": {func(s *spec) { s.PodName, s.PodUID, s.ServiceAccountName = "alone", "uid-alone", "gone" },
			`while retrieving service account "ns/gone" named in the PodCertificateRequest: serviceaccount "gone" not found`, true},
		"former account": {func(s *spec) { s.ServiceAccountUID = "old" },
			`PodCertificateRequest for pod "ns/here" names service account UID "old", which differs from the running service account ("uid-app")`, true},
	} {
		r := &certificatesv1beta1.PodCertificateRequest{ObjectMeta: meta("r"), Spec: spec{
			NodeName: "n1", NodeUID: "uid-n1", PodName: "here", PodUID: "uid-here", ServiceAccountName: "app", ServiceAccountUID: "uid-app",
		}}
		c.change(&r.Spec)
		err := p.Admit(t.Context(), request("CREATE", "", r, nil).attributes(agent))
		if (err == nil) != (c.want == "") || err != nil && (err.Error() != c.want || apierrors.IsForbidden(err) == c.stale) {
			t.Errorf("%s: got %v, want %q", name, err, c.want)
		}
		var st apierrors.APIStatus
		if c.stale && (!errors.As(err, &st) || st.Status().Code != 500) {
			t.Errorf("%s: %v is no status 500", name, err)
		}
	}
	r := &certificatesv1beta1.PodCertificateRequest{ObjectMeta: meta("r")}
	for want, w := range map[string]write{
		of + "unexpected operation UPDATE":   request("UPDATE", "", r, r),
		of + "unexpected operation DELETE":   request("DELETE", "", nil, r),
		of + "unexpected subresource status": request("CREATE", "status", r, nil),
	} {
		if err := p.Admit(t.Context(), w.attributes(agent)); err == nil || err.Error() != want {
			t.Errorf("got %v, want %q", err, want)
		}
	}
	p.Certificates = false
	if err := p.Admit(t.Context(), request("CREATE", "", r, nil).attributes(agent)); err == nil || err.Error() != of+"PodCertificateRequest feature gate is disabled" {
		t.Errorf("without the gate: %v", err)
	}
}

func request(op admission.Operation, sub string, object, old runtime.Object) write {
	return write{op: op, resource: "podcertificaterequests.certificates.k8s.io", sub: sub, namespace: "ns", name: "r", object: object, old: old}
}

// TestLaterPods: a mirror pod uses no certificate of the API, and an agent leaves the claim of extended resources alone.
func TestLaterPods(t *testing.T) {
	p := nodes.Restriction{Release: release.V136, Objects: stored{"nodes/n1": node("n1")}}
	claimed := func(name string) *corev1.Pod {
		return pod("here", "n1", func(p *corev1.Pod) {
			p.Status.ExtendedResourceClaimStatus = &corev1.PodExtendedResourceClaimStatus{ResourceClaimName: name}
		})
	}
	for _, w := range []write{
		{"CREATE", "pods", "", "ns", "static", mirror(volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{PodCertificate: &corev1.PodCertificateProjection{}}}}})), nil,
			`pods "static" is forbidden: node "n1" can not create pods that reference podcertificates`},
		{"UPDATE", "pods", "status", "ns", "here", claimed("b"), claimed("a"), `pods "here" is forbidden: node "n1" cannot update extended resource claim status`},
		{"UPDATE", "pods", "status", "ns", "here", claimed("a"), pod("here", "n1"), `pods "here" is forbidden: node "n1" cannot update extended resource claim status`},
	} {
		if err := p.Admit(t.Context(), w.attributes(agent)); err == nil || err.Error() != w.want {
			t.Errorf("got %v, want %q", err, w.want)
		}
	}
	same := write{op: "UPDATE", resource: "pods", sub: "status", namespace: "ns", name: "here", object: claimed("a"), old: claimed("a")}
	if err := p.Admit(t.Context(), same.attributes(agent)); err != nil {
		t.Error(err)
	}
}
