package structural

import (
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
)

// Coerce does for an object what decoding into a Go type does for a built-in kind:
// its metadata, and that of resources embedded in it, comes to hold what ObjectMeta
// holds; fields that the schema does not know go; so do nulls that neither may stand
// nor have a default. Unknown are the paths of the fields that went, those of the
// metadata first. An error says what in metadata has the wrong type. Call it before
// Default.
func (s *Schema) Coerce(obj map[string]any) (unknown []string, err error) {
	return s.coerce(obj, true, false)
}

// CoerceStored is Coerce for an object that was stored: what has the wrong type in its
// metadata is dropped instead of refused.
func (s *Schema) CoerceStored(obj map[string]any) error {
	_, err := s.coerce(obj, false, true)
	return err
}

func (s *Schema) coerce(obj map[string]any, track, lenient bool) (unknown []string, err error) {
	meta, hasMeta, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{
		DropMalformedFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	kind, hasKind := obj["kind"]
	version, hasVersion := obj["apiVersion"]
	if !s.preserve {
		unknown = append(unknown, pruning.PruneWithOptions(obj, s.tree, true, schema.UnknownFieldPathOptions{TrackUnknownFieldPaths: track})...)
		defaulting.PruneNonNullableNullsWithoutDefaults(obj, s.tree)
	}
	if s.embedded {
		malformed, paths := objectmeta.CoerceWithOptions(nil, obj, s.tree, false, objectmeta.CoerceOptions{
			DropInvalidFields: lenient, ReturnUnknownFieldPaths: track,
		})
		if malformed != nil { // a *field.Error, which no error may hold as nil
			return nil, malformed
		}
		unknown = append(unknown, paths...)
	}
	if lenient && hasMeta && meta.Generation == 0 {
		meta.Generation = 1
	}
	// A schema may say what it likes of these; objects have them all the same.
	if hasKind {
		obj["kind"] = kind
	}
	if hasVersion {
		obj["apiVersion"] = version
	}
	if hasMeta {
		err = objectmeta.SetObjectMeta(obj, meta)
	}
	return unknown, err
}

// Default fills in what is absent, and what is null where null may not stand and the
// schema has a default.
func (s *Schema) Default(obj map[string]any) {
	if s.defaults {
		defaulting.Default(obj, s.tree)
	}
}
