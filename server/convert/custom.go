package convert

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Definition holds the versions of a definition of custom resources.
type Definition struct {
	Versions []string // all, the preferred one first
	// Webhook converts objects to a version; nil: versions differ by name alone.
	Webhook func(ctx context.Context, objs []Object, to schema.GroupVersion) ([]Object, error)
}

// custom converts an object of a kind that is not built in.
func (c *Converter) custom(ctx context.Context, obj Object, from schema.GroupVersionKind, to schema.GroupVersion) (Object, error) {
	if c.Definitions == nil {
		return nil, &UnknownError{from}
	}
	d, err := c.Definitions(ctx, from.Group, from.Kind)
	if err != nil {
		return nil, fmt.Errorf("the definition of %s: %w", from.GroupKind(), err)
	}
	if d == nil || !slices.Contains(d.Versions, from.Version) {
		return nil, &UnknownError{from}
	}
	target := schema.GroupVersion{Group: from.Group, Version: d.Versions[0]}
	if to.Group == from.Group {
		if !slices.Contains(d.Versions, to.Version) {
			return nil, &UnknownError{to.WithKind(from.Kind)}
		}
		target = to
	}
	if target.Version != from.Version && d.Webhook != nil {
		out, err := d.Webhook(ctx, []Object{obj}, target)
		if err != nil {
			return nil, fmt.Errorf("%s %s: %w", from.Kind, nameOf(obj), err)
		}
		return out[0], nil
	}
	return change(obj, target.WithKind(from.Kind), nil)
}
