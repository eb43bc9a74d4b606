package verbs

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
)

// clean says that an item's bytes are an object of r's version.
func clean(r *kinds.Resource, item *cache.Item) bool {
	if r.Custom {
		return r.Schema.Clean(item.Revision)
	}
	return r.FromStorage == nil
}

// cleanPage says that the bytes of all items of a page are objects of the view's version.
func (v *view) cleanPage(p *page) bool {
	for _, it := range p.items {
		if !clean(v.r, it) {
			return false
		}
	}
	return true
}

// coercing is a codec that leaves in objects of a custom resource what its schema
// knows; the rest counts among the problems.
type coercing struct {
	codecs.Codec
	r *kinds.Resource
}

// coerced is how bodies of objects of r are read.
func coerced(from codecs.Codec, r *kinds.Resource) codecs.Codec {
	if !r.Custom {
		return from
	}
	return coercing{from, r}
}

// Decode implements codecs.Codec.
func (c coercing) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	problems, err := c.Codec.Decode(data, obj, s)
	u, ok := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u.GroupVersionKind() != c.r.GVK() {
		return problems, err
	}
	unknown, err := c.r.Schema.Coerce(u)
	if err != nil || s == codecs.Ignore {
		return problems, err
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	return problems, nil
}

// asIs is the schema of objects that are made in the version they are shown in.
type asIs struct{}

func (asIs) Coerce(kinds.Object) ([]string, error) { return nil, nil }
func (asIs) Clean(int64) bool                      { return true }
func (asIs) FromStore(_ context.Context, objs ...kinds.Object) ([]kinds.Object, error) {
	return objs, nil
}
func (asIs) ToStore(_ context.Context, obj kinds.Object) (kinds.Object, error) { return obj, nil }
