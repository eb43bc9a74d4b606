package structural

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"

	"github.com/rowlock/rowlock/server/release"
)

// Coerce has the effects of decoding into a Go type for an object: it reduces its metadata, and that of embedded
// resources, to the fields of ObjectMeta; converts whole numbers to int64 where the schema has the type integer;
// and removes unknown fields, and nulls that are neither allowed nor have a default. unknown are the paths of the
// removed fields, those of the metadata first. An error names a field of the metadata with the wrong type, or means
// that checking the object against the schema would be too much work. Call it before Default.
func (s *Schema) Coerce(obj map[string]any) (unknown []string, err error) {
	if err := s.precheck.fits(obj); err != nil {
		return nil, err
	}
	return s.coerce(obj, true, false, true)
}

// Settled reports that Coerce removes no field of an object outside of metadata, that Default sets none, and that neither
// refuses it as too much work. It may return false even so.
func (s *Schema) Settled(obj map[string]any) bool {
	return s.broken == nil && !s.embedded && s.precheck.fits(obj) == nil &&
		(s.preserve || s.precheck.isPruned(obj, true)) && s.precheck.isDefaulted(obj)
}

// CoerceMeta is Coerce for the metadata of an object whose kind has no schema.
func CoerceMeta(of release.Version, obj map[string]any) (unknown []string, err error) {
	return coerceMeta(of, obj, true, false)
}

// CoerceMerged is Coerce for the result of an apply: a null that is not allowed stays, and validation refuses
// it.
func (s *Schema) CoerceMerged(obj map[string]any) error {
	if err := s.precheck.fits(obj); err != nil {
		return err
	}
	_, err := s.coerce(obj, false, false, false)
	return err
}

// CoerceStored is Coerce for an object that was stored: fields of the wrong type in its metadata are dropped
// instead of refused. An object that has become too much work by a change of the schema stays as it is, so
// that it can be read and deleted.
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
	// Objects have these fields regardless of the schema.
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

// Default sets absent fields, and those that are null where null is not allowed and the schema has a default.
// It sets nothing if that would exceed the limits of Coerce.
func (s *Schema) Default(obj map[string]any) {
	if s.precheck.fits(obj) == nil && !s.precheck.isDefaulted(obj) {
		defaulting.Default(obj, s.tree)
	}
}
