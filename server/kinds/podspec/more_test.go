package podspec_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

func TestPullPolicy(t *testing.T) {
	const digest = "sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
	for image, want := range map[string]corev1.PullPolicy{
		"busybox":                           corev1.PullAlways,
		"busybox:latest":                    corev1.PullAlways,
		"busybox:1":                         corev1.PullIfNotPresent,
		"host:5000/a/b":                     corev1.PullAlways,
		"host:5000/a/b:1":                   corev1.PullIfNotPresent,
		"localhost/a":                       corev1.PullAlways,
		"[fd00::1]:5000/a":                  corev1.PullAlways,
		"a@" + digest:                       corev1.PullIfNotPresent,
		"a:latest@" + digest:                corev1.PullAlways,
		"a@sha256:12":                       corev1.PullIfNotPresent,
		"Upper":                             corev1.PullIfNotPresent, // no reference at all
		"Host/a":                            corev1.PullAlways,       // a host may have capitals
		"a..b":                              corev1.PullIfNotPresent,
		"a__b/c-d--e":                       corev1.PullAlways,
		"a___b":                             corev1.PullIfNotPresent,
		"a:":                                corev1.PullIfNotPresent,
		"":                                  corev1.PullIfNotPresent,
		digest[7:]:                          corev1.PullIfNotPresent, // looks like an identifier
		" padded":                           corev1.PullIfNotPresent,
		"registry.example/app:tag.with-all": corev1.PullIfNotPresent,
	} {
		s := corev1.PodSpec{Containers: []corev1.Container{{Image: image}}}
		defaults.DefaultPodSpec(&s)
		if got := s.Containers[0].ImagePullPolicy; got != want {
			t.Errorf("%q: got %s, want %s", image, got, want)
		}
	}
}

func TestDefaultVolumes(t *testing.T) {
	pod := decodePod(t, podWith(`"volumes": [{"name": "none"}, {"name": "s", "secret": {}}, {"name": "h", "hostPath": {"path": "/x"}}, {"name": "i", "iscsi": {}},
		{"name": "r", "rbd": {}}, {"name": "z", "azureDisk": {}}, {"name": "p", "projected": {"sources": [{"serviceAccountToken": {}}, {"downwardAPI": {"items": [{"fieldRef": {}}]}}]}},
		{"name": "e", "ephemeral": {"volumeClaimTemplate": {"spec": {"resources": {"requests": {"storage": "1u"}}}}}}, {"name": "x", "scaleIO": {}}]`))
	defaults.DefaultPodSpec(&pod.Spec)
	got, err := json.Marshal(pod.Spec.Volumes)
	if err != nil {
		t.Fatal(err)
	}
	want := `[{"name":"none","emptyDir":{}},{"name":"s","secret":{"defaultMode":420}},{"name":"h","hostPath":{"path":"/x","type":""}},` +
		`{"name":"i","iscsi":{"targetPortal":"","iqn":"","lun":0,"iscsiInterface":"default"}},` +
		`{"name":"r","rbd":{"monitors":null,"image":"","pool":"rbd","user":"admin","keyring":"/etc/ceph/keyring"}},` +
		`{"name":"z","azureDisk":{"diskName":"","diskURI":"","cachingMode":"ReadWrite","fsType":"ext4","readOnly":false,"kind":"Shared"}},` +
		`{"name":"p","projected":{"sources":[{"serviceAccountToken":{"expirationSeconds":3600,"path":""}},{"downwardAPI":{"items":[{"path":"","fieldRef":{"apiVersion":"v1","fieldPath":""}}]}}],"defaultMode":420}},` +
		`{"name":"e","ephemeral":{"volumeClaimTemplate":{"metadata":{},"spec":{"resources":{"requests":{"storage":"1m"}},"volumeMode":"Filesystem"}}}},` +
		`{"name":"x","scaleIO":{"gateway":"","system":"","secretRef":null,"storageMode":"ThinProvisioned","fsType":"xfs"}}]`
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Error(diff)
	}
}

