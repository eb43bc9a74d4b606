package nodes_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"maps"
	"strings"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	storagev1 "k8s.io/api/storage/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/nodes"
	"github.com/rowlock/rowlock/server/kinds"
)

// stored are objects by storage and name.
type stored map[string]kinds.Object

func (s stored) Get(_ context.Context, storage, _, name string) (kinds.Object, error) {
	if obj, ok := s[storage+"/"+name]; ok {
		return obj, nil
	}
	return nil, nil
}

func (s stored) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	return nil, nil
}

var agent = &authx.Identity{Name: "system:node:n1", Groups: []string{"system:nodes"}}

func meta(name string) metav1.ObjectMeta {
	return metav1.ObjectMeta{Name: name, UID: "uid-" + types.UID(name)}
}

func pod(name, node string, change ...func(*corev1.Pod)) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: meta(name), Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{Name: "c"}}}}
	for _, f := range change {
		f(p)
	}
	return p
}

// mirror returns a static pod of n1 as its agent shows it.
func mirror(change ...func(*corev1.Pod)) *corev1.Pod {
	yes := true
	p := pod("static", "n1")
	p.Annotations = map[string]string{corev1.MirrorPodAnnotationKey: "x"}
	p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: "n1", UID: "uid-n1", Controller: &yes}}
	for _, f := range change {
		f(p)
	}
	return p
}

func volume(v corev1.VolumeSource) func(*corev1.Pod) {
	return func(p *corev1.Pod) { p.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: v}} }
}

func node(name string, change ...func(*corev1.Node)) *corev1.Node {
	n := &corev1.Node{ObjectMeta: meta(name)}
	for _, f := range change {
		f(n)
	}
	return n
}

func labels(pairs ...string) func(*corev1.Node) {
	return func(n *corev1.Node) {
		n.Labels = map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			n.Labels[pairs[i]] = pairs[i+1]
		}
	}
}

func claim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	c := &corev1.PersistentVolumeClaim{ObjectMeta: meta("c")}
	for _, f := range change {
		f(c)
	}
	return c
}

func token(kind, name string, uid types.UID) *authenticationv1.TokenRequest {
	r := &authenticationv1.TokenRequest{}
	if kind != "" {
		r.Spec.BoundObjectRef = &authenticationv1.BoundObjectReference{Kind: kind, APIVersion: "v1", Name: name, UID: uid}
	}
	return r
}

func csr(t *testing.T, signer, commonName string) *certificatesv1.CertificateSigningRequest {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.CreateCertificateRequest(rand.Reader, &x509.CertificateRequest{Subject: pkix.Name{CommonName: commonName}}, key)
	if err != nil {
		t.Fatal(err)
	}
	r := &certificatesv1.CertificateSigningRequest{ObjectMeta: meta("r")}
	r.Spec.SignerName, r.Spec.Request = signer, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE REQUEST", Bytes: der})
	return r
}

type write struct {
	op              admission.Operation
	resource, sub   string // "pods", "leases.coordination.k8s.io"
	namespace, name string
	object, old     runtime.Object
	want            string // part of the refusal; "" where there is none
}

func (w write) attributes(user *authx.Identity) *admission.Attributes {
	plural, group, _ := strings.Cut(w.resource, ".")
	return &admission.Attributes{
		Operation: w.op, Resource: &kinds.Resource{Group: group, Version: "v1", Plural: plural}, Subresource: w.sub,
		Namespace: w.namespace, Name: w.name, Object: w.object, Old: w.old, User: user,
	}
}

