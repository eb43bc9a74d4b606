package quota

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission"
)

// charge adds the usage of a write to the quotas that apply to it. It does not change the given quotas.
func (p *Plugin) charge(quotas []*corev1.ResourceQuota, k *queuedCheck, covered bool) ([]*corev1.ResourceQuota, error) {
	m, obj := k.meter, k.a.Object
	var (
		mine   []int
		counts = map[corev1.ResourceName]bool{}                     // the resources that those quotas limit
		scopes = map[corev1.ResourceQuotaScope]bool{}               // in which they, and others, do
		need   = limitedOf(p.limited, k.a.Resource.GroupResource()) // of a covering quota
	)
	for i, q := range quotas {
		in, all, err := m.inScopes(q, obj)
		if err != nil {
			return nil, fmt.Errorf("error matching scopes of quota %s, err: %w", q.Name, err)
		}
		for _, s := range in {
			scopes[s.ScopeName] = true
		}
		names := m.counted(q.Status.Hard)
		if !all || len(names) == 0 {
			continue
		}
		if m.requires != nil {
			if err := m.requires(names, obj); err != nil {
				return nil, refuse(k.a, "failed quota: %s: %w", q.Name, err)
			}
		}
		if slices.ContainsFunc(names, func(n corev1.ResourceName) bool { _, ok := q.Status.Used[n]; return !ok }) {
			return nil, refuse(k.a, "status unknown for quota: %s, resources: %s", q.Name, joined(names))
		}
		mine = append(mine, i)
		for _, n := range names {
			counts[n] = true
		}
	}
	deltas, err := p.deltas(k, quotas, mine)
	if err != nil || len(deltas) == 0 {
		return quotas, err
	}
	if !covered {
		if err := need.check(k.a, m, counts, scopes, p.limited); err != nil {
			return nil, err
		}
	}
	if len(mine) == 0 {
		return quotas, nil
	}
	out := slices.Clone(quotas)
	for _, i := range mine {
		if delta := deltas[i]; len(delta) > 0 {
			if out[i], err = add(k.a, quotas[i], delta); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

// noQuota is the key of deltas for a write that no quota counts.
const noQuota = -1

// deltas returns the additional usage of a write in each of its quotas. Quotas without additional usage are
// omitted.
func (p *Plugin) deltas(k *queuedCheck, quotas []*corev1.ResourceQuota, mine []int) (map[int]corev1.ResourceList, error) {
	use := k.meter.use(k.a.Object)
	var negative []corev1.ResourceName
	for name, q := range use {
		if q.Sign() < 0 {
			negative = append(negative, name)
		}
	}
	if len(negative) > 0 {
		return nil, refuse(k.a, "quota usage is negative for resource(s): %s", joined(negative))
	}
	use = beyond(use, nil)
	more := use
	update := k.a.Operation == admission.Update && k.a.Old != nil
	if update {
		more = beyond(use, k.meter.use(k.a.Old))
	}
	out := map[int]corev1.ResourceList{}
	for _, i := range mine {
		out[i] = more
		if update && p.meters.moves {
			if _, before, err := k.meter.inScopes(quotas[i], k.a.Old); err != nil {
				return nil, fmt.Errorf("error matching scopes of quota %s, err: %w", quotas[i].Name, err)
			} else if !before {
				out[i] = use
			}
		}
	}
	if len(mine) == 0 {
		out[noQuota] = more
	}
	maps.DeleteFunc(out, func(_ int, l corev1.ResourceList) bool { return len(l) == 0 })
	return out, nil
}

// beyond returns the usage that a change adds.
func beyond(use, before corev1.ResourceList) corev1.ResourceList {
	out := corev1.ResourceList{}
	for name, q := range use {
		if was, ok := before[name]; ok {
			q = q.DeepCopy()
			q.Sub(was)
		}
		if q.Sign() > 0 {
			out[name] = q
		}
	}
	return out
}

// add returns a quota with more use, if it allows that.
func add(a *admission.Attributes, q *corev1.ResourceQuota, delta corev1.ResourceList) (*corev1.ResourceQuota, error) {
	asked, exceeded := corev1.ResourceList{}, []corev1.ResourceName(nil)
	out := q.DeepCopy()
	for name, more := range delta {
		hard, ok := q.Status.Hard[name]
		if !ok {
			continue
		}
		asked[name] = more
		sum := q.Status.Used[name].DeepCopy()
		sum.Add(more)
		if sum.Cmp(hard) > 0 {
			exceeded = append(exceeded, name)
		}
		if out.Status.Used == nil {
			out.Status.Used = corev1.ResourceList{}
		}
		out.Status.Used[name] = sum
	}
	if len(exceeded) > 0 && a.Subresource != "status" { // a status reports existing usage
		return nil, refuse(a, "exceeded quota: %s, requested: %s, used: %s, limited: %s", q.Name,
			amounts(asked, exceeded), amounts(q.Status.Used, exceeded), amounts(q.Status.Hard, exceeded))
	}
	return out, nil
}

// amounts prints the named amounts of a list, sorted by name.
func amounts(list corev1.ResourceList, names []corev1.ResourceName) string {
	slices.Sort(names)
	var parts []string
	for _, name := range names {
		if q, ok := list[name]; ok {
			parts = append(parts, string(name)+"="+q.String())
		}
	}
	return strings.Join(parts, ",")
}

func equal(a, b corev1.ResourceList) bool {
	for name, q := range a {
		other, ok := b[name]
		if !ok || q.Cmp(other) != 0 {
			return false
		}
	}
	return len(a) == len(b)
}
