package quotas

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// dirtyFor is the time without a record of admission after which the controller accepts a count below the recorded
	// one.
	dirtyFor = 500 * time.Millisecond
	// longestDirty is the time after which it accepts it even if admission continues to record.
	longestDirty = 3 * time.Second
)

// dirtyQuotas are, by namespace and name, the quotas whose count is lower than the recorded usage. Admission
// records the usage of a write before the object is stored: a count in between would undo that, and the quota
// would admit one object too many. So a quota is dirty until its count is accepted.
type dirtyQuotas map[string]map[string]dirty

type dirty struct {
	revision int64     // of the quota
	at       time.Time // when a count first saw that revision
	since    time.Time // when a count was first lower than the recorded usage
	held     bool      // the status keeps the recorded usage for now
}

// keep returns when to count again because quotas are dirty; 0: none is. As long as one is dirty, the new statuses of all
// quotas of the namespace, which are counted together, keep the recorded usage where the count is lower. But no quota waits
// longer than longestDirty, since clients may keep others dirty.
func (all dirtyQuotas) keep(namespace string, quotas []*corev1.ResourceQuota, revisions []int64, statuses []corev1.ResourceQuotaStatus, now time.Time) (next time.Duration) {
	before, left := all[namespace], map[string]dirty{}
	for i, one := range quotas {
		if !lowered(one.Status.Used, statuses[i].Used) {
			continue
		}
		d, ok := before[one.Name]
		if !ok {
			d.since = now
		}
		if d.revision != revisions[i] {
			d.revision, d.at = revisions[i], now
		}
		d.held = false
		left[one.Name] = d
		wait := min(d.at.Add(dirtyFor).Sub(now), d.since.Add(longestDirty).Sub(now))
		if wait > 0 && (next == 0 || wait < next) {
			next = wait
		}
	}
	if delete(all, namespace); len(left) > 0 {
		all[namespace] = left // until it is written, which may have to be tried again
	}
	if next == 0 {
		return 0
	}
	for i, one := range quotas {
		d, ok := left[one.Name]
		if d.held = ok && now.Sub(d.since) < longestDirty; !d.held {
			continue // nothing is lowered, or that has waited long enough
		}
		left[one.Name] = d
		used := maps.Clone(statuses[i].Used)
		for name, amount := range used {
			if was, ok := one.Status.Used[name]; ok && amount.Cmp(was) < 0 {
				used[name] = was
			}
		}
		statuses[i].Used = used
	}
	return next
}

// written ends the dirty state of a quota, unless the written status is the recorded one.
func (all dirtyQuotas) written(namespace, name string) {
	if all[namespace][name].held {
		return
	}
	if delete(all[namespace], name); len(all[namespace]) == 0 {
		delete(all, namespace)
	}
}

// lowered reports whether less is used of something than was recorded.
func lowered(before, after corev1.ResourceList) bool {
	for name, amount := range after {
		if was, ok := before[name]; ok && amount.Cmp(was) < 0 {
			return true
		}
	}
	return false
}
