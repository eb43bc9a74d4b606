package pods_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/equality"

	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/kinds"
)

// class is the only runtime class.
type class struct {
	namespace
	tolerations []corev1.Toleration
}

func (c class) Get(context.Context, string, string, string) (kinds.Object, error) {
	return &nodev1.RuntimeClass{Scheduling: &nodev1.Scheduling{Tolerations: c.tolerations}}, nil
}

// covers reports, as a stock server does, whether one toleration tolerates everything that another
// one does.
func covers(wide, t *corev1.Toleration) bool {
	switch {
	case equality.Semantic.DeepEqual(wide, t):
		return true
	case t.Key != wide.Key && (wide.Key != "" || wide.Operator != corev1.TolerationOpExists):
		return false
	case t.Effect != wide.Effect && wide.Effect != "":
		return false
	}
	if wide.Effect == corev1.TaintEffectNoExecute && wide.TolerationSeconds != nil &&
		(t.TolerationSeconds == nil || *t.TolerationSeconds > *wide.TolerationSeconds) {
		return false
	}
	switch wide.Operator {
	case corev1.TolerationOpEqual, "":
		return t.Operator == corev1.TolerationOpEqual && t.Value == wide.Value
	case corev1.TolerationOpExists:
		return true
	}
	return false
}

// pairwise merges two lists by comparing each toleration with all others.
func pairwise(all []corev1.Toleration) []corev1.Toleration {
	var merged []corev1.Toleration
	for i := range all {
		by := func(o corev1.Toleration) bool { return covers(&o, &all[i]) }
		more := func(o corev1.Toleration) bool { return by(o) && !equality.Semantic.DeepEqual(o, all[i]) }
		if !slices.ContainsFunc(merged, by) && !slices.ContainsFunc(all[i+1:], more) {
			merged = append(merged, all[i])
		}
	}
	return merged
}

func some[T any](r *rand.Rand, of ...T) T { return of[r.IntN(len(of))] }

func tolerations(r *rand.Rand, n int) []corev1.Toleration {
	list := make([]corev1.Toleration, n)
	for i := range list {
		list[i] = corev1.Toleration{
			Key: some(r, "", "a", "b"), Value: some(r, "", "1"), Operator: some[corev1.TolerationOperator](r, "", "Equal", "Exists", "Odd"),
			Effect: some[corev1.TaintEffect](r, "", "NoExecute", "NoSchedule"), TolerationSeconds: some(r, nil, nil, new(int64(-1)), new(int64(5)), new(int64(9))),
		}
	}
	return list
}

// TestTolerationsAreMergedAsPairwise compares the merge, whose cost is linear in the lists,
// with a merge that compares all pairs.
func TestTolerationsAreMergedAsPairwise(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 4_000 {
		first, second := tolerations(r, r.IntN(6)), tolerations(r, r.IntN(6))
		p := pod("a")
		p.Spec.Tolerations, p.Spec.RuntimeClassName = slices.Clone(first), new("c")
		if err := admit(t, pods.RuntimeClass{Objects: class{tolerations: second}}, p, nil); err != nil {
			t.Fatal(err)
		}
		if d := cmp.Diff(pairwise(slices.Concat(first, second)), p.Spec.Tolerations); d != "" {
			t.Fatalf("%v and %v: %s", first, second, d)
		}
		allowed := slices.Concat(second, tolerations(r, 1))
		p.Spec.Tolerations = first
		want := !slices.ContainsFunc(first, func(t corev1.Toleration) bool {
			return !slices.ContainsFunc(allowed, func(o corev1.Toleration) bool { return covers(&o, &t) })
		})
		err := admit(t, pods.TolerationLimits{Objects: namespace{}, Allowed: allowed}, p, nil)
		if (err == nil) != want {
			t.Fatalf("%v within %v: %v", first, allowed, err)
		}
	}
}
