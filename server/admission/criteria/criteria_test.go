package criteria_test

import (
	"context"
	"errors"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/sqlstore"
)

// namespaces has the namespaces of a cluster.
type namespaces map[string]string

var errStore = errors.New("the store is away")

// Item implements criteria.Namespaces.
func (n namespaces) Item(_ context.Context, storage, _, name string) (*cache.Item, error) {
	text, ok := n[name]
	switch {
	case name == "unknown":
		return nil, errStore
	case !ok:
		return nil, nil
	}
	return cache.NewOwnItem(&sqlstore.Row{Key: sqlstore.Key{Resource: storage, Name: name}, Revision: 1, Value: []byte(text)}, nil), nil
}

func labelled(pairs ...string) *metav1.LabelSelector {
	s := &metav1.LabelSelector{}
	for i := 0; i < len(pairs); i += 2 {
		metav1.AddLabelToSelector(s, pairs[i], pairs[i+1])
	}
	return s
}

func named(operation, group, version, resource string, names ...string) admissionregistrationv1.NamedRuleWithOperations {
	return admissionregistrationv1.NamedRuleWithOperations{ResourceNames: names, RuleWithOperations: admissionregistrationv1.RuleWithOperations{
		Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.OperationType(operation)},
		Rule:       admissionregistrationv1.Rule{APIGroups: []string{group}, APIVersions: []string{version}, Resources: []string{resource}},
	}}
}