func TestRestriction(t *testing.T) {
	const leases, csiNodes, csrs = "leases.coordination.k8s.io", "csinodes.storage.k8s.io", "certificatesigningrequests.certificates.k8s.io"
	const serving, client = certificatesv1.KubeletServingSignerName, certificatesv1.KubeAPIServerClientKubeletSignerName
	p := nodes.Restriction{ExpansionRecovery: true, Objects: stored{"pods/here": pod("here", "n1"), "pods/there": pod("there", "n2"), "nodes/n1": node("n1")}}
	lease := func(name string) *coordinationv1.Lease { return &coordinationv1.Lease{ObjectMeta: meta(name)} }
	yes, no := true, false
	owned := func(f func(*metav1.OwnerReference)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { f(&p.OwnerReferences[0]) }
	}
	const slices = "resourceslices.resource.k8s.io"
	devices := func(name string) *resourcev1beta1.ResourceSlice {
		return &resourcev1beta1.ResourceSlice{ObjectMeta: meta("s"), Spec: resourcev1beta1.ResourceSliceSpec{NodeName: name}}
	}
	for name, w := range map[string]write{
		"devices":                     {op: "CREATE", resource: slices, name: "s", object: devices("n1")},
		"devices of another":          {"CREATE", slices, "", "", "s", devices("n2"), nil, "can only create ResourceSlice with the same NodeName as the requesting node"},
		"devices of no node":          {"CREATE", slices, "", "", "s", devices(""), nil, "can only create ResourceSlice with the same NodeName as the requesting node"},
		"change of devices":           {op: "UPDATE", resource: slices, name: "s", object: devices("n1"), old: devices("n1")},
		"delete of devices":           {op: "DELETE", resource: slices, name: "s", old: devices("n1")},
		"delete of another's devices": {"DELETE", slices, "", "", "s", nil, devices("n2"), "can only delete ResourceSlice with the same NodeName as the requesting node"},
		"mirror pod":                  {op: "CREATE", resource: "pods", namespace: "ns", name: "static", object: mirror()},
		"pod that is no mirror":       {"CREATE", "pods", "", "ns", "a", pod("a", "n1"), nil, `pod does not have "kubernetes.io/config.mirror" annotation, node "n1" can only create mirror pods`},
		"mirror elsewhere":            {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) { p.Spec.NodeName = "n2" }), nil, `node "n1" can only create pods with spec.nodeName set to itself`},
		"mirror without owner":        {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) { p.OwnerReferences = nil }), nil, "with an owner reference set to itself"},
		"mirror with two owners":      {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) { p.OwnerReferences = append(p.OwnerReferences, p.OwnerReferences[0]) }), nil, "with a single owner reference set to itself"},
		"mirror of another":           {"CREATE", "pods", "", "ns", "a", mirror(owned(func(o *metav1.OwnerReference) { o.Name = "n2" })), nil, "with an owner reference set to itself"},
		"mirror of a deployment":      {"CREATE", "pods", "", "ns", "a", mirror(owned(func(o *metav1.OwnerReference) { o.Kind = "Deployment" })), nil, "with an owner reference set to itself"},
		"mirror not controlled":       {"CREATE", "pods", "", "ns", "a", mirror(owned(func(o *metav1.OwnerReference) { o.Controller = &no })), nil, "with a controller owner reference set to itself"},
		"mirror that blocks":          {"CREATE", "pods", "", "ns", "a", mirror(owned(func(o *metav1.OwnerReference) { o.BlockOwnerDeletion = &yes })), nil, "must not set blockOwnerDeletion on an owner reference"},
		"mirror of a former node":     {"CREATE", "pods", "", "ns", "a", mirror(owned(func(o *metav1.OwnerReference) { o.UID = "old" })), nil, "node n1 UID mismatch: expected old got uid-n1"},
		"mirror with account":         {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) { p.Spec.ServiceAccountName = "x" }), nil, "can not create pods that reference a service account"},
		"mirror with secret":          {"CREATE", "pods", "", "ns", "a", mirror(volume(corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "s"}})), nil, "can not create pods that reference secrets"},
		"mirror with pull secret":     {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) { p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: "s"}} }), nil, "can not create pods that reference secrets"},
		"mirror with config map": {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: "m"}}}}}}
		}), nil, "can not create pods that reference configmaps"},
		"mirror with bundle":    {"CREATE", "pods", "", "ns", "a", mirror(volume(corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{ClusterTrustBundle: &corev1.ClusterTrustBundleProjection{}}}}})), nil, "can not create pods that reference clustertrustbundles"},
		"mirror with claim":     {"CREATE", "pods", "", "ns", "a", mirror(volume(corev1.VolumeSource{PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: "c"}})), nil, "can not create pods that reference persistentvolumeclaims"},
		"mirror with own claim": {"CREATE", "pods", "", "ns", "a", mirror(volume(corev1.VolumeSource{Ephemeral: &corev1.EphemeralVolumeSource{}})), nil, "can not create pods that reference persistentvolumeclaims"},
		"mirror with device": {"CREATE", "pods", "", "ns", "a", mirror(func(p *corev1.Pod) {
			p.Spec.ResourceClaims = []corev1.PodResourceClaim{{Name: "gpu"}}
		}), nil, "can not create pods that reference resourceclaims"},
		"update of a pod":         {"UPDATE", "pods", "", "ns", "here", pod("here", "n1"), pod("here", "n1"), `unexpected operation "UPDATE", node "n1" can only create and delete mirror pods`},
		"delete of its pod":       {op: "DELETE", resource: "pods", namespace: "ns", name: "here", old: pod("here", "n1")},
		"delete of another's pod": {"DELETE", "pods", "", "ns", "there", nil, pod("there", "n2"), `node "n1" can only delete pods with spec.nodeName set to itself`},
		"binding":                 {"CREATE", "pods", "binding", "ns", "here", &corev1.Binding{}, nil, `unexpected pod subresource "binding", only 'status' and 'eviction' are allowed`},
		"ephemeral containers":    {"UPDATE", "pods", "ephemeralcontainers", "ns", "here", pod("here", "n1"), pod("here", "n1"), "unexpected pod subresource"},
		"status of its pod":       {op: "UPDATE", resource: "pods", sub: "status", namespace: "ns", name: "here", object: pod("here", "n1"), old: pod("here", "n1")},
		"status of another's pod": {"UPDATE", "pods", "status", "ns", "there", pod("there", "n1"), pod("there", "n2"), "can only update pod status for pods with spec.nodeName set to itself"},
		"labels by status":        {"UPDATE", "pods", "status", "ns", "here", pod("here", "n1", func(p *corev1.Pod) { p.Labels = map[string]string{"a": "b"} }), pod("here", "n1"), "cannot update labels through pod status"},
		"resource claims":         {"UPDATE", "pods", "status", "ns", "here", pod("here", "n1", func(p *corev1.Pod) { p.Status.ResourceClaimStatuses = []corev1.PodResourceClaimStatus{{Name: "x"}} }), pod("here", "n1"), "cannot update resource claim statues"},
		"eviction":                {op: "CREATE", resource: "pods", sub: "eviction", namespace: "ns", name: "here", object: &policyv1.Eviction{}},
		"eviction by its name":    {op: "CREATE", resource: "pods", sub: "eviction", namespace: "ns", object: &policyv1.Eviction{ObjectMeta: meta("here")}},
		"eviction of another's":   {"CREATE", "pods", "eviction", "ns", "there", &policyv1.Eviction{}, nil, "node n1 can only evict pods with spec.nodeName set to itself"},
		"eviction of none":        {"CREATE", "pods", "eviction", "ns", "gone", &policyv1.Eviction{}, nil, `pods "gone" not found`},
		"eviction of nobody":      {"CREATE", "pods", "eviction", "ns", "", &policyv1.Eviction{}, nil, "could not determine pod from request data"},
		"its node":                {op: "CREATE", resource: "nodes", name: "n1", object: node("n1", labels("team", "a", "kubernetes.io/hostname", "h", "beta.kubernetes.io/os", "linux", "node.kubernetes.io/instance-type", "i", "x.kubelet.kubernetes.io/y", "z", "topology.kubernetes.io/zone", "z"))},
		"another node":            {"CREATE", "nodes", "", "", "n2", node("n2"), nil, `node "n1" is not allowed to modify node "n2"`},
		"node with label":         {"CREATE", "nodes", "", "", "n1", node("n1", labels("z.k8s.io/x", "", "a.node-restriction.kubernetes.io/b", "", "team", "a")), nil, `node "n1" is not allowed to set the following labels: a.node-restriction.kubernetes.io/b, z.k8s.io/x`},
		"node that looks right":   {"CREATE", "nodes", "", "", "n1", node("n1", labels("node-role.kubernetes.io/master", "")), nil, "node-role.kubernetes.io/master"},
		"node of a like domain":   {op: "CREATE", resource: "nodes", name: "n1", object: node("n1", labels("mykubernetes.io/x", "", "notk8s.io/y", ""))},
		"node with configuration": {"CREATE", "nodes", "", "", "n1", node("n1", func(n *corev1.Node) { n.Spec.ConfigSource = &corev1.NodeConfigSource{} }), nil, "with a non-nil configSource"},
		"new configuration":       {"UPDATE", "nodes", "", "", "n1", node("n1", func(n *corev1.Node) { n.Spec.ConfigSource = &corev1.NodeConfigSource{} }), node("n1"), "to a new non-nil configSource"},
		"configuration dropped":   {op: "UPDATE", resource: "nodes", sub: "status", name: "n1", object: node("n1"), old: node("n1", func(n *corev1.Node) { n.Spec.ConfigSource = &corev1.NodeConfigSource{} })},
		"taint removed":           {"UPDATE", "nodes", "", "", "n1", node("n1"), node("n1", func(n *corev1.Node) { n.Spec.Taints = []corev1.Taint{{Key: "k"}} }), `node "n1" is not allowed to modify taints`},
		"owner added":             {"UPDATE", "nodes", "", "", "n1", node("n1", func(n *corev1.Node) { n.OwnerReferences = []metav1.OwnerReference{{Name: "x"}} }), node("n1"), `node "n1" is not allowed to modify ownerReferences`},
		"label removed":           {"UPDATE", "nodes", "", "", "n1", node("n1"), node("n1", labels("node-restriction.kubernetes.io/a", "b", "c", "d")), "is not allowed to modify labels: node-restriction.kubernetes.io/a"},
		"label kept":              {op: "UPDATE", resource: "nodes", sub: "status", name: "n1", object: node("n1", labels("x.k8s.io/a", "b", "c", "e")), old: node("n1", labels("x.k8s.io/a", "b", "c", "d"))},
		"delete of another node":  {"DELETE", "nodes", "", "", "n2", nil, node("n2"), `is not allowed to modify node "n2"`},
		"delete of its node":      {op: "DELETE", resource: "nodes", name: "n1", old: node("n1")},
		"claim":                   {"UPDATE", "persistentvolumeclaims", "", "ns", "c", claim(), claim(), "may only update PVC status"},
		"claim grown": {op: "UPDATE", resource: "persistentvolumeclaims", sub: "status", namespace: "ns", name: "c", old: claim(), object: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.Capacity = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
		})},
		"claim growing": {op: "UPDATE", resource: "persistentvolumeclaims", sub: "status", namespace: "ns", name: "c", old: claim(), object: claim(func(c *corev1.PersistentVolumeClaim) {
			c.Status.AllocatedResources = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
		})},
		"claim's phase":                 {"UPDATE", "persistentvolumeclaims", "status", "ns", "c", claim(func(c *corev1.PersistentVolumeClaim) { c.Status.Phase = "Lost" }), claim(), `node "n1" is not allowed to update fields other than status.quantity and status.conditions: status differs`},
		"claim's labels":                {"UPDATE", "persistentvolumeclaims", "status", "ns", "c", claim(func(c *corev1.PersistentVolumeClaim) { c.Labels = map[string]string{"a": "b"} }), claim(), "metadata differs"},
		"token":                         {op: "CREATE", resource: "serviceaccounts", sub: "token", namespace: "ns", name: "app", object: token("Pod", "here", "uid-here")},
		"token for itself":              {"CREATE", "serviceaccounts", "token", "ns", "app", token("", "", ""), nil, "node requested token not bound to a pod"},
		"token of a secret":             {"CREATE", "serviceaccounts", "token", "ns", "app", token("Secret", "here", "uid-here"), nil, "node requested token not bound to a pod"},
		"token without uid":             {"CREATE", "serviceaccounts", "token", "ns", "app", token("Pod", "here", ""), nil, "node requested token with a pod binding without a uid"},
		"token of a former pod":         {"CREATE", "serviceaccounts", "token", "ns", "app", token("Pod", "here", "old"), nil, "the UID in the bound object reference (old) does not match the UID in record"},
		"token of another's pod":        {"CREATE", "serviceaccounts", "token", "ns", "app", token("Pod", "there", "uid-there"), nil, "node requested token bound to a pod scheduled on a different node"},
		"token of no pod":               {"CREATE", "serviceaccounts", "token", "ns", "app", token("Pod", "gone", "uid-gone"), nil, `pods "gone" not found`},
		"its lease":                     {op: "CREATE", resource: leases, namespace: "kube-node-lease", name: "n1", object: lease("n1")},
		"another's lease":               {"CREATE", leases, "", "kube-node-lease", "n2", lease("n2"), nil, "can only access node lease with the same name as the requesting node"},
		"lease to be named":             {"CREATE", leases, "", "kube-node-lease", "", &coordinationv1.Lease{ObjectMeta: metav1.ObjectMeta{GenerateName: "n"}}, nil, "can only access node lease with the same name as the requesting node"},
		"update of another's":           {"UPDATE", leases, "", "kube-node-lease", "n2", lease("n2"), lease("n2"), "can only access node lease"},
		"lease elsewhere":               {"DELETE", leases, "", "ns", "n1", nil, lease("n1"), `can only access leases in the "kube-node-lease" system namespace`},
		"its CSINode":                   {op: "CREATE", resource: csiNodes, name: "n1", object: &storagev1.CSINode{ObjectMeta: meta("n1")}},
		"another's CSINode":             {"DELETE", csiNodes, "", "", "n2", nil, &storagev1.CSINode{ObjectMeta: meta("n2")}, "can only access CSINode with the same name as the requesting node"},
		"its serving certificate":       {op: "CREATE", resource: csrs, name: "r", object: csr(t, serving, "system:node:n1")},
		"another's certificate":         {"CREATE", csrs, "", "", "r", csr(t, client, "system:node:n2"), nil, "can only create a node CSR with CN=system:node:n1"},
		"certificate of another signer": {op: "CREATE", resource: csrs, name: "r", object: csr(t, "example.org/x", "any")},
		"certificate of nothing":        {"CREATE", csrs, "", "", "r", &certificatesv1.CertificateSigningRequest{Spec: certificatesv1.CertificateSigningRequestSpec{SignerName: client}}, nil, "unable to parse csr"},
		"something else":                {op: "CREATE", resource: "events", namespace: "ns", name: "e", object: &corev1.Event{}},
	} {
		t.Run(name, func(t *testing.T) {
			err := p.Admit(t.Context(), w.attributes(agent))
			if w.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), w.want) || !apierrors.IsForbidden(err) && !apierrors.IsNotFound(err) {
				t.Fatalf("got %v, want %q", err, w.want)
			}
			if err := p.Admit(t.Context(), w.attributes(&authx.Identity{Name: "jan"})); err != nil {
				t.Errorf("another user was refused: %v", err)
			}
		})
	}
}

