package custom

import (
	"context"
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

func (v *Version) hasStatus() bool {
	return v.spec.Subresources != nil && v.spec.Subresources.Status != nil
}

// metaRules are the rules for the metadata of all custom resources: finalizers cause warnings, not
// errors. Their own rules check the rest, in the order of a stock server.
var metaRules = kinds.MetaRules{AnyFinalizer: true, Own: true}

var metadataPath = field.NewPath("metadata")

// strategy returns the rules for objects of the version.
func (v *Version) strategy() kinds.Strategy {
	s := kinds.Strategy{
		Meta:    &metaRules,
		Default: func(obj kinds.Object) { v.Schema().Default(tree(obj)) },
		// A dropped status may have a default, which every reader of the stored object would see.
		Complete: func(obj kinds.Object) { v.Schema().Default(tree(obj)) },
		PrepareForCreate: func(_ context.Context, obj kinds.Object) {
			if v.hasStatus() {
				delete(tree(obj), "status")
			}
			obj.SetGeneration(1)
		},
		PrepareForUpdate: func(_ context.Context, obj, old kinds.Object) {
			if v.hasStatus() {
				keep(tree(obj), tree(old), "status")
			}
			countGeneration(obj, old)
		},
		Validate: func(ctx context.Context, obj kinds.Object) field.ErrorList {
			if errs := v.validateType(obj); len(errs) > 0 {
				return v.Schema().ValidateOther(ctx, errs, tree(obj), nil)
			}
			errs := apivalidation.ValidateObjectMetaAccessor(rules.Metadata(obj), v.of.namespaced(), apivalidation.NameIsDNSSubdomain, metadataPath)
			return v.Schema().Validate(ctx, errs, tree(obj), nil)
		},
		ValidateUpdate: func(ctx context.Context, obj, old kinds.Object) field.ErrorList {
			if errs := v.validateType(obj); len(errs) > 0 {
				return v.Schema().ValidateOther(ctx, errs, tree(obj), tree(old))
			}
			errs := apivalidation.ValidateObjectMetaAccessorUpdate(rules.Metadata(obj), old, metadataPath)
			return v.Schema().Validate(ctx, errs, tree(obj), tree(old))
		},
		Warnings: func(_ context.Context, obj, old kinds.Object) []string { return finalizerWarnings(obj, old) },
	}
	if v.hasStatus() {
		s.ResetFields = []string{"status"}
	}
	return s
}

// statusStrategy returns the rules for their status.
func (v *Version) statusStrategy() *kinds.Strategy {
	return &kinds.Strategy{
		Meta:    &metaRules,
		Default: func(obj kinds.Object) { v.Schema().Default(tree(obj)) },
		PrepareForUpdate: func(_ context.Context, obj, old kinds.Object) {
			owners, version := obj.GetManagedFields(), obj.GetResourceVersion()
			now, before := tree(obj), tree(old)
			for key := range now {
				if key != "status" {
					delete(now, key)
				}
			}
			for key, value := range before {
				if key != "status" {
					now[key] = runtime.DeepCopyJSONValue(value)
				}
			}
			obj.SetManagedFields(owners)
			obj.SetResourceVersion(version)
		},
		ValidateUpdate: func(ctx context.Context, obj, old kinds.Object) field.ErrorList {
			errs := apivalidation.ValidateObjectMetaAccessorUpdate(rules.Metadata(obj), old, metadataPath)
			return v.Schema().ValidateStatus(ctx, errs, tree(obj), tree(old))
		},
		ResetFields: []string{"spec"},
	}
}

// keep sets a member of obj to that of old.
func keep(obj, old map[string]any, key string) {
	if value, ok := old[key]; ok {
		obj[key] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(obj, key)
	}
}

// countGeneration counts changes of anything but metadata.
func countGeneration(obj, old kinds.Object) {
	a, b := tree(obj), tree(old)
	differs := func(from, to map[string]any) bool {
		for key, value := range from {
			if key == "metadata" {
				continue
			}
			other, ok := to[key]
			if !ok || !apiequality.Semantic.DeepEqual(value, other) {
				return true
			}
		}
		return false
	}
	if differs(a, b) || differs(b, a) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}
}

// validateType checks the kind of an object, because bodies of any kind get here.
func (v *Version) validateType(obj kinds.Object) (errs field.ErrorList) {
	u := obj.(*unstructured.Unstructured)
	if kind := u.GetKind(); kind != v.gvk.Kind {
		errs = append(errs, field.Invalid(field.NewPath("kind"), kind, "must be "+v.gvk.Kind))
	}
	if got, want := u.GetAPIVersion(), v.gvk.GroupVersion().String(); got != want {
		errs = append(errs, field.Invalid(field.NewPath("apiVersion"), got, "must be "+want))
	}
	return errs
}

// finalizerWarnings advise against names of new finalizers that others may use too.
func finalizerWarnings(obj, old kinds.Object) (out []string) {
	added := slices.Clone(obj.GetFinalizers())
	slices.Sort(added)
	var had []string
	if old != nil {
		had = old.GetFinalizers()
	}
	before := rules.In(had)
	for _, name := range slices.Compact(added) {
		if before.Has(name) {
			continue
		}
		for _, fault := range validation.IsQualifiedName(name) {
			out = append(out, fmt.Sprintf("metadata.finalizers: %q: %s", name, fault))
		}
		standard := name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || name == string(corev1.FinalizerKubernetes)
		if !standard && !strings.Contains(name, "/") {
			lacks := ""
			if strings.Contains(name, ".") { // a domain there is
				lacks = " including a path (/)"
			}
			out = append(out, fmt.Sprintf("metadata.finalizers: %q: prefer a domain-qualified finalizer name%s to avoid accidental conflicts with other finalizer writers", name, lacks))
		}
	}
	return out
}
