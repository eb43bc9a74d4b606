package podverbs

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"slices"

	corev1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/status"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/writes"
)

// evict deletes a pod if its budget allows.
func evict(h *verbs.Handler, c *verbs.Call) error {
	eviction, options, err := readEviction(h, c)
	if err != nil {
		return err
	}
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, eviction, func() error {
		if err := matchName(c, "Eviction", eviction); err != nil {
			return err
		}
		return joinDryRuns(eviction, options)
	}); err != nil {
		return err
	}
	e := &evicting{h: h, c: c, options: eviction.DeleteOptions}
	if err := e.run(); err != nil {
		return err
	}
	return succeed(h, c)
}

// readEviction reads the body, in either version.
func readEviction(h *verbs.Handler, c *verbs.Call) (*policyv1.Eviction, *metav1.CreateOptions, error) {
	eviction := &policyv1.Eviction{}
	body, err := h.Body(c)
	if err != nil {
		return nil, nil, err
	}
	c.R.Body = io.NopCloser(bytes.NewReader(body))
	gvk := policyv1.SchemeGroupVersion.WithKind("Eviction")
	if stated, err := h.Answers.Forms.JSON.Kind(body); err == nil && stated.Group == gvk.Group && stated.Version == "v1beta1" {
		gvk.Version = stated.Version
	}
	eviction.SetGroupVersionKind(gvk)
	options, err := post(h, c, eviction)
	if err != nil {
		return nil, nil, err
	}
	return eviction, options, nil
}

// joinDryRuns merges the dryRun of the request's options into that of the eviction's delete options.
func joinDryRuns(eviction *policyv1.Eviction, options *metav1.CreateOptions) error {
	switch o := eviction.DeleteOptions; {
	case o == nil:
		eviction.DeleteOptions = &metav1.DeleteOptions{DryRun: options.DryRun}
	case len(o.DryRun) == 0:
		o.DryRun = options.DryRun
	case len(options.DryRun) > 0 && !slices.Equal(options.DryRun, o.DryRun):
		return plain(fmt.Errorf("Non-matching dry-run options in request and content: %v and %v", options.DryRun, o.DryRun))
	}
	return nil
}

// evicting is an eviction.
type evicting struct {
	h       *verbs.Handler
	c       *verbs.Call
	options *metav1.DeleteOptions // as the client sent them
}

func (e *evicting) dry() bool { return len(e.options.DryRun) > 0 }

// pinned reports whether the client named a version, which must not change then.
func (e *evicting) pinned() bool {
	return e.options.Preconditions != nil && e.options.Preconditions.ResourceVersion != nil
}

// matches reports whether pod has the UID in the preconditions, if they name one.
func (e *evicting) matches(pod *corev1.Pod) bool {
	p := e.options.Preconditions
	return p == nil || p.UID == nil || *p.UID == "" || *p.UID == pod.UID
}

func (e *evicting) run() error {
	for try := 1; ; try++ {
		pod, err := e.pod()
		if err != nil {
			return err
		}
		if !needsBudget(pod) {
			err = e.remove(pod, func(live *corev1.Pod) bool { return !needsBudget(live) })
			if !apierrors.IsConflict(err) || e.pinned() || !e.matches(pod) {
				return err
			}
			// The pod changed, or another one has its name now, and may need a budget.
			if err := contention.Backoff(e.c.Context(), try); err != nil {
				return err
			}
			continue
		}
		return e.withinBudget(pod)
	}
}

// pod finds the pod, after the cache has every write of all servers: they decide whether the pod needs a budget, and which
// budgets there are.
func (e *evicting) pod() (*corev1.Pod, error) {
	obj, err := e.h.Objects.Latest(e.c.Context(), e.c.Permit(), podPlace(e.h, e.c, e.c.Info.Name))
	if err != nil {
		return nil, err
	}
	return obj.(*corev1.Pod), nil
}

// needsBudget reports whether a pod counts for its budget: it does not before it runs, nor after it has
// ended.
func needsBudget(pod *corev1.Pod) bool {
	return !ended(pod) && pod.Status.Phase != corev1.PodPending
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed || pod.DeletionTimestamp != nil
}

// withinBudget evicts the pod if the one budget that covers it allows that.
func (e *evicting) withinBudget(pod *corev1.Pod) error {
	budgets, err := e.budgets(pod)
	if err != nil {
		return err
	}
	switch {
	case len(budgets) > 1:
		return status.Plain("This pod has more than one PodDisruptionBudget, which the eviction subresource does not support.")
	case len(budgets) == 0:
		return e.remove(pod, nil)
	}
	budget := budgets[0]
	if !pods.Ready(pod) && evictsUnhealthy(budget) {
		// Such a pod does not count for its budget, unless it becomes ready before it is deleted.
		err := e.remove(pod, func(live *corev1.Pod) bool { return live.ResourceVersion == pod.ResourceVersion })
		if apierrors.IsConflict(err) && !e.pinned() {
			return notProcessedError(budget.Name)
		}
		return err
	}
	if err := e.draw(budget, pod.Name); err != nil {
		return err
	}
	return e.remove(pod, nil)
}

// remove records in the pod why it ends, and deletes it. still must hold until the pod is deleted; nil: no
// condition.
func (e *evicting) remove(pod *corev1.Pod, still func(*corev1.Pod) bool) error {
	o := e.options.DeepCopy()
	last := pod
	if !e.dry() {
		marked, err := e.h.Writes.Rewrite(e.c.R.Context(), e.c.Write(nil, "", nil), podPlace(e.h, e.c, pod.Name), func(obj kinds.Object) error {
			live := obj.(*corev1.Pod)
			if err := asExpected(live, o.Preconditions); err != nil {
				return err
			}
			if still != nil && !still(live) {
				return changed(live)
			}
			pods.SetCondition(&live.Status, corev1.PodCondition{
				Type: corev1.DisruptionTarget, Status: corev1.ConditionTrue,
				Reason: "EvictionByEvictionAPI", Message: "Eviction API: evicting",
			}, metav1.Now())
			return nil
		})
		if err != nil {
			return err
		}
		last = marked.(*corev1.Pod)
	}
	if still != nil || e.pinned() && !e.dry() {
		if o.Preconditions == nil {
			o.Preconditions = &metav1.Preconditions{}
		}
		o.Preconditions.ResourceVersion = &last.ResourceVersion
	}
	req := e.c.On(podResource(e.h), "", pod.Namespace, pod.Name, e.h.Catalogue.Release().Agent(manager))
	_, err := e.h.Writes.Delete(e.c.R.Context(), req, &writes.Deletion{Name: pod.Name, Options: o, Unadmitted: true})
	return err
}

// changed returns the error for a pod that has changed since its eviction was decided.
func changed(pod *corev1.Pod) error {
	return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, errors.New(status.Modified))
}

// asExpected checks the preconditions of a delete.
func asExpected(pod *corev1.Pod, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	conflict := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "Pod"}, pod.Name, fmt.Errorf(format, args...))
	}
	if p.UID != nil && *p.UID != "" && *p.UID != pod.UID {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). The object might have been deleted and then recreated", *p.UID, pod.UID)
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != "" && *p.ResourceVersion != pod.ResourceVersion {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). The object might have been modified", *p.ResourceVersion, pod.ResourceVersion)
	}
	return nil
}