func TestRestrictionOfStrangers(t *testing.T) {
	p := nodes.Restriction{Objects: stored{}}
	w := write{op: "CREATE", resource: "nodes", name: "n1", object: node("n1")}
	nobody := &authx.Identity{Name: "system:node:", Groups: []string{"system:nodes"}}
	if err := p.Admit(t.Context(), w.attributes(nobody)); err == nil || !strings.Contains(err.Error(), `could not determine node from user "system:node:"`) {
		t.Errorf("an agent without a name: %v", err)
	}
	if err := p.Admit(t.Context(), w.attributes(&authx.Identity{Name: "system:node:n2"})); err != nil {
		t.Errorf("a name without the group: %v", err)
	}
	open := nodes.Restriction{AnySubject: true}
	if err := open.Admit(t.Context(), write{op: "CREATE", resource: "certificatesigningrequests.certificates.k8s.io", object: csr(t, certificatesv1.KubeletServingSignerName, "x")}.attributes(agent)); err != nil {
		t.Error(err)
	}
	strict := nodes.Restriction{}
	grown := claim(func(c *corev1.PersistentVolumeClaim) {
		c.Status.AllocatedResources = corev1.ResourceList{"storage": resource.MustParse("1Gi")}
	})
	if err := strict.Admit(t.Context(), write{op: "UPDATE", resource: "persistentvolumeclaims", sub: "status", object: grown, old: claim()}.attributes(agent)); err == nil {
		t.Error("allocated resources were written without expansion recovery")
	}
	if strict.Handles(admission.Connect) || !strict.Handles(admission.Delete) {
		t.Error("looks at the wrong operations")
	}
}

