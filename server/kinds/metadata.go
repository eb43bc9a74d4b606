package kinds

import (
	"context"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/operation"
	"k8s.io/apimachinery/pkg/api/validate"
	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/api/validation/path"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// MetaRules define how often the rules of a kind check metadata. A stock server looks once itself
// and lets each kind look again, and clients are shown every finding of either.
type MetaRules struct {
	Updates      int  // how often the rules for updates check changes
	Wholes       int  // how often the rules for updates check everything
	AnyFinalizer bool // finalizers need no qualified name
	LongName     bool // the name is a subdomain, and the generateName that it may come from is not checked
	ValidateLast bool // a new object's metadata is validated only if the rules of its kind find no error
	Own          bool // a new object's metadata is checked by the rules of its kind alone
}

// Sets of rules of more than one kind. UsualMeta is the default.
var (
	UsualMeta = MetaRules{Updates: 1}
	WholeMeta = MetaRules{Updates: 1, Wholes: 1}
	AsNewMeta = MetaRules{Wholes: 1}
)

// WholeMeta132 is WholeMeta in release 1.32 and UsualMeta after it, as some kinds have it.
func WholeMeta132(on Feature) *MetaRules {
	if on.Has(release.KindRules133) {
		return &UsualMeta
	}
	return &WholeMeta
}

// metaRules returns the rules for the metadata of the resource itself, or of a subresource that writes it.
func (r *Resource) metaRules(sub *Subresource) MetaRules {
	s := &r.Storage.Strategy
	if sub != nil && sub.Update != nil {
		s = sub.Update
	}
	if s.Meta == nil {
		return UsualMeta
	}
	return *s.Meta
}

var metadataPath = field.NewPath("metadata")

// ValidateNewMeta checks the metadata of a new object. sub is the subresource that
// writes it, or nil.
func (r *Resource) ValidateNewMeta(sub *Subresource, obj Object) field.ErrorList {
	own := r.metaRules(sub)
	if own.Own {
		return nil
	}
	errs := r.wholeFaults(own, rules.Metadata(obj))
	if !own.AnyFinalizer {
		errs = append(errs, finalizerNames(obj)...)
	}
	return errs
}

// ValidatesMetaLast reports whether the metadata of a new object is validated after everything else.
func (r *Resource) ValidatesMetaLast(sub *Subresource) bool { return r.metaRules(sub).ValidateLast }

// MetaFaults returns the errors of a kind's metadata rules for an object in a namespace, for kinds that check it
// themselves.
func MetaFaults(obj metav1.Object, name genericvalidation.ValidateNameFunc) field.ErrorList {
	return append(genericvalidation.ValidateObjectMetaAccessor(rules.Metadata(obj), true, name, metadataPath), finalizerNames(obj)...)
}

// MetaUpdateFaults returns the same for an update.
func MetaUpdateFaults(obj, old metav1.Object) field.ErrorList {
	return append(genericvalidation.ValidateObjectMetaAccessorUpdate(rules.Metadata(obj), old, metadataPath), finalizerNames(obj)...)
}

// ValidateMeta checks the metadata of an update.
func (r *Resource) ValidateMeta(sub *Subresource, obj, old Object) field.ErrorList {
	own, meta := r.metaRules(sub), rules.Metadata(obj)
	errs := genericvalidation.ValidateObjectMetaAccessor(meta, r.Namespaced, segmentName, metadataPath)
	update := genericvalidation.ValidateObjectMetaAccessorUpdate(meta, old, metadataPath)
	errs = append(errs, update...)
	var names field.ErrorList
	if !own.AnyFinalizer {
		names = finalizerNames(meta)
	}
	for range own.Wholes {
		errs = append(append(errs, r.wholeFaults(own, meta)...), names...)
	}
	for range own.Updates {
		errs = append(append(errs, update...), names...)
	}
	return errs
}

// wholeFaults returns the errors of an object's metadata, without those of finalizers.
func (r *Resource) wholeFaults(own MetaRules, meta metav1.Object) field.ErrorList {
	if !own.LongName {
		return genericvalidation.ValidateObjectMetaAccessor(meta, r.Namespaced, r.nameRule(), metadataPath)
	}
	return genericvalidation.ValidateObjectMetaAccessorWithOpts(meta, r.Namespaced, func(p *field.Path, name string) field.ErrorList {
		return validate.LongName(context.Background(), operation.Operation{}, p, &name, nil)
	}, metadataPath)
}

func segmentName(name string, prefix bool) []string {
	if prefix {
		return path.IsValidPathSegmentPrefix(name)
	}
	return path.IsValidPathSegmentName(name)
}

// nameRule returns the check of names of the kind.
func (r *Resource) nameRule() genericvalidation.ValidateNameFunc {
	if f := r.Storage.ValidateName; f != nil {
		return f
	}
	return genericvalidation.NameIsDNSSubdomain
}

// finalizerNames checks that finalizers are qualified, or among the few that need not
// be.
func finalizerNames(obj metav1.Object) field.ErrorList {
	return rules.Each(obj.GetFinalizers(), metadataPath.Child("finalizers"), func(f string, at *field.Path) field.ErrorList {
		switch f {
		case string(corev1.FinalizerKubernetes), metav1.FinalizerOrphanDependents, metav1.FinalizerDeleteDependents:
			return nil
		}
		return rules.InvalidIf(nil, !strings.Contains(f, "/"), at, f, "name is neither a standard finalizer name nor is it fully qualified")
	})
}
