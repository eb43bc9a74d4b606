// Package convert converts manifests between API versions, including versions that are no longer served.
//
//	convert.go   from any version to any, through a served one
//	legacy.go    former versions, and the served version that each converts to
//	apps.go, networking.go, autoscaling.go, policies.go, definitions.go
//	             the differences between them and the served versions
//	custom.go    custom resources, by their definitions
//
// The result has everything that both versions can express; a default of the source version that differs in the
// target version is written out. The package reads nothing but its input, which comes from the user of a command and
// not from clients of a server.
package convert

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kjson "sigs.k8s.io/json"

	"github.com/rowlock/rowlock/server/kinds"
)

// Object is a manifest as JSON has it.
type Object = map[string]any

// Converter converts manifests of built-in kinds, and with Definitions custom ones.
type Converter struct {
	catalogue *kinds.Catalogue
	// Definitions finds how objects of a custom kind are converted; nil, or a nil answer:
	// it is not known.
	Definitions func(ctx context.Context, group, kind string) (*Definition, error)
	// Warn is called for each unknown field of a manifest. May be nil.
	Warn func(text string)
}

// UnknownError is the error for an unknown kind or version.
type UnknownError struct{ Kind schema.GroupVersionKind }

func (e *UnknownError) Error() string {
	return fmt.Sprintf("no kind %q is registered for version %q", e.Kind.Kind, e.Kind.GroupVersion())
}

// New makes a Converter of all resources that a server can serve.
func New(resources []*kinds.Resource) *Converter {
	all := make([]*kinds.Resource, 0, len(resources))
	for _, r := range resources {
		known := *r
		known.Off = false
		all = append(all, &known)
	}
	return &Converter{catalogue: kinds.NewCatalogue(all)}
}

// Convert converts an object to version to. If the group of to does not have the kind, or if to is empty, the result has
// the preferred version of a server.
func (c *Converter) Convert(ctx context.Context, obj Object, to schema.GroupVersion) (Object, error) {
	from, err := kindOf(obj)
	if err != nil {
		return nil, err
	}
	r, obj, err := c.current(obj, from)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return c.custom(ctx, obj, from, to)
	}
	typed, err := c.read(obj, r)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", from.Kind, nameOf(obj), err)
	}
	if past := legacyOf(to.WithKind(from.Kind)); past != nil && past.to.GroupKind() == r.GVK().GroupKind() {
		out, err := c.write(typed, r, c.catalogue.LookupKind(past.to))
		if err != nil {
			return nil, err
		}
		return change(out, past.from, past.lower)
	}
	target := c.catalogue.LookupKind(to.WithKind(from.Kind))
	if target == nil || target.Storage != r.Storage {
		target = c.preferred(r)
	}
	return c.write(typed, r, target)
}

// current converts the object to a served version, and returns its resource; nil for a kind that is not built in.
func (c *Converter) current(obj Object, kind schema.GroupVersionKind) (*kinds.Resource, Object, error) {
	if past := legacyOf(kind); past != nil {
		out, err := past.up(obj)
		if err != nil {
			return nil, nil, fmt.Errorf("%s %s: %w", kind.Kind, nameOf(obj), err)
		}
		obj, kind = out, past.to
	}
	if r := c.catalogue.LookupKind(kind); r != nil && r.Storage != nil {
		return r, obj, nil
	}
	if c.catalogue.BuiltIn(kind.Group) || c.catalogue.Retired(kind) {
		return nil, nil, &UnknownError{kind}
	}
	return nil, obj, nil
}

// Raise converts an object of a former version to the version that replaces it, and does not change the given
// one. ok is false, and the object the same, if its version is not a former one.
func Raise(obj Object) (raised Object, ok bool, err error) {
	kind, err := kindOf(obj)
	if err != nil {
		return nil, false, err
	}
	past := legacyOf(kind)
	if past == nil {
		return obj, false, nil
	}
	raised, err = past.up(obj)
	return raised, true, err
}

// read makes the working form of an object, with the defaults of its version.
func (c *Converter) read(obj Object, r *kinds.Resource) (kinds.Object, error) {
	data, err := json.Marshal(obj)
	if err != nil {
		return nil, err
	}
	typed := r.New()
	unknown, err := kjson.UnmarshalStrict(data, typed)
	if err != nil {
		return nil, err
	}
	for _, u := range unknown {
		if c.Warn != nil {
			c.Warn(fmt.Sprintf("%s %s: %v", r.Kind, nameOf(obj), u))
		}
	}
	working, err := r.ToWorking(typed)
	if err != nil {
		return nil, err
	}
	r.SetDefaults(working)
	return working, nil
}

// write makes the manifest of a working form in a version of its kind.
func (c *Converter) write(working kinds.Object, from, target *kinds.Resource) (Object, error) {
	if target == nil || target.Storage != from.Storage {
		return nil, fmt.Errorf("%s has no version to go by", from.GVK())
	}
	out, err := target.ToServed(working)
	if err != nil {
		return nil, err
	}
	out.GetObjectKind().SetGroupVersionKind(target.GVK())
	data, err := json.Marshal(out)
	if err != nil {
		return nil, err
	}
	var obj Object
	err = json.Unmarshal(data, &obj)
	return obj, err
}

// preferred returns the version of a resource that a server with its defaults prefers.
func (c *Converter) preferred(r *kinds.Resource) *kinds.Resource {
	var best *kinds.Resource
	for _, other := range c.catalogue.All() {
		if other.Storage == r.Storage && other.Kind == r.Kind && (best == nil || kinds.General(other.Version) && !kinds.General(best.Version)) {
			best = other
		}
	}
	return best
}

func kindOf(obj Object) (schema.GroupVersionKind, error) {
	u := unstructured.Unstructured{Object: obj}
	kind := u.GroupVersionKind()
	switch {
	case kind.Kind == "":
		return kind, errors.New("Object 'Kind' is missing")
	case kind.Version == "":
		return kind, errors.New("Object 'apiVersion' is missing")
	}
	return kind, nil
}

func nameOf(obj Object) string {
	u := unstructured.Unstructured{Object: obj}
	if u.GetNamespace() != "" {
		return u.GetNamespace() + "/" + u.GetName()
	}
	return u.GetName()
}
