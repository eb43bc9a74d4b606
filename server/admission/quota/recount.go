package quota

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds/podspec"
)

// Objects reads the objects of one namespace.
type Objects interface {
	// Count is the number of objects of a resource; known is false where it is unknown.
	Count(r schema.GroupResource) (n int, known bool)
	// Each calls visit with the objects of a resource, decoded, until it returns false; known as above.
	Each(r schema.GroupResource, visit func(runtime.Object) bool) (known bool)
}

// Resources returns the resources that names of quotas count.
func Resources(names corev1.ResourceList) []schema.GroupResource {
	found := map[schema.GroupResource]bool{}
	for name := range names {
		for r, counts := range measured {
			if counts(name) {
				found[r] = true
			}
		}
		for r, alias := range aliases {
			if name == alias {
				found[r] = true
			}
		}
		if text, ok := strings.CutPrefix(string(name), "count/"); ok {
			if r := schema.ParseGroupResource(text); !uncounted[r] {
				found[r] = true
			}
		}
	}
	out := slices.Collect(maps.Keys(found))
	sort.Slice(out, func(i, j int) bool {
		return cmp.Or(strings.Compare(out[i].Resource, out[j].Resource), strings.Compare(out[i].Group, out[j].Group)) < 0
	})
	return out
}

// Recount returns the status that each quota of a namespace should have: the limits of its spec, and their
// usage. Usage that cannot be determined stays as it is. now is for pods whose time should have ended.
//
// The cost is proportional to the names of all quotas, and to the objects of which more than their number
// counts, times the quotas that apply to them.
func Recount(quotas []*corev1.ResourceQuota, objects Objects, now time.Time) []corev1.ResourceQuotaStatus {
	m := meters{now: func() time.Time { return now }, whole: true, resized: true} // stored pods have been validated
	all := corev1.ResourceList{}
	out := make([]corev1.ResourceQuotaStatus, len(quotas))
	holders := map[corev1.ResourceName][]int{} // which quotas limit a name
	for i, q := range quotas {
		for name, amount := range q.Spec.Hard {
			all[name] = amount
			holders[name] = append(holders[name], i)
		}
		out[i] = corev1.ResourceQuotaStatus{Hard: q.Spec.Hard.DeepCopy(), Used: corev1.ResourceList{}}
	}
	unknown := map[corev1.ResourceName]bool{}
	for _, r := range Resources(all) {
		measure := m.meter(r)
		if measure == nil {
			continue
		}
		sums := sumsOf(measure, quotas, holders)
		if len(sums) == 0 {
			continue
		}
		if !measure.count(r, objects, sums) {
			for _, s := range sums {
				for _, name := range s.names {
					unknown[name] = true
				}
			}
			continue
		}
		for _, s := range sums {
			for _, name := range s.names {
				podspec.AddUp(out[s.quota].Used, corev1.ResourceList{name: s.used[name]})
			}
		}
	}
	for i, q := range quotas {
		for name := range q.Spec.Hard {
			_, counted := out[i].Used[name]
			before, was := q.Status.Used[name]
			if was && (unknown[name] || !counted) {
				out[i].Used[name] = before
			} else if unknown[name] {
				delete(out[i].Used, name)
			}
		}
	}
	return out
}

// tally is the count of one resource for one quota.
type tally struct {
	quota int // its number
	of    *corev1.ResourceQuota
	names []corev1.ResourceName
	used  corev1.ResourceList
}

// sumsOf begins a tally for each quota that is about a resource.
func sumsOf(m *meter, quotas []*corev1.ResourceQuota, holders map[corev1.ResourceName][]int) (list []*tally) {
	var which []int
	for _, name := range m.names {
		which = append(which, holders[name]...)
	}
	if m.names == nil {
		for name, some := range holders {
			if m.counts(name) {
				which = append(which, some...)
			}
		}
	}
	slices.Sort(which)
	for _, i := range slices.Compact(which) {
		q := quotas[i]
		names := m.counted(q.Spec.Hard)
		if len(names) == 0 {
			continue
		}
		t := &tally{quota: i, of: q, names: names, used: corev1.ResourceList{}}
		for _, name := range names {
			t.used[name] = resource.Quantity{Format: resource.DecimalSI}
		}
		list = append(list, t)
	}
	return list
}

// count fills tallies, and reports whether that could be done.
func (m *meter) count(r schema.GroupResource, objects Objects, list []*tally) bool {
	if m.names != nil {
		n, known := objects.Count(r)
		for _, t := range list {
			if len(t.of.Spec.Scopes) > 0 || t.of.Spec.ScopeSelector != nil {
				continue // such objects are in no scope
			}
			for _, name := range t.names {
				t.used[name] = number(n)
			}
		}
		return known
	}
	return objects.Each(r, func(obj runtime.Object) bool {
		use := m.use(obj)
		for _, t := range list {
			if _, all, err := m.inScopes(t.of, obj); err != nil || !all {
				continue
			}
			for _, name := range t.names {
				if more, ok := use[name]; ok {
					podspec.AddUp(t.used, corev1.ResourceList{name: more})
				}
			}
		}
		return true
	})
}

// Unmeasured reports whether a quota limits countable resources that have no count yet.
func Unmeasured(q *corev1.ResourceQuota) bool {
	if !equal(q.Spec.Hard, q.Status.Hard) {
		return true
	}
	missing := corev1.ResourceList{}
	for name, hard := range q.Status.Hard {
		if _, ok := q.Status.Used[name]; !ok {
			missing[name] = hard
		}
	}
	return len(Resources(missing)) > 0
}

// Same reports whether two statuses are equal.
func Same(a, b *corev1.ResourceQuotaStatus) bool {
	return equal(a.Hard, b.Hard) && equal(a.Used, b.Used) && (a.Hard == nil) == (b.Hard == nil) && (a.Used == nil) == (b.Used == nil)
}
