package structural

import (
	"context"
	"fmt"
	"maps"
	"strings"
	"time"

	apischema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// validateMeta validates the metadata in a value: of embedded objects and, if root, of the value.
func validateMeta(ctx context.Context, of release.Version, p *field.Path, v any, s *apischema.Structural, root bool) field.ErrorList {
	m := metaCheck{ctx: ctx}
	if obj, ok := v.(map[string]any); ok && root && (s == nil || !s.XEmbeddedResource) {
		m.resource(p, obj)
	}
	m.visit(p, v, s)
	if !of.Has(release.ShortRequired) {
		for _, err := range m.errs {
			if err.Type == field.ErrorTypeRequired && err.Detail == "" && (strings.HasSuffix(err.Field, "apiVersion") || strings.HasSuffix(err.Field, "kind")) {
				err.Detail = "must not be empty"
			}
		}
	}
	return m.errs
}

// metaCheck validates embedded objects until there are as many errors as an answer contains: the library, which it calls for each of them,
// makes two for an object of three bytes.
type metaCheck struct {
	ctx  context.Context
	errs field.ErrorList
}

func (m *metaCheck) visit(p *field.Path, v any, s *apischema.Structural) {
	if s == nil {
		return
	}
	switch v := v.(type) {
	case map[string]any:
		if s.XEmbeddedResource {
			m.resource(p, v)
		}
		for name, part := range v {
			if len(m.errs) > rules.MaxErrors {
				return
			}
			if property, ok := s.Properties[name]; ok {
				m.visit(p.Child(name), part, &property)
			} else if s.AdditionalProperties != nil {
				m.visit(p.Key(name), part, s.AdditionalProperties.Structural)
			}
		}
	case []any:
		for i, item := range rules.Until(&m.errs, v) {
			m.visit(p.Index(i), item, s.Items)
		}
	}
}

// resource validates an object alone. Newer releases of the library take a context: resource supports both signatures.
func (m *metaCheck) resource(p *field.Path, obj map[string]any) {
	alone := &apischema.Structural{Extensions: apischema.Extensions{XEmbeddedResource: true}}
	obj = withFewFaults(obj)
	switch validate := any(objectmeta.Validate).(type) {
	case func(*field.Path, any, *apischema.Structural, bool) field.ErrorList:
		m.errs = append(m.errs, validate(p, obj, alone, false)...)
	case func(context.Context, *field.Path, any, *apischema.Structural, bool) field.ErrorList:
		m.errs = append(m.errs, validate(m.ctx, p, obj, alone, false)...)
	default:
		m.errs = append(m.errs, field.InternalError(p, fmt.Errorf("this release of apiextensions-apiserver cannot be used: objectmeta.Validate is a %T", validate)))
	}
}

// withFewFaults returns an object whose metadata has only some of many faulty parts.
func withFewFaults(obj map[string]any) map[string]any {
	if n := rules.MaxErrors / 4; size(obj["metadata"], n) < n {
		return obj
	}
	meta, _, err := objectmeta.GetObjectMeta(obj, false)
	if err != nil {
		return obj // one fault
	}
	few := rules.Metadata(meta)
	meta.Labels, meta.Annotations = few.GetLabels(), few.GetAnnotations()
	meta.OwnerReferences, meta.Finalizers = few.GetOwnerReferences(), few.GetFinalizers()
	faults := 0
	for i := range meta.ManagedFields {
		faults += len(metavalidation.ValidateManagedFields(meta.ManagedFields[i:i+1], nil))
		if faults > rules.MaxErrors {
			meta.ManagedFields = meta.ManagedFields[:i+1]
			break
		}
	}
	shorter := maps.Clone(obj)
	if err := objectmeta.SetObjectMeta(shorter, meta); err != nil {
		return obj
	}
	return shorter
}

// coerceMeta reduces the metadata of an object to the fields of ObjectMeta; without lenient it fails for
// fields of the wrong type.
func coerceMeta(of release.Version, obj map[string]any, track, lenient bool) (unknown []string, err error) {
	before, has := obj["metadata"]
	if !has {
		return nil, nil
	}
	if m, ok := before.(map[string]any); ok && canonicalMeta(m) {
		if _, ok := m["generation"]; !ok && lenient {
			m["generation"] = int64(1)
		}
		nullTime(of, obj)
		return nil, nil
	}
	meta, _, unknown, err := objectmeta.GetObjectMetaWithOptions(obj, objectmeta.ObjectMetaOptions{
		DropMalformedFields: lenient, ReturnUnknownFieldPaths: track,
	})
	if err != nil {
		return nil, err
	}
	if lenient && meta.Generation == 0 {
		meta.Generation = 1
	}
	if err := objectmeta.SetObjectMeta(obj, meta); err != nil {
		return unknown, err
	}
	nullTime(of, obj)
	return unknown, nil
}

// nullTime sets an absent creationTimestamp to null in releases that write empty fields as null.
func nullTime(of release.Version, obj map[string]any) {
	if of.Has(release.EmptyLeftOut) {
		return
	}
	if m, ok := obj["metadata"].(map[string]any); ok {
		if _, has := m["creationTimestamp"]; !has {
			m["creationTimestamp"] = nil
		}
	}
}

// The kinds of fields that metadata has.
const (
	metaString = 1 + iota
	metaNumber
	metaFlag
	metaTime
	metaStrings // by name
	metaList    // of strings
	metaOwners
	metaManaged
	metaFields
)

var (
	metaKnown = map[string]int{
		"name": metaString, "generateName": metaString, "namespace": metaString, "selfLink": metaString, "uid": metaString,
		"resourceVersion": metaString, "generation": metaNumber, "creationTimestamp": metaTime, "deletionTimestamp": metaTime,
		"deletionGracePeriodSeconds": metaNumber, "labels": metaStrings, "annotations": metaStrings, "ownerReferences": metaOwners,
		"finalizers": metaList, "managedFields": metaManaged,
	}
	ownerKnown = map[string]int{
		"apiVersion": metaString, "kind": metaString, "name": metaString, "uid": metaString, "controller": metaFlag, "blockOwnerDeletion": metaFlag,
	}
	managedKnown = map[string]int{
		"manager": metaString, "operation": metaString, "apiVersion": metaString, "time": metaTime, "fieldsType": metaString,
		"fieldsV1": metaFields, "subresource": metaString,
	}
)

// canonicalMeta reports whether an ObjectMeta read from m would be written as m, apart from fields that are
// always written. It may return false even so.
func canonicalMeta(m map[string]any) bool { return canonicalFields(m, metaKnown) }

func canonicalFields(m map[string]any, known map[string]int) bool {
	for name, v := range m {
		if !canonicalField(known[name], v) {
			return false
		}
	}
	return true
}

func canonicalField(kind int, v any) bool {
	switch kind {
	case metaString:
		s, ok := v.(string)
		return ok && s != ""
	case metaNumber:
		n, ok := v.(int64)
		return ok && n != 0
	case metaFlag:
		_, ok := v.(bool)
		return ok
	case metaTime:
		return canonicalTime(v)
	case metaStrings:
		m, ok := v.(map[string]any)
		for _, s := range m {
			if _, isString := s.(string); !isString {
				return false
			}
		}
		return ok && len(m) > 0
	case metaList:
		list, ok := v.([]any)
		for _, s := range list {
			if _, isString := s.(string); !isString {
				return false
			}
		}
		return ok && len(list) > 0
	case metaOwners:
		return canonicalList(v, ownerKnown, "apiVersion", "kind", "name", "uid")
	case metaManaged:
		return canonicalList(v, managedKnown)
	case metaFields:
		m, ok := v.(map[string]any)
		return ok && canonicalTree(m)
	}
	return false
}

// canonicalList checks a list of objects, which all have certain fields.
func canonicalList(v any, known map[string]int, always ...string) bool {
	list, ok := v.([]any)
	if !ok || len(list) == 0 {
		return false
	}
	for _, item := range list {
		m, ok := item.(map[string]any)
		if !ok || !canonicalFields(m, known) {
			return false
		}
		for _, name := range always {
			if _, ok := m[name]; !ok {
				return false
			}
		}
	}
	return true
}

// canonicalTime takes the form in which times are written, and no other.
func canonicalTime(v any) bool {
	s, ok := v.(string)
	if !ok || len(s) != len("2006-01-02T15:04:05Z") || s[len(s)-1] != 'Z' {
		return false
	}
	t, err := time.Parse(time.RFC3339, s)
	return err == nil && !t.IsZero()
}

// canonicalTree checks the fields of a manager, which are nothing but objects.
func canonicalTree(m map[string]any) bool {
	for _, v := range m {
		below, ok := v.(map[string]any)
		if !ok || !canonicalTree(below) {
			return false
		}
	}
	return true
}
