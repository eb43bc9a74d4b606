package pods_test

import (
	"context"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/kinds"
)

// only finds a single object.
type only struct{ kinds.Object }

func (o only) Get(context.Context, string, string, string) (kinds.Object, error) {
	return o.DeepCopyObject().(kinds.Object), nil
}

func (only) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	return nil, nil
}

// TestEnforcedSecrets: each reference of a pod to the content of a secret must name one of its
// account's, if the account enforces that.
func TestEnforcedSecrets(t *testing.T) {
	env := func(secret string) []corev1.EnvVar {
		return []corev1.EnvVar{{Name: "E", ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}}
	}
	from := func(secret string) []corev1.EnvFromSource {
		return []corev1.EnvFromSource{{ConfigMapRef: &corev1.ConfigMapEnvSource{}}, {SecretRef: &corev1.SecretEnvSource{LocalObjectReference: corev1.LocalObjectReference{Name: secret}}}}
	}
	account := func(enforce string) *corev1.ServiceAccount {
		return &corev1.ServiceAccount{
			ObjectMeta:       metav1.ObjectMeta{Name: "default", Annotations: map[string]string{"kubernetes.io/enforce-mountable-secrets": enforce}},
			Secrets:          []corev1.ObjectReference{{Name: "own"}},
			ImagePullSecrets: []corev1.LocalObjectReference{{Name: "pull"}},
		}
	}
	const rest = ` is not allowed because service account default does not reference that `
	for name, tc := range map[string]struct {
		sub  string
		set  func(p *corev1.Pod, secret string)
		want string
	}{
		"a volume": {"", func(p *corev1.Pod, s string) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: s}}}}
		}, `volume with secret.secretName="other"` + rest + "secret"},
		"a projected volume": {"", func(p *corev1.Pod, s string) {
			p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{ConfigMap: &corev1.ConfigMapProjection{}}, {Secret: &corev1.SecretProjection{LocalObjectReference: corev1.LocalObjectReference{Name: s}}},
			}}}}}
		}, `volume with secret.secretName="other"` + rest + "secret"},
		"a variable": {"", func(p *corev1.Pod, s string) {
			p.Spec.Containers = []corev1.Container{{Name: "c", Env: env(s)}}
		}, `container c with envVar E referencing secret.secretName="other"` + rest + "secret"},
		"variables": {"", func(p *corev1.Pod, s string) {
			p.Spec.Containers = []corev1.Container{{Name: "c", EnvFrom: from(s)}}
		}, `container c with envFrom referencing secret.secretName="other"` + rest + "secret"},
		"a variable of an init container": {"", func(p *corev1.Pod, s string) {
			p.Spec.InitContainers = []corev1.Container{{Name: "c", Env: env(s)}}
		}, `init container c with envVar E referencing secret.secretName="other"` + rest + "secret"},
		"variables of an init container": {"", func(p *corev1.Pod, s string) {
			p.Spec.InitContainers = []corev1.Container{{Name: "c", EnvFrom: from(s)}}
		}, `init container c with envFrom referencing secret.secretName="other"` + rest + "secret"},
		"a variable of an ephemeral container": {"ephemeralcontainers", func(p *corev1.Pod, s string) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "c", Env: env(s)}}}
		}, `ephemeral container c with envVar E referencing secret.secretName="other"` + rest + "secret"},
		"variables of an ephemeral container": {"ephemeralcontainers", func(p *corev1.Pod, s string) {
			p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{EphemeralContainerCommon: corev1.EphemeralContainerCommon{Name: "c", EnvFrom: from(s)}}}
		}, `ephemeral container c with envFrom referencing secret.secretName="other"` + rest + "secret"},
		"a pull secret": {"", func(p *corev1.Pod, s string) {
			if s == "own" {
				s = "pull"
			}
			p.Spec.ImagePullSecrets = []corev1.LocalObjectReference{{Name: s}}
		}, `imagePullSecrets[0].name="other"` + rest + "imagePullSecret"},
	} {
		t.Run(name, func(t *testing.T) {
			run := func(enforce, secret string) string {
				p := pod()
				p.Spec.ServiceAccountName = "default"
				tc.set(p, secret)
				a := &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: "pods"}, Namespace: "n", Name: "p", Object: p, Subresource: tc.sub}
				if tc.sub != "" {
					a.Operation, a.Old = admission.Update, p
				}
				plugin := pods.ServiceAccount{Objects: only{account(enforce)}}
				err := plugin.Validate(t.Context(), a) // a webhook may have put it there after Admit
				if c := admission.NewChain(plugin); tc.sub == "" {
					if other := c.Admit(t.Context(), a); (err == nil) != (other == nil) {
						t.Errorf("Admit: %v, Validate: %v", other, err)
					}
				}
				if err == nil {
					return ""
				}
				return err.Error()
			}
			for _, enforce := range []string{"true", "1", "T"} {
				if got, want := run(enforce, "other"), `pods "p" is forbidden: `+tc.want; got != want {
					t.Errorf("enforced with %s: %s\nwant %s", enforce, got, want)
				}
			}
			if got := run("true", "own"); got != "" {
				t.Errorf("the account's own: %s", got)
			}
			for _, enforce := range []string{"", "false", "yes"} {
				if got := run(enforce, "other"); got != "" {
					t.Errorf("not enforced with %q: %s", enforce, got)
				}
			}
		})
	}
}

