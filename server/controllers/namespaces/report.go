package namespaces

import (
	"fmt"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// found is the result of emptying a namespace.
type found struct {
	failures   []error
	resources  []string              // "pods. has 1 resource instances"
	finalizers map[string]int        // how many objects each holds
	unknown    []schema.GroupVersion // versions of other servers whose resources are unknown
	podsLeft   bool                  // Pods go first, and some are there still: nothing else was touched
}

// left notes how many objects of a resource are left, and which finalizers hold them.
func (f *found) left(plural, group string, count int, held map[string]int) {
	if count > 0 {
		f.resources = append(f.resources, fmt.Sprintf("%s.%s has %d resource instances", plural, group, count))
	}
	for name, n := range held {
		f.hold(name, n)
	}
}

func (f *found) hold(finalizer string, n int) {
	if f.finalizers == nil {
		f.finalizers = map[string]int{}
	}
	f.finalizers[finalizer] += n
}

// add adds the result of another server.
func (f *found) add(other *found) {
	f.failures, f.resources, f.unknown = append(f.failures, other.failures...), append(f.resources, other.resources...), append(f.unknown, other.unknown...)
	for name, n := range other.finalizers {
		f.hold(name, n)
	}
}

// conditions state in the namespace's status why it still exists. While Pods are deleted first they do not
// mention the remaining objects, like those of a stock controller.
func (f *found) conditions() []corev1.NamespaceCondition {
	var held []string
	for name, n := range f.finalizers {
		held = append(held, fmt.Sprintf("%s in %d resource instances", name, n))
	}
	slices.Sort(held)
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	list := []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: no, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
		{Type: corev1.NamespaceDeletionGVParsingFailure, Status: no, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
		{Type: corev1.NamespaceDeletionContentFailure, Status: no, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: corev1.NamespaceContentRemaining, Status: no, Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: no, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
	}
	if len(f.unknown) > 0 {
		list[0].Status, list[0].Reason, list[0].Message = yes, "DiscoveryFailed", undiscovered(f.unknown)
	}
	if failed := len(f.failures); failed > 0 {
		list[2].Status, list[2].Reason = yes, "ContentDeletionFailed"
		list[2].Message = fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", failed, joined(f.failures))
	}
	if len(f.resources) > 0 && !f.podsLeft {
		list[3].Status, list[3].Reason = yes, "SomeResourcesRemain"
		list[3].Message = "Some resources are remaining: " + strings.Join(slices.Sorted(slices.Values(f.resources)), ", ")
	}
	if len(held) > 0 && !f.podsLeft {
		list[4].Status, list[4].Reason = yes, "SomeFinalizersRemain"
		list[4].Message = "Some content in the namespace has finalizers remaining: " + strings.Join(held, ", ")
	}
	return list
}

// joined returns the texts of errors, in one order.
func joined(errs []error) string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// merge sets conditions in a status, and reports whether it changed.
func merge(st *corev1.NamespaceStatus, list []corev1.NamespaceCondition, now metav1.Time) (changed bool) {
	for _, c := range list {
		c.LastTransitionTime = now
		i := slices.IndexFunc(st.Conditions, func(have corev1.NamespaceCondition) bool { return have.Type == c.Type })
		if i < 0 {
			st.Conditions = append(st.Conditions, c)
			changed = true
			continue
		}
		have := &st.Conditions[i]
		if have.Status == c.Status && have.Reason == c.Reason && have.Message == c.Message {
			continue
		}
		if have.Status == c.Status {
			c.LastTransitionTime = have.LastTransitionTime
		}
		*have = c
		changed = true
	}
	return changed
}

// undiscovered returns which groups cannot be emptied, as a stock controller does.
func undiscovered(unknown []schema.GroupVersion) string {
	var list []string
	for _, gv := range unknown {
		list = append(list, fmt.Sprintf("%s: stale GroupVersion discovery: %s", gv, gv))
	}
	slices.Sort(list)
	return fmt.Sprintf("Discovery failed for some groups, %d failing: unable to retrieve the complete list of server APIs: %s", len(list), strings.Join(list, ", "))
}
