package namespaces

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// leftovers count what is still in a namespace.
type leftovers struct {
	resources  []string // "pods. has 1 resource instances"
	finalizers []string // "x/y in 1 resource instances"
}

func (l *leftovers) none() bool { return len(l.resources) == 0 }

// hold notes how many objects each finalizer holds.
func (l *leftovers) hold(held map[string]int) {
	for f, count := range held {
		l.finalizers = append(l.finalizers, fmt.Sprintf("%s in %d resource instances", f, count))
	}
	slices.Sort(l.finalizers)
}

// add adds what is left elsewhere.
func (l *leftovers) add(other *leftovers) {
	l.resources, l.finalizers = append(l.resources, other.resources...), append(l.finalizers, other.finalizers...)
	slices.Sort(l.resources)
	slices.Sort(l.finalizers)
}

// report tells in the namespace's status why it is still there. While Pods go first nothing
// is said of what is left, as nothing is by a stock controller.
func (n *Controller) report(ctx context.Context, ns *corev1.Namespace, found *emptying, unknown []schema.GroupVersion) error {
	l := found.left
	if found.podsLeft {
		l = &leftovers{}
	}
	yes, no := corev1.ConditionTrue, corev1.ConditionFalse
	list := []corev1.NamespaceCondition{
		{Type: corev1.NamespaceDeletionDiscoveryFailure, Status: no, Reason: "ResourcesDiscovered", Message: "All resources successfully discovered"},
		{Type: corev1.NamespaceDeletionGVParsingFailure, Status: no, Reason: "ParsedGroupVersions", Message: "All legacy kube types successfully parsed"},
		{Type: corev1.NamespaceDeletionContentFailure, Status: no, Reason: "ContentDeleted", Message: "All content successfully deleted, may be waiting on finalization"},
		{Type: corev1.NamespaceContentRemaining, Status: no, Reason: "ContentRemoved", Message: "All content successfully removed"},
		{Type: corev1.NamespaceFinalizersRemaining, Status: no, Reason: "ContentHasNoFinalizers", Message: "All content-preserving finalizers finished"},
	}
	if len(unknown) > 0 {
		list[0].Status, list[0].Reason, list[0].Message = yes, "DiscoveryFailed", undiscovered(unknown)
	}
	if failed := len(found.failures); failed > 0 {
		list[2].Status, list[2].Reason = yes, "ContentDeletionFailed"
		list[2].Message = fmt.Sprintf("Failed to delete all resource types, %d remaining: %s", failed, joined(found.failures))
	}
	if len(l.resources) > 0 {
		list[3].Status, list[3].Reason = yes, "SomeResourcesRemain"
		list[3].Message = "Some resources are remaining: " + strings.Join(l.resources, ", ")
	}
	if len(l.finalizers) > 0 {
		list[4].Status, list[4].Reason = yes, "SomeFinalizersRemain"
		list[4].Message = "Some content in the namespace has finalizers remaining: " + strings.Join(l.finalizers, ", ")
	}
	if !merge(&ns.Status, list, metav1.Time{Time: n.Now().UTC().Truncate(time.Second)}) {
		return nil
	}
	path := "/api/v1/namespaces/" + ns.Name + "/status"
	return reconcile.Current(n.API.Call(ctx, agent, http.MethodPut, path, reconcile.JSON, ns, nil))
}

// joined are the texts of errors, in one order.
func joined(errs []error) string {
	var list []string
	for _, err := range errs {
		list = append(list, err.Error())
	}
	slices.Sort(list)
	return strings.Join(list, ", ")
}

// merge puts conditions into a status and says whether anything changed.
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