// TestNoAccount: a plugin that removes the account again is refused.
func TestNoAccount(t *testing.T) {
	a := &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: "pods"}, Namespace: "n", Name: "p", Object: pod()}
	err := pods.ServiceAccount{Objects: only{&corev1.ServiceAccount{}}}.Validate(t.Context(), a)
	if err == nil || !strings.Contains(err.Error(), "no service account specified for pod n/p") {
		t.Error(err)
	}
}

// TestRuntimeClassTolerations: of equal tolerations the first stays where it is, and what
// another one covers goes.
func TestRuntimeClassTolerations(t *testing.T) {
	all := corev1.Toleration{Operator: corev1.TolerationOpExists}
	kata := corev1.Toleration{Key: "kata", Operator: corev1.TolerationOpExists, Effect: corev1.TaintEffectNoSchedule}
	one := corev1.Toleration{Key: "kata", Operator: corev1.TolerationOpEqual, Value: "1", Effect: corev1.TaintEffectNoSchedule}
	other := corev1.Toleration{Key: "other", Operator: corev1.TolerationOpExists}
	for name, tc := range map[string]struct{ pod, class, want []corev1.Toleration }{
		"the pod's first":       {[]corev1.Toleration{other}, []corev1.Toleration{kata}, []corev1.Toleration{other, kata}},
		"the same in both":      {[]corev1.Toleration{kata, other}, []corev1.Toleration{kata}, []corev1.Toleration{kata, other}},
		"the same twice":        {[]corev1.Toleration{other, kata, other}, nil, []corev1.Toleration{other, kata}},
		"covered by the class":  {[]corev1.Toleration{one, other}, []corev1.Toleration{kata}, []corev1.Toleration{other, kata}},
		"covered by the pod":    {[]corev1.Toleration{kata}, []corev1.Toleration{one}, []corev1.Toleration{kata}},
		"everything is covered": {[]corev1.Toleration{one, other}, []corev1.Toleration{all}, []corev1.Toleration{all}},
	} {
		p := pod()
		p.Spec.Tolerations, p.Spec.RuntimeClassName = tc.pod, new("r")
		class := &nodev1.RuntimeClass{Scheduling: &nodev1.Scheduling{Tolerations: tc.class}}
		if err := admit(t, pods.RuntimeClass{Objects: only{class}}, p, nil); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if d := cmp.Diff(tc.want, p.Spec.Tolerations); d != "" {
			t.Errorf("%s (-want +got):\n%s", name, d)
		}
	}
}

// TestRuntimeClassOverhead: an overhead that is given, empty or not, is the class's.
func TestRuntimeClassOverhead(t *testing.T) {
	cpu := func(s string) corev1.ResourceList { return corev1.ResourceList{"cpu": resource.MustParse(s)} }
	const differs = `pods "p" is forbidden: pod rejected: Pod's Overhead doesn't match RuntimeClass's defined Overhead`
	for name, tc := range map[string]struct {
		pod, class corev1.ResourceList
		want       string
	}{
		"none given":        {nil, cpu("1"), ""},
		"the same":          {cpu("1000m"), cpu("1"), ""},
		"another":           {cpu("2"), cpu("1"), differs},
		"empty":             {corev1.ResourceList{}, cpu("1"), differs},
		"without the class": {cpu("1"), nil, `pods "p" is forbidden: pod rejected: Pod Overhead set without corresponding RuntimeClass defined Overhead`},
		"neither":           {nil, nil, ""},
	} {
		p, class := pod(), &nodev1.RuntimeClass{}
		p.Spec.Overhead, p.Spec.RuntimeClassName = tc.pod, new("r")
		if tc.class != nil {
			class.Overhead = &nodev1.Overhead{PodFixed: tc.class}
		}
		got := ""
		if err := admit(t, pods.RuntimeClass{Objects: only{class}}, p, nil); err != nil {
			got = err.Error()
		}
		if got != tc.want {
			t.Errorf("%s: %q, want %q", name, got, tc.want)
		}
	}
}