func TestDropDisabled(t *testing.T) {
	const gated = `"hostUsers": false, "resources": {"limits": {"cpu": "1"}}, "resourceClaims": [{"name": "r"}],
		"securityContext": {"supplementalGroupsPolicy": "Strict", "seLinuxChangePolicy": "Recursive"},
		"volumes": [{"name": "v", "emptyDir": {}}, {"name": "i", "image": {"reference": "x"}}, {"name": "p", "projected": {"sources": [{"clusterTrustBundle": {"path": "x"}}]}}],
		"initContainers": [{"name": "c", "image": "i", "resizePolicy": [{"resourceName": "cpu", "restartPolicy": "NotRequired"}], "resources": {"claims": [{"name": "r"}]},
		 "securityContext": {"procMount": "Unmasked"}, "volumeMounts": [{"name": "i", "mountPath": "/i"}, {"name": "v", "mountPath": "/v"}]}]`
	fresh := decodePod(t, podWith(gated)).Spec
	defaults.DropDisabled(&fresh, nil)
	c := fresh.InitContainers[0]
	if fresh.HostUsers != nil || fresh.Resources != nil || fresh.ResourceClaims != nil || fresh.SecurityContext.SupplementalGroupsPolicy != nil ||
		fresh.SecurityContext.SELinuxChangePolicy != nil || len(fresh.Volumes) != 2 || fresh.Volumes[1].Projected.Sources[0].ClusterTrustBundle != nil ||
		c.ResizePolicy != nil || c.Resources.Claims != nil || *c.SecurityContext.ProcMount != corev1.DefaultProcMount || len(c.VolumeMounts) != 1 {
		t.Errorf("kept: %+v", fresh)
	}
	used := decodePod(t, podWith(gated)).Spec
	kept := used.DeepCopy()
	defaults.DropDisabled(kept, &used)
	if !equality.Semantic.DeepEqual(kept, &used) {
		t.Errorf("dropped what the old object used: %s", cmp.Diff(&used, kept))
	}
}

func TestWarnings(t *testing.T) {
	for _, tt := range []struct {
		name, pod string
		want      []string
	}{
		{"rich", richPod, nil},
		{"labels", podWith(`"nodeSelector": {"beta.kubernetes.io/arch": "x"}, "topologySpreadConstraints": [{"topologyKey": "failure-domain.beta.kubernetes.io/zone"}],
			"affinity": {"nodeAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"preference": {"matchExpressions": [{"key": "beta.kubernetes.io/os"}]}}]},
			"podAntiAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": [{"podAffinityTerm": {}}]}}`), []string{
			`spec.nodeSelector[beta.kubernetes.io/arch]: deprecated since v1.14; use "kubernetes.io/arch" instead`,
			`spec.affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key: beta.kubernetes.io/os is deprecated since v1.14; use "kubernetes.io/os" instead`,
			`spec.topologySpreadConstraints[0].topologyKey: failure-domain.beta.kubernetes.io/zone is deprecated since v1.17; use "topology.kubernetes.io/zone" instead`,
			"spec.topologySpreadConstraints[0].labelSelector: a null labelSelector results in matching no pod",
			"spec.affinity.podAntiAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].podAffinityTerm.labelSelector: a null labelSelector results in matching no pod",
		}},
		{"volumes", podWith(`"volumes": [{"name": "g", "gitRepo": {}}, {"name": "c", "configMap": {"name": "m", "items": [{"path": "a"}, {"path": "a/b"}]}},
			{"name": "p", "projected": {"sources": [{}, {"serviceAccountToken": {"path": "x"}}, {"secret": {"name": "s", "items": [{"path": "x/"}]}}]}}]`), []string{
			"spec.volumes[0].gitRepo: deprecated in v1.11",
			`volume "c" (ConfigMap "m"): overlapping paths: "a/b" with "a"`,
			`volume "p" (Projected) has no sources provided`,
			`volume "p" (Projected): overlapping paths: "x" (Secret "s") with "x" (ServiceAccountToken)`,
		}},
		{"containers", `{"metadata": {"annotations": {"container.seccomp.security.alpha.kubernetes.io/c": "x"}}, "spec": {"imagePullSecrets": [{}], "containers": [{"name": "c", "env": [{"name": "A"}, {"name": "A", "value": "x$(A)"}, {"name": "A", "value": "$(A)"}],
			"resources": {"limits": {"ephemeral-storage": "1m"}}, "ports": [{"containerPort": 1, "hostIP": "1.1.1.1"}, {"containerPort": 1, "hostPort": 5}, {"containerPort": 1, "hostPort": 5, "hostIP": "1.1.1.1"}]}]}}`, []string{
			`spec.imagePullSecrets[0].name: invalid empty name ""`,
			`metadata.annotations[container.seccomp.security.alpha.kubernetes.io/c]: non-functional in v1.27+; use the "seccompProfile" field instead`,
			`spec.containers[0].resources.limits[ephemeral-storage]: fractional byte value "1m" is invalid, must be an integer`,
			`spec.containers[0].env[2]: hides previous definition of "A", which may be dropped when using apply`,
			"spec.containers[0].ports[0]: hostIP set without hostPort: {Name: HostPort:0 ContainerPort:1 Protocol: HostIP:1.1.1.1}",
			"spec.containers[0].ports[1]: overlapping port definition with spec.containers[0].ports[0]",
			"spec.containers[0].ports[2]: overlapping port definition with spec.containers[0].ports[0]",
			"spec.containers[0].ports[2]: dangerously ambiguous port definition with spec.containers[0].ports[1]",
		}},
	} {
		if diff := cmp.Diff(tt.want, defaults.PodWarnings(decodePod(t, tt.pod))); diff != "" {
			t.Errorf("%s: %s", tt.name, diff)
		}
	}
	for _, n := range []int{2, 32, 33, 100} {
		pod := decodePod(t, podWith(`"restartPolicy": "Never"`))
		for i := range n - 1 {
			pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: fmt.Sprint("A", i)})
		}
		pod.Spec.Containers[0].Env = append(pod.Spec.Containers[0].Env, corev1.EnvVar{Name: "A0"})
		want := []string{fmt.Sprintf(`spec.containers[0].env[%d]: hides previous definition of "A0", which may be dropped when using apply`, n-1)}
		if diff := cmp.Diff(want, defaults.PodWarnings(pod)); diff != "" {
			t.Errorf("of %d variables: %s", n, diff)
		}
	}
	tmpl := &corev1.PodTemplateSpec{}
	tmpl.Annotations = map[string]string{"container.apparmor.security.beta.kubernetes.io/c": "unconfined"}
	tmpl.Spec.Containers = []corev1.Container{{Name: "c"}}
	grace := int64(-1)
	tmpl.Spec.TerminationGracePeriodSeconds = &grace
	want := []string{
		`spec.template.metadata.annotations[container.apparmor.security.beta.kubernetes.io/c]: deprecated since v1.30; use the "appArmorProfile" field instead`,
		"spec.template.spec.terminationGracePeriodSeconds: must be >= 0; negative values are invalid and will be treated as 1",
	}
	if diff := cmp.Diff(want, defaults.Warnings(field.NewPath("spec", "template"), tmpl)); diff != "" {
		t.Error(diff)
	}
}

