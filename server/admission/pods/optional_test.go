package pods_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/kinds"
)

// namespace is the only namespace, with these annotations.
type namespace map[string]string

func (n namespace) Get(context.Context, string, string, string) (kinds.Object, error) {
	return &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "n", Annotations: n}}, nil
}

func (namespace) List(context.Context, string, string, func([]byte) bool) ([]kinds.Object, error) {
	return nil, nil
}

// admit runs both halves of a plugin on a pod.
func admit(t *testing.T, p admission.Plugin, pod, old *corev1.Pod) error {
	t.Helper()
	a := &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: "pods"}, Namespace: "n", Name: "p", Object: pod}
	if old != nil {
		a.Operation, a.Old = admission.Update, old
	}
	c := admission.NewChain(p)
	if err := c.Admit(t.Context(), a); err != nil {
		return err
	}
	return c.Validate(t.Context(), a)
}

func pod(images ...string) *corev1.Pod {
	p := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p"}}
	for _, i := range images {
		p.Spec.Containers = append(p.Spec.Containers, corev1.Container{Image: i, ImagePullPolicy: corev1.PullNever})
	}
	return p
}

func TestAlwaysPullImages(t *testing.T) {
	p := pod("a")
	p.Spec.InitContainers = []corev1.Container{{Image: "b"}}
	p.Spec.EphemeralContainers = []corev1.EphemeralContainer{{}}
	p.Spec.Volumes = []corev1.Volume{{VolumeSource: corev1.VolumeSource{Image: &corev1.ImageVolumeSource{}}}}
	if err := admit(t, pods.AlwaysPullImages{}, p, nil); err != nil {
		t.Error(err)
	}
	got := []corev1.PullPolicy{p.Spec.Containers[0].ImagePullPolicy, p.Spec.InitContainers[0].ImagePullPolicy, p.Spec.EphemeralContainers[0].ImagePullPolicy, p.Spec.Volumes[0].Image.PullPolicy}
	if d := cmp.Diff([]corev1.PullPolicy{"Always", "Always", "Always", "Always"}, got); d != "" {
		t.Error(d)
	}
	same, other := pod("a", "b"), pod("a", "c")
	if err := admit(t, pods.AlwaysPullImages{}, same, pod("b", "a")); err != nil || same.Spec.Containers[0].ImagePullPolicy != corev1.PullNever {
		t.Errorf("an update without new images: %v, %s", err, same.Spec.Containers[0].ImagePullPolicy)
	}
	if err := admit(t, pods.AlwaysPullImages{}, other, pod("b", "a")); err != nil || other.Spec.Containers[0].ImagePullPolicy != corev1.PullAlways {
		t.Errorf("an update with a new image: %v, %s", err, other.Spec.Containers[0].ImagePullPolicy)
	}
	a := &admission.Attributes{Operation: admission.Create, Resource: &kinds.Resource{Plural: "pods"}, Name: "p", Object: pod("a")}
	want := `pods "p" is forbidden: spec.containers[0].imagePullPolicy: Unsupported value: "Never": supported values: "Always"`
	if err := (pods.AlwaysPullImages{}).Validate(t.Context(), a); fmt.Sprint(err) != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestHostAntiAffinity(t *testing.T) {
	for key, want := range map[string]string{
		"kubernetes.io/hostname": "<nil>",
		"zone":                   `pods "p" is forbidden: affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey zone but only key kubernetes.io/hostname is allowed`,
	} {
		p := pod("a")
		p.Spec.Affinity = &corev1.Affinity{PodAntiAffinity: &corev1.PodAntiAffinity{
			RequiredDuringSchedulingIgnoredDuringExecution:  []corev1.PodAffinityTerm{{TopologyKey: key}},
			PreferredDuringSchedulingIgnoredDuringExecution: []corev1.WeightedPodAffinityTerm{{PodAffinityTerm: corev1.PodAffinityTerm{TopologyKey: "any"}}},
		}}
		if err := admit(t, pods.HostAntiAffinity{}, p, nil); fmt.Sprint(err) != want {
			t.Errorf("%s: %v", key, err)
		}
	}
}

func TestExtendedResources(t *testing.T) {
	asks := func(names ...string) corev1.ResourceRequirements {
		l := corev1.ResourceList{}
		for _, n := range names {
			l[corev1.ResourceName(n)] = resource.MustParse("1")
		}
		return corev1.ResourceRequirements{Requests: l}
	}
	p := pod("a")
	p.Spec.Containers[0].Resources = asks("cpu", "z.example/b", "example.com/a")
	p.Spec.InitContainers = []corev1.Container{{Resources: asks("example.com/c", "example.com/a")}}
	seconds := int64(1)
	p.Spec.Tolerations = []corev1.Toleration{{Key: "example.com/c", Operator: "Exists", Effect: "NoSchedule", TolerationSeconds: &seconds}, {Key: "k"}}
	if err := admit(t, pods.ExtendedResources{}, p, nil); err != nil {
		t.Fatal(err)
	}
	want := []corev1.Toleration{{Key: "example.com/c", Operator: "Exists", Effect: "NoSchedule"}, {Key: "k"},
		{Key: "example.com/a", Operator: "Exists", Effect: "NoSchedule"}, {Key: "z.example/b", Operator: "Exists", Effect: "NoSchedule"}}
	if d := cmp.Diff(want, p.Spec.Tolerations); d != "" {
		t.Error(d)
	}
}

func TestNodeSelector(t *testing.T) {
	const annotation = "scheduler.alpha.kubernetes.io/node-selector"
	config, err := pods.ParseNodeSelectors([]byte("podNodeSelectorPluginConfig:\n  clusterDefaultNodeSelector: region=west\n  'n': region=west,disk=ssd,env=test\n"))
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		namespace namespace
		selector  map[string]string
		want      map[string]string
		err       string
	}{
		"default":         {nil, nil, map[string]string{"region": "west"}, ""},
		"annotation":      {namespace{annotation: "env=test"}, map[string]string{"disk": "ssd"}, map[string]string{"env": "test", "disk": "ssd"}, ""},
		"empty":           {namespace{annotation: ""}, nil, map[string]string{}, ""},
		"contradicts":     {nil, map[string]string{"region": "east"}, nil, `pods "p" is forbidden: pod node label selector conflicts with its namespace node label selector`},
		"not allowed":     {nil, map[string]string{"cpu": "fast"}, nil, `pods "p" is forbidden: pod node label selector labels conflict with its namespace whitelist`},
		"bad annotation":  {namespace{annotation: "a in (b)"}, nil, nil, "invalid selector: [a in (b)]"},
		"value forbidden": {nil, map[string]string{"disk": "hdd"}, nil, `pods "p" is forbidden: pod node label selector labels conflict with its namespace whitelist`},
	} {
		config.Objects = c.namespace
		p := pod("a")
		p.Spec.NodeSelector = c.selector
		err := admit(t, config, p, nil)
		if c.err != "" {
			if fmt.Sprint(err) != c.err {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if d := cmp.Diff(c.want, p.Spec.NodeSelector); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	for _, bad := range []string{"podNodeSelectorPluginConfig: {n: a in b}", "other: {}"} {
		if _, err := pods.ParseNodeSelectors([]byte(bad)); err == nil {
			t.Errorf("%s is taken", bad)
		}
	}
}

func TestTolerationLimits(t *testing.T) {
	const (
		defaults = "scheduler.alpha.kubernetes.io/defaultTolerations"
		allowed  = "scheduler.alpha.kubernetes.io/tolerationsWhitelist"
		conflict = "pod tolerations (possibly merged with namespace default tolerations) conflict with its %s whitelist"
	)
	config, err := pods.ParseTolerationLimits([]byte("apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\n" +
		"default: [{key: d, operator: Exists}]\nwhitelist: [{key: d, operator: Exists}, {key: e, operator: Equal, value: v}, {key: node.kubernetes.io/memory-pressure, operator: Exists}]\n"))
	if err != nil {
		t.Fatal(err)
	}
	pressure := corev1.Toleration{Key: "node.kubernetes.io/memory-pressure", Operator: "Exists", Effect: "NoSchedule"}
	busy := corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("1")}}
	for name, c := range map[string]struct {
		namespace namespace
		has       []corev1.Toleration
		resources corev1.ResourceRequirements
		update    bool
		want      []corev1.Toleration
		err       string
	}{
		"default":          {want: []corev1.Toleration{{Key: "d", Operator: "Exists"}}},
		"not best effort":  {resources: busy, want: []corev1.Toleration{{Key: "d", Operator: "Exists"}, pressure}},
		"namespace's":      {namespace: namespace{defaults: `[{"key": "x", "operator": "Exists"}]`, allowed: ""}, want: []corev1.Toleration{{Key: "x", Operator: "Exists"}}},
		"namespace's none": {namespace: namespace{defaults: "[]"}},
		"update":           {update: true},
		"merged":           {has: []corev1.Toleration{{Key: "d", Operator: "Equal", Value: "v", Effect: "NoSchedule"}}, want: []corev1.Toleration{{Key: "d", Operator: "Exists"}}},
		"kept":             {has: []corev1.Toleration{{Key: "e", Operator: "Equal", Value: "v"}}, want: []corev1.Toleration{{Key: "e", Operator: "Equal", Value: "v"}, {Key: "d", Operator: "Exists"}}},
		"other value":      {has: []corev1.Toleration{{Key: "e", Operator: "Equal", Value: "w"}}, err: fmt.Sprintf(conflict, "cluster")},
		"wider":            {has: []corev1.Toleration{{Operator: "Exists"}}, err: fmt.Sprintf(conflict, "cluster")},
		"not allowed here": {namespace: namespace{allowed: `[{"key": "y", "operator": "Exists"}]`}, err: fmt.Sprintf(conflict, "namespace")},
		"bad annotation":   {namespace: namespace{allowed: `[`}, err: "unexpected end of JSON input"},
	} {
		config.Objects = c.namespace
		p := pod("a")
		p.Spec.Tolerations, p.Spec.Containers[0].Resources = c.has, c.resources
		var old *corev1.Pod
		if c.update {
			old = pod("a")
		}
		err := admit(t, config, p, old)
		if c.err != "" {
			if fmt.Sprint(err) != c.err {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if d := cmp.Diff(c.want, p.Spec.Tolerations); err != nil || d != "" {
			t.Errorf("%s: %v %s", name, err, d)
		}
	}
	for text, want := range map[string]string{
		"{}": "is not Configuration",
		"apiVersion: podtolerationrestriction.admission.k8s.io/v1alpha1\nkind: Configuration\ndefault: [{operator: Equal}]": "default[0].operator",
	} {
		if _, err := pods.ParseTolerationLimits([]byte(text)); !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("%s: %v", text, err)
		}
	}
}