// TestAudienceOfManyVolumes: an error lists a hundred volumes and counts the others, since joining errors takes the square of their number.
func TestAudienceOfManyVolumes(t *testing.T) {
	many := pod("many", "n1", func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "app"
		for i := range 2_000 {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", i)},
			}})
		}
	})
	p := nodes.Restriction{Objects: stored{"pods/many": many}, Audiences: true}
	request := token("Pod", "many", many.UID)
	request.Spec.Audiences = []string{"vault"}
	err := p.Admit(t.Context(), write{op: "CREATE", resource: "serviceaccounts", sub: "token", namespace: "ns", name: "app", object: request}.attributes(agent))
	if err == nil || !strings.Contains(err.Error(), `"claim-0" not found`) || !strings.Contains(err.Error(), "1900 more errors") || len(err.Error()) > 16<<10 {
		t.Errorf("%.500v", err)
	}
}

// TestAudienceOfProjectedVolume: no claim is read if a projected volume has a token for the audience.
func TestAudienceOfProjectedVolume(t *testing.T) {
	many := pod("many", "n1", func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "app"
		for i := range 2_000 {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", i)},
			}})
		}
		p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: "vault"}}},
		}}})
	})
	reads := 0
	p := nodes.Restriction{Objects: counted{stored{"pods/many": many}, &reads}, Audiences: true}
	request := token("Pod", "many", many.UID)
	request.Spec.Audiences = []string{"vault"}
	err := p.Admit(t.Context(), write{op: "CREATE", resource: "serviceaccounts", sub: "token", namespace: "ns", name: "app", object: request}.attributes(agent))
	if err != nil || reads != 1 {
		t.Errorf("%d objects are read, %v", reads, err)
	}
}