// A client may send anything: nothing of it makes the rules panic, and a pod that
// has been defaulted stays as it is.
func FuzzPod(f *testing.F) {
	f.Add([]byte(richPod))
	f.Add([]byte(podWith(`"volumes": [{"projected": {"sources": [{}]}}], "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [{}]}}`)))
	f.Add([]byte(containerWith(`"resources": {"limits": {"hugepages-": "1", "hugepages-1m": "3"}}, "securityContext": {"windowsOptions": {"runAsUserName": "\\"}}`)))
	f.Fuzz(func(t *testing.T, data []byte) {
		pod := &corev1.Pod{}
		if json.Unmarshal(data, pod) != nil {
			return
		}
		defaults.DefaultPodSpec(&pod.Spec)
		again := pod.DeepCopy()
		defaults.DefaultPodSpec(&again.Spec)
		if !equality.Semantic.DeepEqual(pod, again) {
			t.Fatal(cmp.Diff(pod, again))
		}
		defaults.MergeLabelKeys(&again.Spec, again.Labels)
		defaults.DropDisabled(&again.Spec, &pod.Spec)
		defaults.PodWarnings(again)
		podspec.ValidatePod(again, defaults.PodOptions(again, nil))
		podspec.ValidatePod(again, defaults.PodOptions(again, pod))
		for _, e := range podspec.ValidateTemplate(&corev1.PodTemplateSpec{ObjectMeta: pod.ObjectMeta, Spec: pod.Spec}, field.NewPath("template"), podspec.Options{}) {
			_ = e.Error()
		}
	})
}

// TestNoPrivileged: if the server forbids privileged containers, no container of any sort may be
// one; otherwise, or if they are not privileged, there is no error.
func TestNoPrivileged(t *testing.T) {
	for text, refusal := range map[string]string{
		`"initContainers": [{"name": "i", "image": "i", "securityContext": {"privileged": true}}, {"name": "j", "image": "i", "securityContext": {"privileged": false}}]`: "spec.initContainers[0].securityContext.privileged: Forbidden: disallowed by cluster policy",
		`"ephemeralContainers": [{"name": "e", "image": "i", "securityContext": {"privileged": true}}]`:                                                                   "spec.ephemeralContainers[0].securityContext.privileged: Forbidden: disallowed by cluster policy",
		`"hostNetwork": true, "securityContext": {"windowsOptions": {"hostProcess": true}}`:                                                                               "spec: Forbidden: hostProcess containers are disallowed by cluster policy",
	} {
		pod := decodePod(t, podWith(text))
		for _, refused := range []bool{false, true} {
			rules := podspec.For(func(name string) bool { return refused && name == podspec.NoPrivileged })
			var got []string
			for _, err := range podspec.ValidatePod(pod, rules.PodOptions(pod, nil)) {
				if strings.Contains(err.Detail, "cluster policy") {
					got = append(got, status.Text(release.Default, err))
				}
			}
			var want []string
			if refused {
				want = []string{refusal}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s, %v: %s", text, refused, diff)
			}
		}
	}
}
