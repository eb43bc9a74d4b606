package pods

import (
	"math"

	corev1 "k8s.io/api/core/v1"
)

// covering finds tolerations that tolerate all that another one does, among many: clients size
// the lists of pods, and of runtime classes and namespaces, so no list is searched for
// each item of another.
type covering struct {
	same map[toleration]bool // all that were added
	// wide holds, for each set of tolerated taints, the two tolerations with the longest time: those that
	// tolerate the same differ only in their seconds.
	wide map[place][2]*waiting
}

// toleration is one with its seconds in place of a pointer to them.
type toleration struct {
	key, value string
	operator   corev1.TolerationOperator
	effect     corev1.TaintEffect
	timed      bool
	seconds    int64
}

func plain(t *corev1.Toleration) toleration {
	p := toleration{key: t.Key, value: t.Value, operator: t.Operator, effect: t.Effect}
	if t.TolerationSeconds != nil {
		p.timed, p.seconds = true, *t.TolerationSeconds
	}
	return p
}

// longest returns for how long a toleration holds. Without an effect its seconds count for nothing.
func (t *toleration) longest() (seconds int64, bounded bool) {
	if t.effect != corev1.TaintEffectNoExecute || !t.timed {
		return math.MaxInt64, false
	}
	return t.seconds, true
}

// place is a toleration without its seconds.
type place struct {
	key    string
	effect corev1.TaintEffect
	exists bool
	value  string // where it must be equal
}

// waiting is a toleration of a place.
type waiting struct {
	toleration
	seconds int64 // the most that it covers
	bounded bool  // it does not cover one without a limit
}

func (w *waiting) longer(than *waiting) bool {
	if w.bounded != than.bounded {
		return !w.bounded
	}
	return w.seconds > than.seconds
}

func newCovering(list ...corev1.Toleration) *covering {
	c := &covering{same: make(map[toleration]bool, len(list)), wide: make(map[place][2]*waiting, len(list))}
	for i := range list {
		c.add(&list[i])
	}
	return c
}

func (c *covering) add(t *corev1.Toleration) {
	p := plain(t)
	if c.same[p] {
		return
	}
	c.same[p] = true
	at := place{key: p.key, effect: p.effect}
	switch p.operator {
	case corev1.TolerationOpExists:
		at.exists = true
	case corev1.TolerationOpEqual, "":
		at.value = p.value
	default:
		return // it covers only equal tolerations
	}
	w := &waiting{toleration: p}
	w.seconds, w.bounded = p.longest()
	switch best := c.wide[at]; {
	case best[0] == nil || w.longer(best[0]):
		c.wide[at] = [2]*waiting{w, best[0]}
	case best[1] == nil || w.longer(best[1]):
		c.wide[at] = [2]*waiting{best[0], w}
	}
}

// covers reports whether any toleration covers t, be it t itself.
func (c *covering) covers(t *corev1.Toleration) bool {
	return c.same[plain(t)] || c.coversMore(t)
}

// coversMore reports whether any toleration that is not the same covers t.
func (c *covering) coversMore(t *corev1.Toleration) bool {
	p := plain(t)
	for _, key := range [...]string{p.key, ""} {
		for _, effect := range [...]corev1.TaintEffect{p.effect, ""} {
			if c.at(place{key: key, effect: effect, exists: true}, &p) {
				return true
			}
			if key == p.key && p.operator == corev1.TolerationOpEqual && c.at(place{key: key, effect: effect, value: p.value}, &p) {
				return true
			}
		}
	}
	return false
}

// at reports whether a toleration of a place that is not p holds for as long as p.
func (c *covering) at(where place, p *toleration) bool {
	best := c.wide[where]
	w := best[0]
	if w != nil && w.toleration == *p {
		w = best[1]
	}
	return w != nil && (!w.bounded || p.timed && p.seconds <= w.seconds)
}

// mergeTolerations joins lists, without tolerations that another one covers. Of equal ones the first stays at
// its position.
func mergeTolerations(all []corev1.Toleration) []corev1.Toleration {
	needless := make([]bool, len(all)) // a later one covers more
	following := newCovering()
	for i := len(all) - 1; i >= 0; i-- {
		needless[i] = following.coversMore(&all[i])
		following.add(&all[i])
	}
	var merged []corev1.Toleration
	before := newCovering()
	for i := range all {
		if !needless[i] && !before.covers(&all[i]) {
			merged = append(merged, all[i])
			before.add(&all[i])
		}
	}
	return merged
}
