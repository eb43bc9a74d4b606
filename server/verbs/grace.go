package verbs

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

// deletePlan says how an object is to go.
type deletePlan struct {
	pending bool // a delete is under way already and nothing changes
	mark    bool // obj has been changed and is stored first
	wait    bool // it stays after that, for its grace period or its finalizers
}

// plannedDelete decides how obj goes and marks it accordingly. Options have been
// validated; o is changed.
func (h *Handler) plannedDelete(ctx context.Context, st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) deletePlan {
	graceful, pending := h.grace(ctx, st, obj, o)
	if pending {
		return deletePlan{pending: true}
	}
	finalizers := keepers(st, obj, o)
	changed := !sameSet(finalizers, obj.GetFinalizers())
	if changed {
		obj.SetFinalizers(finalizers)
	}
	held := len(obj.GetFinalizers()) > 0
	switch {
	case graceful:
		return deletePlan{mark: true, wait: held || *o.GracePeriodSeconds > 0}
	case held:
		h.markDeleting(obj)
		return deletePlan{mark: true, wait: true}
	}
	return deletePlan{}
}

// grace starts or shortens a grace period where the kind has one.
func (h *Handler) grace(ctx context.Context, st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) (graceful, pending bool) {
	if g := o.GracePeriodSeconds; g != nil && *g < 0 {
		o.GracePeriodSeconds = new(int64(1))
	}
	if g := obj.GetDeletionGracePeriodSeconds(); g != nil && *g < 0 {
		obj.SetDeletionGracePeriodSeconds(new(int64(1)))
	}
	if st.Graceful == nil {
		return false, false
	}
	if at := obj.GetDeletionTimestamp(); at != nil {
		left := obj.GetDeletionGracePeriodSeconds()
		if left == nil || *left == 0 {
			return false, false
		}
		if o.GracePeriodSeconds == nil || *o.GracePeriodSeconds >= *left {
			return false, true
		}
		sooner := *left - *o.GracePeriodSeconds
		obj.SetDeletionTimestamp(&metav1.Time{Time: at.Add(-time.Duration(sooner) * time.Second)})
		obj.SetDeletionGracePeriodSeconds(new(*o.GracePeriodSeconds))
		return true, false
	}
	seconds, ok := st.Graceful(ctx, obj, o)
	if !ok {
		return false, false
	}
	o.GracePeriodSeconds = &seconds
	obj.SetDeletionTimestamp(&metav1.Time{Time: h.now().UTC().Truncate(time.Second).Add(time.Duration(seconds) * time.Second)})
	obj.SetDeletionGracePeriodSeconds(new(seconds))
	countDeletion(obj)
	return true, false
}

// markDeleting is for objects that only wait for their finalizers.
func (h *Handler) markDeleting(obj kinds.Object) {
	now := metav1.Time{Time: h.now().UTC().Truncate(time.Second)}
	at := obj.GetDeletionTimestamp()
	if at == nil {
		countDeletion(obj)
	}
	if at == nil || at.After(now.Time) {
		obj.SetDeletionTimestamp(&now)
	}
	obj.SetDeletionGracePeriodSeconds(new(int64(0)))
}

// countDeletion raises the generation of kinds that count it.
func countDeletion(obj kinds.Object) {
	if g := obj.GetGeneration(); g > 0 {
		obj.SetGeneration(g + 1)
	}
}

// keepers are the finalizers of an object that is deleted with options: the two
// of the garbage collector follow the policy asked for, else what is set already,
// else the kind's default.
func keepers(st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) []string {
	have := obj.GetFinalizers()
	var kept []string
	for _, f := range have {
		if f != metav1.FinalizerOrphanDependents && f != metav1.FinalizerDeleteDependents {
			kept = append(kept, f)
		}
	}
	if st.ForbidFinalizeOrphans {
		return kept
	}
	switch {
	case o.OrphanDependents != nil:
		if *o.OrphanDependents {
			kept = append(kept, metav1.FinalizerOrphanDependents)
		}
	case o.PropagationPolicy != nil:
		switch *o.PropagationPolicy {
		case metav1.DeletePropagationOrphan:
			kept = append(kept, metav1.FinalizerOrphanDependents)
		case metav1.DeletePropagationForeground:
			kept = append(kept, metav1.FinalizerDeleteDependents)
		}
	default:
		i := slices.IndexFunc(have, func(f string) bool {
			return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
		})
		if i >= 0 {
			kept = append(kept, have[i])
		} else if st.OrphanByDefault {
			kept = append(kept, metav1.FinalizerOrphanDependents)
		}
	}
	return kept
}

func sameSet(a, b []string) bool {
	if len(a) != len(b) {
		return false
	}
	for _, x := range a {
		if !slices.Contains(b, x) {
			return false
		}
	}
	return true
}
