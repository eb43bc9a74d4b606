package embed

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"strings"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Kind is a kind with the schema of a Go type.
type Kind struct {
	Group, Version string
	// Object is a value of the type, or a pointer to one: a struct with metav1.TypeMeta and
	// metav1.ObjectMeta. A field Status makes the subresource of that name. Fields without omitempty that
	// cannot be nil are required. For patterns, defaults and the like, use a definition.
	Object any
	// Name is the name of the kind; default that of the type. Plural is that of the resource; default the
	// lower-case name with an s.
	Name, Plural string
	ShortNames   []string
	Cluster      bool // objects are in no namespace
	Columns      []apiextensionsv1.CustomResourceColumnDefinition
}

// Definition returns the CustomResourceDefinition of a Kind.
func (k Kind) Definition() (*apiextensionsv1.CustomResourceDefinition, error) {
	t := reflect.TypeOf(k.Object)
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t.Kind() != reflect.Struct {
		return nil, fmt.Errorf("kind %q: its Object is no struct but %v", k.Name, t)
	}
	k.Name = cmp.Or(k.Name, t.Name())
	k.Plural = cmp.Or(k.Plural, strings.ToLower(k.Name)+"s")
	if k.Group == "" || k.Version == "" {
		return nil, fmt.Errorf("kind %q: Group and Version are needed", k.Name)
	}
	root, err := schemaOf(t, nil)
	if err != nil {
		return nil, fmt.Errorf("kind %q: %w", k.Name, err)
	}
	// The server has its own definitions of these; it uses only their types.
	root.Properties["apiVersion"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	root.Properties["kind"] = apiextensionsv1.JSONSchemaProps{Type: "string"}
	root.Properties["metadata"] = apiextensionsv1.JSONSchemaProps{Type: "object"}
	version := apiextensionsv1.CustomResourceDefinitionVersion{
		Name: k.Version, Served: true, Storage: true, Schema: &apiextensionsv1.CustomResourceValidation{OpenAPIV3Schema: root}, AdditionalPrinterColumns: k.Columns,
	}
	var required []string
	for _, name := range root.Required {
		if name != "metadata" && name != "status" {
			required = append(required, name)
		}
	}
	root.Required = required
	if _, has := root.Properties["status"]; has {
		version.Subresources = &apiextensionsv1.CustomResourceSubresources{Status: &apiextensionsv1.CustomResourceSubresourceStatus{}}
	}
	scope := apiextensionsv1.NamespaceScoped
	if k.Cluster {
		scope = apiextensionsv1.ClusterScoped
	}
	return &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: k.Plural + "." + k.Group},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{
			Group: k.Group, Scope: scope, Versions: []apiextensionsv1.CustomResourceDefinitionVersion{version},
			Names: apiextensionsv1.CustomResourceDefinitionNames{
				Plural: k.Plural, Singular: strings.ToLower(k.Name), Kind: k.Name, ListKind: k.Name + "List", ShortNames: k.ShortNames,
			},
		},
	}, nil
}

// definitions returns the definitions of the options and of their kinds.
func (o *Options) definitions() ([]*apiextensionsv1.CustomResourceDefinition, error) {
	list := o.Definitions
	for _, k := range o.Kinds {
		d, err := k.Definition()
		if err != nil {
			return nil, fmt.Errorf("Kinds: %w", err)
		}
		list = append(list[:len(list):len(list)], d)
	}
	return list, nil
}

const (
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	agent           = "rowlock-embed"
)

// define writes the program's definitions and waits until they are served.
func (c *ControlPlane) define(ctx context.Context) error {
	list, err := c.options.definitions()
	if err != nil {
		return err
	}
	return c.Define(ctx, list...)
}

// Define writes definitions, over others of their names, and waits until they are served.
func (c *ControlPlane) Define(ctx context.Context, list ...*apiextensionsv1.CustomResourceDefinition) error {
	for _, d := range list {
		if err := c.write(ctx, d); err != nil {
			return fmt.Errorf("definition %s: %w", d.Name, err)
		}
	}
	for _, d := range list {
		if err := c.established(ctx, d.Name); err != nil {
			return fmt.Errorf("definition %s: %w", d.Name, err)
		}
	}
	return nil
}

// write creates a definition, or updates the spec of the existing one.
func (c *ControlPlane) write(ctx context.Context, d *apiextensionsv1.CustomResourceDefinition) error {
	want := &apiextensionsv1.CustomResourceDefinition{
		TypeMeta:   metav1.TypeMeta{APIVersion: "apiextensions.k8s.io/v1", Kind: "CustomResourceDefinition"},
		ObjectMeta: metav1.ObjectMeta{Name: d.Name, Labels: d.Labels, Annotations: d.Annotations}, Spec: d.Spec,
	}
	err := c.Server.Call(ctx, agent, http.MethodPost, definitionsPath, "application/json", want, nil)
	for apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) {
		have := &apiextensionsv1.CustomResourceDefinition{}
		if err = c.Server.Call(ctx, agent, http.MethodGet, definitionsPath+"/"+d.Name, "", nil, have); err != nil {
			return err
		}
		have.Spec = d.Spec
		err = c.Server.Call(ctx, agent, http.MethodPut, definitionsPath+"/"+d.Name, "application/json", have, nil)
	}
	return err
}

// established waits until a definition is served.
func (c *ControlPlane) established(ctx context.Context, name string) error {
	for wait := 100 * time.Microsecond; ; wait = min(2*wait, 20*time.Millisecond) {
		d := &apiextensionsv1.CustomResourceDefinition{}
		if err := c.Server.Call(ctx, agent, http.MethodGet, definitionsPath+"/"+name, "", nil, d); err != nil {
			return err
		}
		for _, is := range d.Status.Conditions {
			switch {
			case is.Type == apiextensionsv1.Established && is.Status == apiextensionsv1.ConditionTrue:
				return nil
			case is.Type == apiextensionsv1.NamesAccepted && is.Status == apiextensionsv1.ConditionFalse:
				return errors.New(is.Message)
			}
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
