package verbs

import (
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/kinds"
)

// coercing is a codec that drops unknown fields from objects of a custom resource, and reports them.
type coercing struct {
	codecs.Codec
	r *kinds.Resource
}

// coerced returns the codec for bodies of objects of r.
func coerced(from codecs.Codec, r *kinds.Resource) codecs.Codec {
	if r.HasGoType() {
		return from
	}
	return coercing{from, r}
}

// Settle implements the interface of package apply for merge patches.
func (c coercing) Settle(obj runtime.Object) bool {
	u, ok := obj.(*unstructured.Unstructured)
	if !ok || !c.r.Settled(u) {
		return false
	}
	unknown, err := c.r.Coerce(u)
	return err == nil && len(unknown) == 0
}

// Decode implements codecs.Codec.
func (c coercing) Decode(data []byte, obj runtime.Object, s codecs.Strictness) ([]string, error) {
	problems, err := c.Codec.Decode(data, obj, s)
	u, ok := obj.(*unstructured.Unstructured)
	if err != nil || !ok || u.GetKind() == "" {
		return problems, err
	}
	unknown, err := c.r.Coerce(u)
	if err != nil || s == codecs.Ignore {
		return problems, err
	}
	for _, path := range unknown {
		problems = append(problems, fmt.Sprintf("unknown field %q", path))
	}
	return problems, nil
}
