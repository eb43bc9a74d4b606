package verbs

import (
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
)

// coercing is a codec that leaves in objects of a custom resource what its schema
// knows; the rest counts among the problems.
type coercing struct {
	codecs.Codec
	r *kinds.Resource
}

// coerced is how bodies of objects of r are read.
func coerced(from codecs.Codec, r *kinds.Resource) codecs.Codec {
	if r.HasGoType() {
		return from
	}
	return coercing{from, r}
}

// Decode implements codecs.Codec.
func (c coercing) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	problems, err := c.Codec.Decode(data, obj, s)
	u, ok := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u.GroupVersionKind().GroupKind() != c.r.GVK().GroupKind() {
		return problems, err
	}
	var unknown []string
	if u.GroupVersionKind() == c.r.GVK() {
		unknown, err = c.r.Coerce(u)
	} else {
		unknown = dropAll(u.Object)
	}
	if err != nil || s == codecs.Ignore {
		return problems, err
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	return problems, nil
}

// dropAll leaves in an object only what each has whatever its version, and returns the
// names of the rest.
func dropAll(obj map[string]any) (dropped []string) {
	for _, name := range slices.Sorted(maps.Keys(obj)) {
		switch name {
		case "apiVersion", "kind", "metadata":
		default:
			dropped = append(dropped, name)
			delete(obj, name)
		}
	}
	return dropped
}
