package rules_test

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	storagev1 "k8s.io/api/storage/v1"
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
		{corev1.Lifecycle{}, `core.Lifecycle{PostStart:(*core.LifecycleHandler)(nil), PreStop:(*core.LifecycleHandler)(nil)}`}, // 1.33 adds a field
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

// TestShownInJSON: types of API groups show all fields under their Go names, others as they are written.
func TestShownInJSON(t *testing.T) {
	seconds := int64(5)
	for _, c := range []struct {
		value any
		want  string
	}{
		{[]admissionregistrationv1.OperationType{"*", "CREATE"}, `["*","CREATE"]`},
		{corev1.Taint{Key: "a", Value: "<", Effect: "NoSchedule"}, `{"Key":"a","Value":"\u003c","Effect":"NoSchedule","TimeAdded":null}`},
		{[]corev1.Toleration{{Key: "a", TolerationSeconds: &seconds}}, `[{"Key":"a","Operator":"","Value":"","Effect":"","TolerationSeconds":5}]`},
		{corev1.ResourceList{"memory": resource.MustParse("1Gi"), "cpu": resource.MustParse("500m")}, `{"cpu":"500m","memory":"1Gi"}`},
		{resource.MustParse("500m"), `"500m"`},
		{corev1.ScopeSelector{}, `{"MatchExpressions":null}`},
		{metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, `{"matchLabels":{"a":"b"}}`},
		{corev1.Volume{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}, `{"Name":"v","HostPath":null,"EmptyDir":{"Medium":"","SizeLimit":null},`},
		{corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Name: "a"}}, `{"name":"a","Spec":{`},
		{corev1.PodTemplateSpec{}, `{"Spec":{`},
		{corev1.Secret{Data: map[string][]byte{"a": []byte("b")}}, `{"Immutable":null,"Data":{"a":"Yg=="},`},
	} {
		got, err := json.Marshal(rules.Shown(c.value))
		if err != nil || !json.Valid(got) || !strings.HasPrefix(string(got), c.want) {
			t.Errorf("%T:\n got %s, %v\nwant %s", c.value, got, err, c.want)
		}
	}
}

// TestShownComplete: structures whose internal types have another order of fields show all of them. Two types move or lack
// some: a PodSpec has those of the host in the security context, and the former name of the account nowhere.
func TestShownComplete(t *testing.T) {
	fields := func(value any) map[string]json.RawMessage {
		t.Helper()
		text, err := json.Marshal(rules.Shown(value))
		var got map[string]json.RawMessage
		if err == nil {
			err = json.Unmarshal(text, &got)
		}
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	for _, value := range []any{corev1.PodSecurityContext{}, corev1.VolumeSource{}, corev1.PersistentVolumeSource{}, storagev1.CSIDriverSpec{}} {
		if got, want := len(fields(value)), reflect.TypeOf(value).NumField(); got != want {
			t.Errorf("%T shows %d of %d fields", value, got, want)
		}
	}
	pod := fields(corev1.PodSpec{HostPID: true, SecurityContext: &corev1.PodSecurityContext{}})
	var context map[string]any
	if err := json.Unmarshal(pod["SecurityContext"], &context); err != nil {
		t.Fatal(err)
	}
	const moved, gone = 5, 1
	if got, want := len(pod), reflect.TypeFor[corev1.PodSpec]().NumField()-moved-gone; got != want {
		t.Errorf("a PodSpec shows %d fields, want %d", got, want)
	}
	if got, want := len(context), reflect.TypeFor[corev1.PodSecurityContext]().NumField()+moved; got != want || context["HostPID"] != true {
		t.Errorf("its security context shows %d fields, want %d: %v", got, want, context)
	}
}
