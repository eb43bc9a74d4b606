package podspec_test

import (
	"maps"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

func amounts(text string) corev1.ResourceList {
	if text == "" {
		return nil
	}
	list := corev1.ResourceList{}
	for pair := range strings.FieldsSeq(text) {
		name, amount, _ := strings.Cut(pair, "=")
		list[corev1.ResourceName(name)] = resource.MustParse(amount)
	}
	return list
}

func words(list corev1.ResourceList) string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(list)) {
		q := list[name]
		out = append(out, string(name)+"="+q.String())
	}
	return strings.Join(out, " ")
}

// TestDefaultPodRequests: a pod with limits as a whole requests what its containers do
// together at most, else as much as the limit.
func TestDefaultPodRequests(t *testing.T) {
	always := corev1.ContainerRestartPolicyAlways
	container := func(requests string) corev1.Container {
		return corev1.Container{Resources: corev1.ResourceRequirements{Requests: amounts(requests)}}
	}
	sidecar := container("cpu=100m")
	sidecar.RestartPolicy = &always
	for name, tc := range map[string]struct {
		init, containers      []corev1.Container
		requests, limits, all string
	}{
		"nothing is limited":            {containers: []corev1.Container{container("cpu=1")}},
		"of one container":              {containers: []corev1.Container{container("cpu=1")}, limits: "cpu=2 memory=1Gi", all: "cpu=1 memory=1Gi"},
		"of several":                    {containers: []corev1.Container{container("cpu=1"), container("cpu=500m memory=1Gi")}, limits: "cpu=2 memory=2Gi", all: "cpu=1500m memory=1Gi"},
		"init containers one by one":    {init: []corev1.Container{container("cpu=3"), container("cpu=2")}, containers: []corev1.Container{container("cpu=1")}, limits: "cpu=4", all: "cpu=3"},
		"sidecars beside all":           {init: []corev1.Container{sidecar, container("cpu=1")}, containers: []corev1.Container{container("cpu=500m")}, limits: "cpu=4", all: "cpu=1100m"},
		"what is said stays":            {containers: []corev1.Container{container("cpu=1")}, requests: "cpu=1500m", limits: "cpu=2", all: "cpu=1500m"},
		"only of what a pod can have":   {containers: []corev1.Container{container("ephemeral-storage=1Gi")}, limits: "cpu=2", all: "cpu=2"},
		"limits without any containers": {limits: "memory=1Gi", all: "memory=1Gi"},
	} {
		s := &corev1.PodSpec{InitContainers: tc.init, Containers: tc.containers, Resources: &corev1.ResourceRequirements{Requests: amounts(tc.requests), Limits: amounts(tc.limits)}}
		for gate, want := range map[bool]string{true: tc.all, false: tc.requests} {
			one := s.DeepCopy()
			rules := podspec.For(func(name string) bool { return gate && name == "PodLevelResources" })
			rules.DefaultPodRequests(one)
			if got := words(one.Resources.Requests); got != want {
				t.Errorf("%s, with the gate %v: %q, want %q", name, gate, got, want)
			}
			if _, ok := podspec.WholeResources(one); ok != (tc.limits != "" || tc.requests != "") {
				t.Errorf("%s, with the gate %v: the pod has resources: %v", name, gate, ok)
			}
		}
	}
}

// TestReferences: each way in which a pod names a Secret or a ConfigMap.
func TestReferences(t *testing.T) {
	local := func(name string) corev1.LocalObjectReference { return corev1.LocalObjectReference{Name: name} }
	s := &corev1.PodSpec{
		ImagePullSecrets: []corev1.LocalObjectReference{local("pull")},
		InitContainers:   []corev1.Container{{EnvFrom: []corev1.EnvFromSource{{SecretRef: &corev1.SecretEnvSource{LocalObjectReference: local("from")}}, {ConfigMapRef: &corev1.ConfigMapEnvSource{LocalObjectReference: local("cfrom")}}}}},
		Containers: []corev1.Container{{Env: []corev1.EnvVar{
			{ValueFrom: &corev1.EnvVarSource{SecretKeyRef: &corev1.SecretKeySelector{LocalObjectReference: local("key")}}},
			{ValueFrom: &corev1.EnvVarSource{ConfigMapKeyRef: &corev1.ConfigMapKeySelector{LocalObjectReference: local("ckey")}}},
		}}},
		Volumes: []corev1.Volume{
			{VolumeSource: corev1.VolumeSource{Secret: &corev1.SecretVolumeSource{SecretName: "volume"}}},
			{VolumeSource: corev1.VolumeSource{ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: local("cvolume")}}},
			{VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
				{Secret: &corev1.SecretProjection{LocalObjectReference: local("projected")}}, {ConfigMap: &corev1.ConfigMapProjection{LocalObjectReference: local("cprojected")}},
			}}}},
		},
	}
	r := podspec.ReferencesOf(s)
	slices.Sort(r.Secrets)
	slices.Sort(r.ConfigMaps)
	if got := strings.Join(r.Secrets, " ") + "; " + strings.Join(r.ConfigMaps, " "); got != "from key projected pull volume; cfrom ckey cprojected cvolume" {
		t.Error(got)
	}
}
