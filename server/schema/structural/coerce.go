package structural

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/rowlock/rowlock/server/release"
)

// Coerce does for an object what decoding into a Go type does for a built-in kind:
// its metadata, and that of resources embedded in it, comes to hold what ObjectMeta
// holds; whole numbers are int64 where the schema says integer, however they were
// written; fields that the schema does not know go; so do nulls that neither may stand
// nor have a default. Unknown are the paths of the fields that went, those of the
// metadata first. An error says what in metadata has the wrong type, or that it would be
// too much work to hold the object against the schema. Call it before Default.
func (s *Schema) Coerce(obj map[string]any) (unknown []string, err error) {
	if err := s.precheck.fits(obj); err != nil {
		return nil, err
	}
	return s.coerce(obj, true, false, true)
}

// CoerceMeta does with the metadata of an object whose kind has no schema what Coerce does.
func CoerceMeta(of release.Version, obj map[string]any) (unknown []string, err error) {
	return coerceMeta(of, obj, true, false)
}

// CoerceMerged is Coerce for what an apply resulted in: a null that may not stand stays,
// and validation refuses it.
func (s *Schema) CoerceMerged(obj map[string]any) error {
	if err := s.precheck.fits(obj); err != nil {
		return err
	}
	_, err := s.coerce(obj, false, false, false)
	return err
}

// CoerceStored is Coerce for an object that was stored: what has the wrong type in its
// metadata is dropped instead of refused. One that was fine, and has become too much work
// by a change of the schema, stays as it is, so that it can be read and deleted.
func (s *Schema) CoerceStored(obj map[string]any) error {
	if s.precheck.fits(obj) != nil {
		return nil
	}
	_, err := s.coerce(obj, false, true, true)
	return err
}

func (s *Schema) coerce(obj map[string]any, track, lenient, dropNulls bool) (unknown []string, err error) {
	if s.broken != nil {
		return nil, s.broken
	}
	if unknown, err = coerceMeta(s.release, obj, track, lenient); err != nil {
		return nil, err
	}
	// A schema may say what it likes of these; objects have them all the same.
	for _, name := range []string{"kind", "apiVersion", "metadata"} {
		if v, ok := obj[name]; ok {
			delete(obj, name)
			defer func() { obj[name] = v }()
		}
	}
	s.precheck.convertIntegers(obj)
	if !s.preserve && (s.embedded || !s.precheck.isPruned(obj, true)) {
		unknown = append(unknown, pruning.PruneWithOptions(obj, s.tree, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
		if dropNulls {
			defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.tree)
		}
	}
	if !s.embedded {
		return unknown, nil
	}
	malformed, paths := objectmeta.CoerceWithOptions(nil, obj, s.tree, false, objectmeta.CoerceOptions{
		DropInvalidFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if malformed != nil { // a *field.Error, which no error may hold as nil
		return nil, malformed
	}
	return append(unknown, paths...), nil
}

// Default sets absent fields, and those that are null where null is not allowed and the
// schema has a default; nothing, where that would be more than Coerce lets in.
func (s *Schema) Default(obj map[string]any) {
	if s.precheck.fits(obj) == nil && !s.precheck.isDefaulted(obj) {
		defaulting.Default(obj, s.tree)
	}
}