// counted are objects whose reads are counted.
type counted struct {
	stored
	reads *int
}

func (c counted) Get(ctx context.Context, storage, namespace, name string) (kinds.Object, error) {
	*c.reads++
	return c.stored.Get(ctx, storage, namespace, name)
}

// TestAudienceOfVolumesOfOneClaim: a claim is read once, however many volumes use it.
func TestAudienceOfVolumesOfOneClaim(t *testing.T) {
	many := pod("many", "n1", func(p *corev1.Pod) {
		p.Spec.ServiceAccountName = "app"
		for i := range 2_000 {
			p.Spec.Volumes = append(p.Spec.Volumes, corev1.Volume{Name: fmt.Sprint("v", i), VolumeSource: corev1.VolumeSource{
				PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: fmt.Sprint("claim-", i/1_000)},
			}})
		}
	})
	of := func(i int, driver, audience string) stored {
		claim, volume, name := fmt.Sprint("claim-", i), fmt.Sprint("volume-", i), "csidrivers.storage.k8s.io/"+driver
		return stored{
			"persistentvolumeclaims/" + claim: &corev1.PersistentVolumeClaim{ObjectMeta: meta(claim), Spec: corev1.PersistentVolumeClaimSpec{VolumeName: volume}},
			"persistentvolumes/" + volume: &corev1.PersistentVolume{ObjectMeta: meta(volume), Spec: corev1.PersistentVolumeSpec{
				PersistentVolumeSource: corev1.PersistentVolumeSource{CSI: &corev1.CSIPersistentVolumeSource{Driver: driver}},
			}},
			name: &storagev1.CSIDriver{ObjectMeta: meta(driver), Spec: storagev1.CSIDriverSpec{TokenRequests: []storagev1.TokenRequest{{Audience: audience}}}},
		}
	}
	reads := 0
	objects := counted{stored: stored{"pods/many": many}, reads: &reads}
	maps.Copy(objects.stored, of(0, "first", "other"))
	maps.Copy(objects.stored, of(1, "second", "vault"))
	request := token("Pod", "many", many.UID)
	request.Spec.Audiences = []string{"vault"}
	p := nodes.Restriction{Objects: objects, Audiences: true}
	err := p.Admit(t.Context(), write{op: "CREATE", resource: "serviceaccounts", sub: "token", namespace: "ns", name: "app", object: request}.attributes(agent))
	if err != nil || reads != 7 { // the pod, and three objects for each of two claims
		t.Errorf("%v after %d reads", err, reads)
	}
}
