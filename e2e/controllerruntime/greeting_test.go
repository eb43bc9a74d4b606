// Package controllerruntime_test is a project whose go.mod requires both rowlock and
// controller-runtime. e2e/controllerruntime.sh runs it with each supported release.
package controllerruntime_test

import (
	"context"
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

var greetings = schema.GroupVersion{Group: "greetings.example.com", Version: "v1"}

// Greeting is the custom resource: a person to greet.
type Greeting struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec struct {
		Name  string `json:"name"`
		Times int64  `json:"times,omitempty"`
	} `json:"spec"`
	Status struct {
		Said int64 `json:"said,omitempty"`
	} `json:"status,omitempty"`
}

// DeepCopyObject copies all of g.
func (g *Greeting) DeepCopyObject() runtime.Object {
	out := new(Greeting)
	*out = *g
	g.ObjectMeta.DeepCopyInto(&out.ObjectMeta)
	return out
}

// GreetingList is a list of them.
type GreetingList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata,omitempty"`

	Items []Greeting `json:"items"`
}

// DeepCopyObject copies all of l.
func (l *GreetingList) DeepCopyObject() runtime.Object {
	out := new(GreetingList)
	*out = *l
	l.ListMeta.DeepCopyInto(&out.ListMeta)
	out.Items = make([]Greeting, len(l.Items))
	for i := range l.Items {
		out.Items[i] = *l.Items[i].DeepCopyObject().(*Greeting)
	}
	return out
}

// newScheme knows the kinds of clients and the custom one.
func newScheme() (*runtime.Scheme, error) {
	s := runtime.NewScheme()
	s.AddKnownTypes(greetings, &Greeting{}, &GreetingList{})
	metav1.AddToGroupVersion(s, greetings)
	return s, clientgoscheme.AddToScheme(s)
}

// definition declares the kind, with a default and a rule.
func definition() *apiextensionsv1.CustomResourceDefinition {
	number := apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}
	times := number
	times.Default = &apiextensionsv1.JSON{Raw: []byte("2")}
	return &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: "greetings." + greetings.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: greetings.Group, Scope: apiextensionsv1.NamespaceScoped,
			Names: apiextensionsv1.CustomResourceDefinitionNames{Plural: "greetings", Singular: "greeting", Kind: "Greeting", ListKind: "GreetingList"},
			Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{
				Name: greetings.Version, Served: true, Storage: true,
				Subresources: &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}},
				Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: &apiextensionsv1.JSONSchemaProps{
					Type: "object",
					Properties: map[string]apiextensionsv1.JSONSchemaProps{
						"spec": {
							Type: "object", Required: []string{"name"},
							Properties: map[string]apiextensionsv1.JSONSchemaProps{"name": {Type: "string"}, "times": times},
							XValidations: apiextensionsv1.ValidationRules{
								{Rule: "self.name.matches('^[A-Z]') && self.name + '!' != 'Nobody!'", Message: "a name begins with a capital letter"},
							},
						},
						"status": {Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{"said": number}},
					},
				}},
			}},
		},
	}
}

// addControllers adds a controller that keeps a ConfigMap for each Greeting, and one that counts in the
// annotations of each Deployment how many ConfigMaps there are in its namespace.
func addControllers(mgr ctrl.Manager) error {
	c, scheme := mgr.GetClient(), mgr.GetScheme()
	greet := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		g := &Greeting{}
		if err := c.Get(ctx, req.NamespacedName, g); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		m := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: g.Namespace, Name: g.Name}}
		if _, err := controllerutil.CreateOrUpdate(ctx, c, m, func() error {
			m.Data = map[string]string{}
			for i := range g.Spec.Times {
				m.Data[fmt.Sprint("greeting", i)] = "hello, " + g.Spec.Name
			}
			return controllerutil.SetControllerReference(g, m, scheme)
		}); err != nil {
			return reconcile.Result{}, err
		}
		g.Status.Said = g.Spec.Times
		return reconcile.Result{}, c.Status().Update(ctx, g)
	})
	if err := ctrl.NewControllerManagedBy(mgr).For(&Greeting{}).Owns(&corev1.ConfigMap{}).Complete(greet); err != nil {
		return err
	}
	count := reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
		d := &appsv1.Deployment{}
		if err := c.Get(ctx, req.NamespacedName, d); err != nil {
			return reconcile.Result{}, client.IgnoreNotFound(err)
		}
		var all corev1.ConfigMapList
		if err := c.List(ctx, &all, client.InNamespace(d.Namespace)); err != nil {
			return reconcile.Result{}, err
		}
		before := d.DeepCopy()
		d.Annotations = maps.Clone(d.Annotations)
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, "maps", fmt.Sprint(len(all.Items)))
		return reconcile.Result{}, c.Patch(ctx, d, client.StrategicMergeFrom(before))
	})
	return ctrl.NewControllerManagedBy(mgr).For(&appsv1.Deployment{}).Complete(count)
}
