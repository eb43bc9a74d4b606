package judge

import (
	"fmt"
	"sort"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// pasts checks the lists of the writes of an object: each write once, the newest first, with what it wrote, down to the oldest that is kept.
func (j *judge) pasts() {
	for _, l := range j.r.Pasts {
		i := sort.Search(len(j.r.Floors), func(i int) bool { return j.r.Floors[i].At >= l.Return })
		if len(j.r.Losses) > 0 || len(j.parts) != 1 || i == len(j.r.Floors) {
			j.open("writes of objects that may have been lost, or compacted before they were read")
			continue
		}
		j.judged("exact")
		if differences := j.parts[0].differs(l, j.r.Floors[i].Past); len(differences) > 0 {
			j.violate("exact", append([]string{l.String()}, differences...), "the list of the writes of %s is not its history", l.Key)
		}
	}
}

// differs returns the differences between the history of an object and a list of its writes, after which the floor of old states was at a
// revision.
func (p *part) differs(l *history.Past, floor uint64) (differences []string) {
	listed, newest, oldest := map[uint64]*history.PastWrite{}, uint64(0), uint64(0)
	for i := range l.Writes {
		w := &l.Writes[i]
		if i > 0 && w.State.Version >= oldest {
			differences = append(differences, fmt.Sprintf("it has %d after %d", w.State.Version, oldest))
		}
		oldest = w.State.Version
		newest = max(newest, oldest)
		listed[oldest] = w
	}
	for _, v := range p.keys[l.Key] {
		w, until := listed[v.revision], v.until()
		if delete(listed, v.revision); v.deleted {
			until = v.revision
		}
		switch {
		case w == nil && (v.revision > newest && v.row.At >= l.Call || until <= floor || !l.Whole && v.revision < oldest):
		case w == nil:
			differences = append(differences, "it lacks "+rowLine(v.row))
		case (w.Change == "delete") != v.deleted || v.prev != nil && (w.Change == "create") != (v.before() == nil && !v.deleted) || w.State.Hash != hash(v.state):
			differences = append(differences, fmt.Sprintf("it has %s %d %v", w.Change, v.revision, w.State.Fields), rowLine(v.row))
		case w.Previous != 0 && v.prev != nil && w.Previous != v.prev.revision:
			differences = append(differences, fmt.Sprintf("it has %d after %d, which replaced %d", v.revision, w.Previous, v.prev.revision))
		}
	}
	for revision := range listed {
		if revision > p.from {
			differences = append(differences, fmt.Sprintf("it has %d, at which nothing wrote the object", revision))
		}
	}
	return differences[:min(len(differences), 6)]
}