func TestMatch(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	cluster := criteria.Cluster{Equivalents: criteria.NewEquivalents(catalogue), Namespaces: namespaces{"ns": `{"metadata":{"name":"ns","labels":{"team":"a"}}}`}}
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: map[string]string{"app": "x"}}}
	write := func(op admission.Operation, group, version, plural, sub, namespace string, obj runtime.Object) *admission.Attributes {
		return &admission.Attributes{Operation: op, Resource: catalogue.Lookup(group, version, plural), Subresource: sub, Namespace: namespace, Name: "p", Object: obj}
	}
	pods := func(op admission.Operation) *admission.Attributes { return write(op, "", "v1", "pods", "", "ns", pod) }
	equivalent, clusterScope, namespaced := admissionregistrationv1.Equivalent, admissionregistrationv1.ClusterScope, admissionregistrationv1.NamespacedScope
	rules := func(list ...admissionregistrationv1.NamedRuleWithOperations) *admissionregistrationv1.MatchResources {
		return &admissionregistrationv1.MatchResources{ResourceRules: list, MatchPolicy: &equivalent}
	}
	with := func(m *admissionregistrationv1.MatchResources, change func(*admissionregistrationv1.MatchResources)) *admissionregistrationv1.MatchResources {
		change(m)
		return m
	}
	in := func(scope *admissionregistrationv1.ScopeType) *admissionregistrationv1.MatchResources {
		return with(rules(named("*", "*", "*", "*")), func(m *admissionregistrationv1.MatchResources) { m.ResourceRules[0].Scope = scope })
	}
	namespace := func(labels map[string]string) *admission.Attributes {
		a := write(admission.Create, "", "v1", "namespaces", "", "p", &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "p", Labels: labels}})
		return a
	}
	for name, c := range map[string]struct {
		criteria *admissionregistrationv1.MatchResources
		write    *admission.Attributes
		want     string // the kind as which it matches, or the error
	}{
		"everything":                     {&admissionregistrationv1.MatchResources{}, pods(admission.Create), "v1 Pod"},
		"a rule":                         {rules(named("CREATE", "", "v1", "pods")), pods(admission.Create), "v1 Pod"},
		"another operation":              {rules(named("CREATE", "", "v1", "pods")), pods(admission.Delete), ""},
		"another group":                  {rules(named("*", "apps", "v1", "pods")), pods(admission.Create), ""},
		"another version":                {rules(named("*", "", "v2", "pods")), pods(admission.Create), ""},
		"stars":                          {rules(named("*", "*", "*", "*")), pods(admission.Connect), "v1 Pod"},
		"a star is no subresource":       {rules(named("*", "*", "*", "*")), write(admission.Update, "", "v1", "pods", "status", "ns", pod), ""},
		"two stars are":                  {rules(named("*", "*", "*", "*/*")), write(admission.Update, "", "v1", "pods", "status", "ns", pod), "v1 Pod"},
		"two stars are no subresource":   {rules(named("*", "*", "*", "*/*")), pods(admission.Create), "v1 Pod"},
		"all of one":                     {rules(named("*", "", "*", "pods/*")), write(admission.Create, "", "v1", "pods", "eviction", "ns", nil), "policy/v1 Eviction"},
		"one of all":                     {rules(named("*", "*", "*", "*/scale")), write(admission.Update, "apps", "v1", "deployments", "scale", "ns", nil), "autoscaling/v1 Scale"},
		"a name":                         {rules(named("*", "", "v1", "pods", "q", "p")), pods(admission.Create), "v1 Pod"},
		"another name":                   {rules(named("*", "", "v1", "pods", "q")), pods(admission.Create), ""},
		"excluded":                       {with(rules(named("*", "", "v1", "pods")), func(m *admissionregistrationv1.MatchResources) { m.ExcludeResourceRules = m.ResourceRules }), pods(admission.Create), ""},
		"an equivalent version":          {rules(named("*", "autoscaling", "v1", "*")), write(admission.Create, "autoscaling", "v2", "horizontalpodautoscalers", "", "ns", nil), "autoscaling/v1 HorizontalPodAutoscaler"},
		"its own version first":          {rules(named("*", "autoscaling", "v1", "*"), named("*", "autoscaling", "v2", "*")), write(admission.Create, "autoscaling", "v2", "horizontalpodautoscalers", "", "ns", nil), "autoscaling/v2 HorizontalPodAutoscaler"},
		"exactly":                        {with(rules(named("*", "autoscaling", "v1", "*")), func(m *admissionregistrationv1.MatchResources) { m.MatchPolicy = nil }), write(admission.Create, "autoscaling", "v2", "horizontalpodautoscalers", "", "ns", nil), ""},
		"an equivalent group":            {rules(named("*", "", "v1", "events")), write(admission.Create, "events.k8s.io", "v1", "events", "", "ns", nil), "v1 Event"},
		"in a namespace":                 {in(&namespaced), pods(admission.Create), "v1 Pod"},
		"in none":                        {in(&clusterScope), pods(admission.Create), ""},
		"a namespace is in none":         {in(&clusterScope), namespace(nil), "v1 Namespace"},
		"a namespace is not in itself":   {in(&namespaced), namespace(nil), ""},
		"labels of the namespace":        {&admissionregistrationv1.MatchResources{NamespaceSelector: labelled("team", "a")}, pods(admission.Create), "v1 Pod"},
		"other labels of the namespace":  {&admissionregistrationv1.MatchResources{NamespaceSelector: labelled("team", "b")}, pods(admission.Create), ""},
		"labels of a new namespace":      {&admissionregistrationv1.MatchResources{NamespaceSelector: labelled("team", "c")}, namespace(map[string]string{"team": "c"}), "v1 Namespace"},
		"in no namespace at all":         {&admissionregistrationv1.MatchResources{NamespaceSelector: labelled("team", "b")}, write(admission.Create, "", "v1", "nodes", "", "", &corev1.Node{}), "v1 Node"},
		"a namespace that is not there":  {&admissionregistrationv1.MatchResources{NamespaceSelector: labelled("team", "a")}, write(admission.Create, "", "v1", "pods", "", "gone", pod), `namespaces "gone" not found`},
		"nobody asks for it":             {with(rules(named("*", "", "v1", "secrets")), func(m *admissionregistrationv1.MatchResources) { m.NamespaceSelector = labelled("team", "a") }), write(admission.Create, "", "v1", "pods", "", "gone", pod), ""},
		"the store is away":              {&admissionregistrationv1.MatchResources{NamespaceSelector: labelled("team", "a")}, write(admission.Create, "", "v1", "pods", "", "unknown", pod), "Internal error occurred: the store is away"},
		"labels of the object":           {&admissionregistrationv1.MatchResources{ObjectSelector: labelled("app", "x")}, pods(admission.Create), "v1 Pod"},
		"other labels of the object":     {&admissionregistrationv1.MatchResources{ObjectSelector: labelled("app", "y")}, pods(admission.Create), ""},
		"labels of what has none":        {&admissionregistrationv1.MatchResources{ObjectSelector: labelled("app", "y")}, write(admission.Connect, "", "v1", "pods", "exec", "ns", &corev1.PodExecOptions{}), ""},
		"a selector that cannot be used": {&admissionregistrationv1.MatchResources{ObjectSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{{Key: "a", Operator: "Near"}}}}, pods(admission.Create), `Internal error occurred: "Near" is not a valid label selector operator`},
	} {
		t.Run(name, func(t *testing.T) {
			target, meant, err := criteria.Of(c.criteria).Match(t.Context(), c.write, cluster)
			got := ""
			switch {
			case err != nil:
				got = err.Error()
				if st := (*apierrors.StatusError)(nil); !errors.As(err, &st) {
					t.Errorf("%T is no answer", err)
				}
			case meant:
				apiVersion, kind := target.Kind.ToAPIVersionAndKind()
				got = apiVersion + " " + kind
			}
			if got != c.want {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
	if _, meant, _ := criteria.OfRules(nil, nil, nil, nil).Match(t.Context(), pods(admission.Create), cluster); meant {
		t.Error("a webhook without rules is asked")
	}
}

// TestShow brings an object into another version and back.
func TestShow(t *testing.T) {
	catalogue := kinds.NewCatalogue(builtin.Resources())
	stored := &autoscalingv2.HorizontalPodAutoscaler{Spec: autoscalingv2.HorizontalPodAutoscalerSpec{MaxReplicas: 3, Metrics: []autoscalingv2.MetricSpec{{
		Type: autoscalingv2.ResourceMetricSourceType, Resource: &autoscalingv2.ResourceMetricSource{Name: corev1.ResourceCPU, Target: autoscalingv2.MetricTarget{Type: autoscalingv2.UtilizationMetricType, AverageUtilization: new(int32)}},
	}}}}
	a := &admission.Attributes{Operation: admission.Create, Resource: catalogue.Lookup("autoscaling", "v2", "horizontalpodautoscalers"), Object: stored}
	older := catalogue.Lookup("autoscaling", "v1", "horizontalpodautoscalers")
	target := criteria.Target{Resource: older, Kind: older.GVK()}
	shown, err := target.Show(a, a.Object)
	if err != nil {
		t.Fatal(err)
	}
	v1, ok := shown.(*autoscalingv1.HorizontalPodAutoscaler)
	if !ok || v1.Kind != "HorizontalPodAutoscaler" || v1.APIVersion != "autoscaling/v1" || v1.Spec.TargetCPUUtilizationPercentage == nil {
		t.Fatalf("shown as %+v", shown)
	}
	if stored.Kind != "" || len(stored.Spec.Metrics) != 1 {
		t.Errorf("what was shown has changed: %+v", stored)
	}
	v1.Spec.MaxReplicas = 5
	back, err := target.Back(a, v1)
	if err != nil {
		t.Fatal(err)
	}
	if v2, ok := back.(*autoscalingv2.HorizontalPodAutoscaler); !ok || v2.Spec.MaxReplicas != 5 || len(v2.Spec.Metrics) != 1 || v2.APIVersion != "autoscaling/v2" {
		t.Errorf("back as %+v", back)
	}
	tree, err := target.Input(a).Object()
	if err != nil {
		t.Fatal(err)
	}
	if m, ok := tree.(map[string]any); !ok || m["apiVersion"] != "autoscaling/v1" {
		t.Errorf("expressions see %v", tree)
	}
}
