package judge

import (
	"slices"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// shares checks the field that several owners apply with the same value: it is there as long as one of them applies it.
func (j *judge) shares() {
	if len(j.r.Losses) > 0 { // what an owner had applied last may be lost
		return
	}
	for _, p := range j.parts {
		for _, all := range p.keys {
			j.sharedBy(all)
		}
	}
}

// sharedBy is shares for one object.
func (j *judge) sharedBy(all []*version) {
	var owners []*history.Op // the last apply of each with the field
	for i, v := range all {
		switch {
		case v.deleted:
			owners = nil
			continue
		case v.op == nil || i == 0 && v.revision != v.row.Created: // what was before is not known
			return
		case v.op.Kind == history.Apply:
			owners = slices.DeleteFunc(owners, func(o *history.Op) bool { return o.Client == v.op.Client })
			if v.op.Also == history.Shared {
				owners = append(owners, v.op)
			}
		}
		if _, there := v.state.Fields[history.Shared]; there != (len(owners) > 0) {
			lines := append(opLines(owners...), opLines(v.op)...)
			j.violate("writes", append(lines, rowLine(v.row)), "%d owners apply a field together, and that it is there is %v", len(owners), there)
			return
		}
	}
}

// late checks that no object is made in a namespace by a request that begins after its deletion was acknowledged: at the server that did
// that at once, and elsewhere as soon as servers know of it.
func (j *judge) late(vacated map[string][]*history.Op, lost time.Duration) {
	for _, o := range j.r.Ops {
		if o.Kind != history.Create || o.Outcome != history.OK || o.Return >= lost {
			continue
		}
		for _, d := range vacated[o.Key.Namespace] {
			if d.Key.Resource != "namespaces" || d.Outcome != history.OK || o.Call <= d.Return {
				continue
			}
			if j.judged("namespaces"); o.Server == d.Server || o.Call > j.calm(cutOff, d.Return, RightsTime, o.Server) {
				j.violate("namespaces", opLines(d, o), "%s is made after the deletion of its namespace was acknowledged", o.Key)
			}
		}
	}
}
