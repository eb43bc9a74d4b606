package podverbs

import (
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/server/release"
)

const (
	// manager owns the fields of a budget that an eviction writes.
	manager = "kube-apiserver"
	// maxDisrupted bounds the evictions that the disruption controller has not confirmed yet.
	maxDisrupted = 2000
)

// evictsUnhealthy reports whether a budget allows the eviction of pods that are not ready.
func evictsUnhealthy(b *policyv1.PodDisruptionBudget) bool {
	if p := b.Spec.UnhealthyPodEvictionPolicy; p != nil && *p == policyv1.AlwaysAllow {
		return true
	}
	return b.Status.CurrentHealthy >= b.Status.DesiredHealthy && b.Status.DesiredHealthy > 0
}

func (e *evicting) budgetResource() *kinds.Resource {
	return e.h.Catalogue.Lookup("policy", "v1", "poddisruptionbudgets")
}

// budgets returns the budgets whose selector matches the pod, at most two: no pod with more than one is evicted. An empty
// selector matches every pod of the namespace; a nil one matches none.
func (e *evicting) budgets(pod *corev1.Pod) ([]*policyv1.PodDisruptionBudget, error) {
	var found []*policyv1.PodDisruptionBudget
	all, err := e.h.Objects.Collection(e.c.Permit(), objects.Place{Resource: e.budgetResource(), Namespace: pod.Namespace})
	if err != nil {
		return nil, err
	}
	all.Select(nil, cache.Position{}, func(item *cache.Item) bool {
		if err = e.c.R.Context().Err(); err != nil {
			return false
		}
		var selector labels.Selector
		if selector, err = e.selectorOf(item); err != nil || !selector.Matches(labels.Set(pod.Labels)) {
			return err == nil
		}
		b, problem := e.budget(item)
		found, err = append(found, b), problem
		return err == nil && len(found) < 2
	})
	return found, err
}

func (e *evicting) budget(item *cache.Item) (*policyv1.PodDisruptionBudget, error) {
	b := &policyv1.PodDisruptionBudget{}
	_, err := e.h.Answers.Forms.JSON.Decode(item.JSON(), b, codecs.Ignore)
	return b, err
}

// parsedSelector is the key of the parsed selector in a budget's item: each revision is parsed once.
type parsedSelector struct{}

// selectorOf returns the selector of a budget. An invalid one, which admission refuses, matches nothing.
func (e *evicting) selectorOf(item *cache.Item) (labels.Selector, error) {
	kept, err := item.Form(cache.FormKey{Form: cache.FormOther, For: parsedSelector{}}, func(item *cache.Item) (any, error) {
		b, err := e.budget(item)
		if err != nil {
			return nil, err
		}
		selector, problem := metav1.LabelSelectorAsSelector(b.Spec.Selector)
		if problem != nil {
			selector = labels.Nothing()
		}
		return selector, nil
	})
	if err != nil {
		return nil, err
	}
	return kept.(labels.Selector), nil
}

// draw counts the eviction in the budget as it is at that moment.
func (e *evicting) draw(b *policyv1.PodDisruptionBudget, podName string) error {
	if e.dry() {
		return drawFrom(e.h.Catalogue.Release(), b, podName, time.Now())
	}
	req := e.c.On(e.budgetResource(), "status", b.Namespace, b.Name, e.h.Catalogue.Release().Agent(manager))
	return e.h.Writes.Edit(e.c.R.Context(), req, func(obj kinds.Object) error {
		return drawFrom(e.h.Catalogue.Release(), obj.(*policyv1.PodDisruptionBudget), podName, time.Now())
	})
}

func drawFrom(v release.Version, b *policyv1.PodDisruptionBudget, podName string, now time.Time) error {
	forbid := func(why string) error {
		return apierrors.NewForbidden(schema.GroupResource{Group: "policy", Resource: "poddisruptionbudget"}, b.Name, fmt.Errorf("%s", why))
	}
	switch s := &b.Status; {
	case s.ObservedGeneration < b.Generation:
		return notProcessedError(b.Name)
	case s.DisruptionsAllowed < 0:
		return forbid("pdb disruptions allowed is negative")
	case len(s.DisruptedPods) > maxDisrupted:
		return forbid("DisruptedPods map too big - too many evictions not confirmed by PDB controller")
	case s.DisruptionsAllowed == 0:
		return tooMany(0, exhausted(v, b))
	}
	b.Status.DisruptionsAllowed--
	if b.Status.DisruptionsAllowed == 0 {
		meta.SetStatusCondition(&b.Status.Conditions, metav1.Condition{
			Type: policyv1.DisruptionAllowedCondition, Status: metav1.ConditionFalse,
			Reason: policyv1.InsufficientPodsReason, ObservedGeneration: b.Status.ObservedGeneration,
			LastTransitionTime: metav1.NewTime(now),
		})
	}
	if b.Status.DisruptedPods == nil {
		b.Status.DisruptedPods = make(map[string]metav1.Time)
	}
	b.Status.DisruptedPods[podName] = metav1.NewTime(now)
	return nil
}

// exhausted returns the reason why a budget allows no disruption.
func exhausted(v release.Version, b *policyv1.PodDisruptionBudget) string {
	s := &b.Status
	counts := fmt.Sprintf("The disruption budget %s needs %d healthy pods and has %d currently", b.Name, s.DesiredHealthy, s.CurrentHealthy)
	if !v.Has(release.BudgetReasons) {
		return counts
	}
	not := fmt.Sprintf("The disruption budget %s does not allow evicting pods currently", b.Name)
	why := meta.FindStatusCondition(s.Conditions, policyv1.DisruptionAllowedCondition)
	if why != nil && (why.Status != metav1.ConditionFalse || why.Message == "") {
		why = nil
	}
	switch {
	case why != nil && why.Reason == policyv1.SyncFailedReason: // the counts are not to be trusted then
		return not + " because it failed sync: " + why.Message
	case s.CurrentHealthy <= s.DesiredHealthy:
		return counts
	case why != nil:
		return fmt.Sprintf("%s (%s): %s", not, why.Reason, why.Message)
	}
	return not
}

// notProcessedError returns the error for a budget whose pods have not been counted yet: the client should retry.
func notProcessedError(budget string) error {
	return tooMany(10, fmt.Sprintf("The disruption budget %s is still being processed by the server.", budget))
}

func tooMany(retry int, cause string) error {
	err := apierrors.NewTooManyRequests("Cannot evict pod as it would violate the pod's disruption budget.", retry)
	err.ErrStatus.Code = http.StatusTooManyRequests
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{Type: policyv1.DisruptionBudgetCause, Message: cause})
	return err
}
