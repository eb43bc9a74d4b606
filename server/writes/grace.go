package writes

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// deletePlan describes how an object is deleted.
type deletePlan struct {
	mark     bool // obj was changed and is stored first
	wait     bool // it remains after that, for its grace period or its finalizers
	saysGone bool // the answer states that it is gone, though it remains
}

// planDelete decides how obj is deleted, and marks it accordingly. Options have been validated; o is changed.
func (w *Writer) planDelete(ctx context.Context, st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) deletePlan {
	switch {
	case st.Terminate != nil && obj.GetDeletionTimestamp() == nil:
		st.Terminate(obj, w.deletionTime().Time)
		if st.TerminateRecordsPropagation {
			setFinalizers(obj, remainingFinalizers(st, obj, o))
		}
		return deletePlan{mark: true, wait: true}
	case st.Held != nil && st.Held(obj):
		return deletePlan{wait: true}
	}
	graceful, pending := w.grace(ctx, st, obj, o)
	if pending {
		// A longer or missing grace period does not change a delete in progress.
		return deletePlan{wait: true, saysGone: !st.ReturnDeletedObject}
	}
	setFinalizers(obj, remainingFinalizers(st, obj, o))
	held := len(obj.GetFinalizers()) > 0
	switch {
	case graceful:
		return deletePlan{mark: true, wait: held || *o.GracePeriodSeconds > 0}
	case held:
		w.markDeleting(obj)
		return deletePlan{mark: true, wait: true}
	}
	return deletePlan{}
}

// setFinalizers replaces the finalizers of an object if the set differs.
func setFinalizers(obj kinds.Object, finalizers []string) {
	if !sameSet(finalizers, obj.GetFinalizers()) {
		obj.SetFinalizers(finalizers)
	}
}

// grace starts or shortens the grace period of kinds that have one.
func (w *Writer) grace(ctx context.Context, st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) (graceful, pending bool) {
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
		period := *o.GracePeriodSeconds
		end := metav1.Time{Time: at.Add(-time.Duration(*left-period) * time.Second)}
		if now := w.deletionTime(); w.NeverPast && end.Before(&now) {
			end, period = now, min(period, 1) // the component that ends the object still has to do so
		}
		obj.SetDeletionTimestamp(&end)
		obj.SetDeletionGracePeriodSeconds(&period)
		return true, false
	}
	seconds, ok := st.Graceful(ctx, obj, o)
	if !ok {
		return false, false
	}
	o.GracePeriodSeconds = &seconds
	obj.SetDeletionTimestamp(&metav1.Time{Time: w.deletionTime().Add(time.Duration(seconds) * time.Second)})
	obj.SetDeletionGracePeriodSeconds(new(seconds))
	countDeletion(obj)
	return true, false
}

// markDeleting marks an object that waits only for its finalizers.
func (w *Writer) markDeleting(obj kinds.Object) {
	now := w.deletionTime()
	at := obj.GetDeletionTimestamp()
	if at == nil {
		countDeletion(obj)
	}
	if at == nil || at.After(now.Time) {
		obj.SetDeletionTimestamp(&now)
	}
	obj.SetDeletionGracePeriodSeconds(new(int64(0)))
}

// countDeletion raises the generation of kinds whose generation counts deletions.
func countDeletion(obj kinds.Object) {
	if g := obj.GetGeneration(); g > 0 {
		obj.SetGeneration(g + 1)
	}
}

// remainingFinalizers returns the finalizers of an object after the deletion options are applied: the two of the garbage
// collector follow the requested policy, otherwise those already set, otherwise the kind's default.
func remainingFinalizers(st *kinds.Storage, obj kinds.Object, o *metav1.DeleteOptions) []string {
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
	among := rules.In(b)
	return len(a) == len(b) && !slices.ContainsFunc(a, func(x string) bool { return !among.Has(x) })
}
