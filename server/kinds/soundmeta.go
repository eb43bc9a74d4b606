package kinds

import (
	"strings"

	genericvalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	v1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Most metadata has no fault, and the library says so at the price of a path for each field and
// a regular expression for each name. What is here finds metadata sound with neither. It may
// doubt what the library lets pass, never the other way round: whatever is unusual is left
// to the library.

// soundMeta says that the library finds no fault in metadata, the name and the prefix of a
// generated one left aside.
func soundMeta(obj metav1.Object, namespaced bool) bool {
	if ns := obj.GetNamespace(); namespaced && !(len(ns) <= validation.DNS1123LabelMaxLength && soundSubdomain(ns, false) && !strings.Contains(ns, ".")) || !namespaced && ns != "" {
		return false
	}
	return obj.GetGeneration() >= 0 && soundLabels(obj.GetLabels()) && soundAnnotations(obj.GetAnnotations()) &&
		soundOwners(obj.GetOwnerReferences()) && soundFinalizers(obj.GetFinalizers()) && soundManagers(obj.GetManagedFields())
}

// soundChange says that the library finds no fault in what becomes of metadata, whose new state
// soundMeta has looked at.
func soundChange(obj, old metav1.Object) bool {
	if old.GetDeletionTimestamp() != nil || obj.GetDeletionTimestamp() != nil ||
		old.GetDeletionGracePeriodSeconds() != nil || obj.GetDeletionGracePeriodSeconds() != nil {
		return false
	}
	now, then := obj.GetCreationTimestamp(), old.GetCreationTimestamp()
	return obj.GetResourceVersion() != "" && obj.GetGeneration() >= old.GetGeneration() && now.UTC() == then.UTC() &&
		obj.GetName() == old.GetName() && obj.GetNamespace() == old.GetNamespace() && obj.GetUID() == old.GetUID()
}

// soundName says that a rule for names finds no fault in the name and the prefix of one.
func soundName(obj metav1.Object, rule genericvalidation.ValidateNameFunc) bool {
	name, prefix := obj.GetName(), obj.GetGenerateName()
	return name != "" && len(rule(name, false)) == 0 && (prefix == "" || len(rule(prefix, true)) == 0)
}

func soundLabels(labels map[string]string) bool {
	for k, v := range labels {
		if !soundQualified(k, false) || v != "" && !soundWord(v) {
			return false
		}
	}
	return true
}

func soundAnnotations(annotations map[string]string) bool {
	size := 0
	for k, v := range annotations {
		if size += len(k) + len(v); !soundQualified(k, true) {
			return false
		}
	}
	return size <= genericvalidation.TotalAnnotationSizeLimitB
}

func soundOwners(refs []metav1.OwnerReference) bool {
	controllers := 0
	for i := range refs {
		r := &refs[i]
		if r.Controller != nil && *r.Controller {
			controllers++
		}
		if r.Kind == "" || r.Kind == "Event" || r.Name == "" || r.UID == "" || r.APIVersion == "" ||
			strings.HasSuffix(r.APIVersion, "/") || strings.Count(r.APIVersion, "/") > 1 {
			return false
		}
	}
	return controllers < 2
}

func soundFinalizers(names []string) bool {
	for _, name := range names {
		if name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents || !soundQualified(name, false) {
			return false
		}
	}
	return true
}

func soundManagers(entries []metav1.ManagedFieldsEntry) bool {
	for i := range entries {
		e := &entries[i]
		if e.Operation != metav1.ManagedFieldsOperationApply && e.Operation != metav1.ManagedFieldsOperationUpdate ||
			e.FieldsType != "" && e.FieldsType != "FieldsV1" ||
			len(e.Manager) > v1validation.FieldManagerMaxLength || len(e.Subresource) > v1validation.MaxSubresourceNameLength {
			return false
		}
		for k := range len(e.Manager) {
			if c := e.Manager[k]; c < 0x20 || c > 0x7e {
				return false
			}
		}
	}
	return true
}

// soundQualified is for names with or without the domain of their owner. anyCase lets capitals
// into that.
func soundQualified(name string, anyCase bool) bool {
	if domain, rest, ok := strings.Cut(name, "/"); ok {
		if name = rest; !soundSubdomain(domain, anyCase) {
			return false
		}
	}
	return soundWord(name)
}

// soundWord is for the name itself, and for values of labels.
func soundWord(s string) bool {
	if len(s) == 0 || len(s) > validation.LabelValueMaxLength || !letter(s[0]) || !letter(s[len(s)-1]) {
		return false
	}
	for i := range len(s) {
		if c := s[i]; !letter(c) && c != '-' && c != '_' && c != '.' {
			return false
		}
	}
	return true
}

// soundSubdomain is for names in the DNS.
func soundSubdomain(s string, anyCase bool) bool {
	if len(s) == 0 || len(s) > validation.DNS1123SubdomainMaxLength {
		return false
	}
	last := byte('.') // what begins a label
	for i := range len(s) {
		c := s[i]
		switch {
		case letter(c) && (anyCase || c < 'A' || c > 'Z'):
		case c == '-' && last != '.', c == '.' && last != '.' && last != '-':
		default:
			return false
		}
		last = c
	}
	return last != '.' && last != '-'
}

// letter includes digits.
func letter(c byte) bool { return '0' <= c && c <= '9' || 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' }
