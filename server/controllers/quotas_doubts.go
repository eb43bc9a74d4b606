package controllers

import (
	"maps"
	"time"

	corev1 "k8s.io/api/core/v1"
)

const (
	// doubtful is for how long a quota is to be left alone by admission before it is believed
	// that less is used of something than was recorded.
	doubtful = 500 * time.Millisecond
	// mostDoubt is when that is believed though admission goes on recording.
	mostDoubt = 3 * time.Second
)

// quotaDoubts are, by namespace and name, the quotas of which less was found than is recorded.
// Admission records what a write uses before the object is there: who counts in between would
// take that back, and the quota would allow one object too many.
type quotaDoubts map[string]map[string]doubt

type doubt struct {
	revision int64     // of the quota
	at       time.Time // since when it is at that
	since    time.Time // since when less is found
	held     bool      // what is recorded stays for now
}

// keep says when to count again because less was found of something, and that is in doubt;
// 0: nothing is. As long as it is, the statuses that are to be get what is recorded where less
// was found, for all quotas of the namespace: they are counted together. But none waits longer than
// mostDoubt for others, which somebody may keep in doubt.
func (all quotaDoubts) keep(namespace string, quotas []*corev1.ResourceQuota, revisions []int64, statuses []corev1.ResourceQuotaStatus, now time.Time) (next time.Duration) {
	before, left := all[namespace], map[string]doubt{}
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
		wait := min(d.at.Add(doubtful).Sub(now), d.since.Add(mostDoubt).Sub(now))
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
		if d.held = ok && now.Sub(d.since) < mostDoubt; !d.held {
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

// written forgets the doubts about a quota, unless what was written is what it had recorded.
func (all quotaDoubts) written(namespace, name string) {
	if all[namespace][name].held {
		return
	}
	if delete(all[namespace], name); len(all[namespace]) == 0 {
		delete(all, namespace)
	}
}
