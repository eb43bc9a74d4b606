package descriptions

import (
	"reflect"
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	apiserverinternalv1alpha1 "k8s.io/api/apiserverinternal/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	autoscalingv1 "k8s.io/api/autoscaling/v1"
	autoscalingv2 "k8s.io/api/autoscaling/v2"
	batchv1 "k8s.io/api/batch/v1"
	certificatesv1 "k8s.io/api/certificates/v1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1 "k8s.io/api/coordination/v1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	eventsv1 "k8s.io/api/events/v1"
	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	policyv1 "k8s.io/api/policy/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	resourcev1 "k8s.io/api/resource/v1"
	newestv1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	schedulingv1 "k8s.io/api/scheduling/v1"
	storagev1 "k8s.io/api/storage/v1"
	storagemigrationv1beta1 "k8s.io/api/storagemigration/v1beta1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	resourcev1alpha3 "github.com/rowlock/rowlock/server/removed/k8s.io/api/resource/v1alpha3"
	schedulingv1alpha2 "github.com/rowlock/rowlock/server/removed/k8s.io/api/scheduling/v1alpha2"
	storagemigrationv1alpha1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/storagemigration/v1alpha1"
)

// groups register the kinds of the packages whose types the OpenAPI documents show.
// With them come the kinds of meta/v1 that every group has.
var groups = runtime.NewSchemeBuilder(
	admissionregistrationv1.AddToScheme, appsv1.AddToScheme, authenticationv1.AddToScheme, authorizationv1.AddToScheme,
	autoscalingv1.AddToScheme, autoscalingv2.AddToScheme, batchv1.AddToScheme, certificatesv1.AddToScheme,
	coordinationv1.AddToScheme, corev1.AddToScheme, discoveryv1.AddToScheme, eventsv1.AddToScheme,
	flowcontrolv1.AddToScheme, networkingv1.AddToScheme, nodev1.AddToScheme, policyv1.AddToScheme, rbacv1.AddToScheme,
	schedulingv1.AddToScheme, storagev1.AddToScheme, apiextensionsv1.AddToScheme, apiregistrationv1.AddToScheme,
	apiserverinternalv1alpha1.AddToScheme, storagemigrationv1alpha1.AddToScheme,
	certificatesv1beta1.AddToScheme, coordinationv1beta1.AddToScheme,
	resourcev1alpha3.AddToScheme, resourcev1beta1.AddToScheme, resourcev1.AddToScheme,
	storagemigrationv1beta1.AddToScheme,
)

// partly registers kinds of packages of which package removed has the other kinds. If both have a type,
// package removed's is used.
var partly = runtime.NewSchemeBuilder(newestv1alpha3.AddToScheme)

// unregistered are kinds that nothing registers.
var unregistered = []reflect.Type{reflect.TypeFor[schedulingv1alpha2.WorkloadList](), reflect.TypeFor[schedulingv1alpha2.PodGroupList]()}

// linkedTypes returns the structs in the kinds of all groups, by name.
func linkedTypes() (map[string]reflect.Type, error) {
	types := map[string]reflect.Type{}
	for _, from := range []runtime.SchemeBuilder{groups, partly} {
		scheme := runtime.NewScheme()
		if err := from.AddToScheme(scheme); err != nil {
			return nil, err
		}
		for _, t := range scheme.AllKnownTypes() {
			addTypes(types, t)
		}
	}
	for _, t := range unregistered {
		addTypes(types, t)
	}
	return types, nil
}

func addTypes(types map[string]reflect.Type, t reflect.Type) {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	if name := Name(t); t.Kind() == reflect.Struct && types[name] == nil {
		types[name] = t
		for i := range t.NumField() {
			addTypes(types, t.Field(i).Type)
		}
	}
}

// fieldDoc returns the description of a field by the struct that declares it.
func (l *Library) fieldDoc(name string, t reflect.Type, field string) string {
	if text := l.documented[name].fields[field]; text != "" {
		return l.words.Text(describing(name, t), field, text)
	}
	for f := range inlined(t) {
		if text := l.fieldDoc(Name(f), f, field); text != "" {
			return text
		}
	}
	return ""
}

// fieldOf finds a field by its JSON name, in the type and in the structs that it inlines.
func fieldOf(t reflect.Type, field string) (reflect.StructField, bool) {
	if t == nil {
		return reflect.StructField{}, false
	}
	for i := range t.NumField() {
		if name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); name == field {
			return t.Field(i), true
		}
	}
	for in := range inlined(t) {
		if f, ok := fieldOf(in, field); ok {
			return f, true
		}
	}
	return reflect.StructField{}, false
}

// inlined yields the structs whose fields JSON inlines into those of a type.
func inlined(t reflect.Type) func(yield func(reflect.Type) bool) {
	return func(yield func(reflect.Type) bool) {
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" && f.Type.Kind() == reflect.Struct && !yield(f.Type) {
				return
			}
		}
	}
}

// bare returns a type without pointers.
func bare(t reflect.Type) reflect.Type {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	return t
}
