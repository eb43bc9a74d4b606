package flowcontrol

import (
	"maps"
	"strconv"

	flowcontrolv1 "k8s.io/api/flowcontrol/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Fixed is an object that the server puts back when it is gone or changed.
type Fixed[T any] struct {
	Object T
	// Mandatory objects cannot be changed. Others stay as they are if their annotation requests it.
	Mandatory bool
}

// FixedLevels returns the priority levels that are there from the start, the same in all releases.
func FixedLevels() []Fixed[*flowcontrolv1.PriorityLevelConfiguration] {
	return fixed(MandatoryLevels(), SuggestedLevels())
}

// FixedSchemas returns the flow schemas of a release that are there from the start.
func FixedSchemas(v release.Version) []Fixed[*flowcontrolv1.FlowSchema] {
	return fixed(MandatorySchemas(), SuggestedSchemas(v))
}

func fixed[T any](mandatory, suggested []T) (list []Fixed[T]) {
	for _, obj := range mandatory {
		list = append(list, Fixed[T]{obj, true})
	}
	for _, obj := range suggested {
		list = append(list, Fixed[T]{obj, false})
	}
	return list
}

// RepairLevel sets a level to its spec in f, and reports whether that is a change. The exempt level may have
// the shares that its cluster wants.
func RepairLevel(l *flowcontrolv1.PriorityLevelConfiguration, f Fixed[*flowcontrolv1.PriorityLevelConfiguration]) bool {
	want := f.Object.Spec.DeepCopy()
	if f.Mandatory && want.Exempt != nil && l.Spec.Exempt != nil {
		want.Exempt = l.Spec.Exempt
	}
	return repair(&l.ObjectMeta, &l.Spec, want, f.Mandatory)
}

// RepairSchema sets a flow schema to its spec in f, and reports whether that is a change.
func RepairSchema(s *flowcontrolv1.FlowSchema, f Fixed[*flowcontrolv1.FlowSchema]) bool {
	return repair(&s.ObjectMeta, &s.Spec, f.Object.Spec.DeepCopy(), f.Mandatory)
}

func repair[S any](m *metav1.ObjectMeta, have, want *S, mandatory bool) (changed bool) {
	same := rules.Same(*have, *want)
	keep := mandatory || kept(m, same)
	if annotated, err := strconv.ParseBool(m.Annotations[AutoUpdate]); err != nil || annotated != keep {
		m.Annotations, changed = maps.Clone(m.Annotations), true
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[AutoUpdate] = strconv.FormatBool(keep)
	}
	if keep && !same {
		*have, changed = *want, true
	}
	return changed
}

// kept reports whether an object is to be kept at its values: its annotation decides; without
// one it is kept if no client has changed it.
func kept(m *metav1.ObjectMeta, same bool) bool {
	if _, annotated := m.Annotations[AutoUpdate]; !annotated {
		return same
	}
	return Claimed(m)
}

// Claimed reports whether an object has the annotation by which the server keeps it at its
// values.
func Claimed(m *metav1.ObjectMeta) bool {
	keep, err := strconv.ParseBool(m.Annotations[AutoUpdate])
	return err == nil && keep
}
