package rules_test

import (
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

func TestShown(t *testing.T) {
	quantity := resource.MustParse("1500m")
	for _, c := range []struct {
		value any
		want  string
	}{
		{appsv1.DeploymentStrategy{Type: "Canary"}, `apps.DeploymentStrategy{Type:"Canary", RollingUpdate:(*apps.RollingUpdateDeployment)(nil)}`},
		{&rbacv1.RoleRef{APIGroup: "g", Kind: "Role", Name: "n"}, `rbac.RoleRef{APIGroup:"g", Kind:"Role", Name:"n"}`},
		{&metav1.LabelSelector{MatchLabels: map[string]string{"b": "2", "a": "1"}},
			`v1.LabelSelector{MatchLabels:map[string]string{"a":"1", "b":"2"}, MatchExpressions:[]v1.LabelSelectorRequirement(nil)}`},
		{[]corev1.PersistentVolumeAccessMode{"ReadWriteOnce"}, `[]core.PersistentVolumeAccessMode{"ReadWriteOnce"}`},
		{quantity, fmt.Sprintf("%#v", quantity)},
		{metav1.ObjectMeta{}, fmt.Sprintf("%#v", metav1.ObjectMeta{})},
		{int32(4), "4"},
		{"text", `"text"`},
	} {
		if got := fmt.Sprintf("%#v", rules.Shown(c.value)); got != c.want {
			t.Errorf("shown %s\nwant  %s", got, c.want)
		}
	}
}

func TestIntOrPercent(t *testing.T) {
	p := field.NewPath("x")
	for _, c := range []struct {
		value  intstr.IntOrString
		faults int
		amount int
	}{
		{intstr.FromInt32(3), 0, 3},
		{intstr.FromInt32(-1), 1, -1},
		{intstr.FromString("25%"), 0, 25},
		{intstr.FromString("120%"), 1, 120},
		{intstr.FromString("lots"), 1, 0},
	} {
		errs := append(rules.IntOrPercent(c.value, p), rules.AtMostAll(c.value, p)...)
		if len(errs) != c.faults {
			t.Errorf("%v: %v, want %d faults", c.value, errs, c.faults)
		}
		if got := rules.Amount(c.value); got != c.amount {
			t.Errorf("amount of %v is %d, want %d", c.value, got, c.amount)
		}
	}
}

func TestNotDecremented(t *testing.T) {
	one, two := int32(1), int32(2)
	p := field.NewPath("x")
	for _, c := range []struct {
		value, old *int32
		bad        bool
	}{{nil, nil, false}, {&one, nil, false}, {nil, &one, true}, {&one, &two, true}, {&two, &one, false}, {&one, &one, false}} {
		if got := len(rules.NotDecremented(c.value, c.old, p)) > 0; got != c.bad {
			t.Errorf("%v after %v: refused is %v", c.value, c.old, got)
		}
	}
}
