package judge

import (
	"slices"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// lifecycles checks how objects begin and end: by their UIDs, generations, finalizers and marks.
func (j *judge) lifecycles() {
	uids := map[string]*version{}
	ops := map[history.Key][]*history.Op{}
	for _, o := range j.ops {
		if (o.Kind == history.Mark || o.Kind == history.Release) && !o.Dry {
			ops[o.Key] = append(ops[o.Key], o)
		}
	}
	may := func(k history.Key, kind string) bool {
		return slices.ContainsFunc(ops[k], func(o *history.Op) bool {
			return o.Kind == kind && (o.Outcome == history.OK || o.Outcome == history.Unknown)
		})
	}
	for _, p := range j.parts {
		for k, all := range p.keys {
			marked := false
			for _, v := range all {
				if v.state == nil || v.state.UID == "" {
					continue
				}
				marked = marked || v.deleted || v.state.Going
				j.judged("lifecycle")
				j.lived(v, uids)
				if before := v.before(); v.deleted && before != nil && before.Held && !may(k, history.Release) {
					j.violate("lifecycle", rowLines(*v.prev.row, *v.row), "an object is deleted although it has finalizers")
				}
			}
			if whole := len(j.parts) == 1; whole && !marked {
				if i := slices.IndexFunc(ops[k], func(o *history.Op) bool { return o.Kind == history.Mark && o.Outcome == history.OK }); i >= 0 {
					j.violate("lifecycle", append(opLines(ops[k][i]), rowLine(all[len(all)-1].row)), "a delete was acknowledged, and %s is neither gone nor marked", k)
				}
			}
		}
	}
}

// lived checks a version against the one before it.
func (j *judge) lived(v *version, uids map[string]*version) {
	before := v.before()
	if before == nil {
		if v.deleted {
			return
		}
		if first := uids[v.state.UID]; first != nil && (first.row.Key != v.row.Key || first.row.Created != v.row.Created) {
			j.violate("lifecycle", rowLines(*first.row, *v.row), "the UID %s is given twice", v.state.UID)
		}
		uids[v.state.UID] = v
	}
	lines := func() []string {
		lines := rowLines(*v.row)
		if before != nil {
			lines = rowLines(*v.prev.row, *v.row)
		}
		return append(lines, opLines(v.op)...)
	}
	switch {
	case !v.deleted && v.state.Going && !v.state.Held && !graceful(v.row.Key):
		j.violate("lifecycle", lines(), "an object that is marked for deletion, and has no finalizer, is kept")
	case before == nil:
	case before.UID != v.state.UID:
		j.violate("lifecycle", lines(), "the UID of an object changes from %s to %s", before.UID, v.state.UID)
	case v.deleted:
	case before.Made != v.state.Made:
		j.violate("lifecycle", lines(), "the time of creation changes from %s to %s", before.Made, v.state.Made)
	case before.Going && !v.state.Going:
		j.violate("lifecycle", lines(), "a mark for deletion is taken back")
	case v.state.Generation < before.Generation:
		j.violate("lifecycle", lines(), "a generation goes back from %d to %d", before.Generation, v.state.Generation)
	case v.op != nil && before.Generation > 0 && specified(v.op) && v.state.Generation != before.Generation+1:
		j.violate("lifecycle", lines(), "a write of the spec leaves the generation at %d, after %d", v.state.Generation, before.Generation)
	case v.op != nil && (v.op.Kind == history.Status || v.op.Field == history.Note) && v.state.Generation != before.Generation:
		j.violate("lifecycle", lines(), "a write of the status, or of metadata, changes the generation from %d to %d", before.Generation, v.state.Generation)
	}
}

// specified reports whether an operation changes the spec of an object whose generation counts that, to a value that it did not have.
func specified(o *history.Op) bool {
	switch o.Kind {
	case history.Scale:
		return true
	case history.Set, history.Swap, history.Apply:
		return strings.HasPrefix(o.Key.Resource, "widgets.") && o.Field != history.Note
	}
	return false
}

// namespaces checks that a namespace, or the definition of a custom resource, goes only after a client has deleted it, and with
// everything that was in it before, and that no object is made in it afterwards.
func (j *judge) namespaces() {
	vacated := map[string][]*history.Op{}
	created := map[history.Key]*history.Op{}
	for _, o := range j.ops {
		switch {
		case o.Kind == history.Vacate && (o.Outcome == history.OK || o.Outcome == history.Unknown):
			vacated[o.Key.Name] = append(vacated[o.Key.Name], o)
		case o.Kind == history.Create && o.Outcome == history.OK:
			created[o.Key] = o
		}
	}
	lost := j.beforeLoss()
	j.late(vacated, lost)
	for _, p := range j.parts {
		live := map[history.Key]map[history.Key]*history.Row{} // by what they are in
		ended := map[string]*history.Row{}                     // namespaces
		for _, rows := range [][]history.Row{p.segment.Initial, p.segment.Rows} {
			for i := range rows {
				r := &rows[i]
				switch o := created[r.Key]; {
				case r.Key.Resource == "namespaces":
					if delete(ended, r.Key.Name); r.Deleted {
						ended[r.Key.Name] = r
					}
				case o != nil && r.Revision == r.Created && ended[r.Key.Namespace] != nil && o.Return < lost:
					j.violate("namespaces", append(opLines(o), rowLines(*ended[r.Key.Namespace], *r)...), "the create of %s was acknowledged, and its namespace was gone before", r.Key)
				}
				if whole := r.Key.Resource == "namespaces" || r.Key.Resource == definitions; whole && r.Deleted {
					j.gone(r, live[r.Key], vacated[r.Key.Name], created)
				}
				for _, in := range []history.Key{{Resource: "namespaces", Name: r.Key.Namespace}, {Resource: definitions, Name: r.Key.Resource}} {
					switch {
					case in.Name == "":
					case r.Deleted:
						delete(live[in], r.Key)
					default:
						if live[in] == nil {
							live[in] = map[history.Key]*history.Row{}
						}
						live[in][r.Key] = r
					}
				}
			}
		}
	}
}

const definitions = "customresourcedefinitions.apiextensions.k8s.io"

// asked checks that objects that go together, by a deletecollection, go only after a client has asked for that.
func (j *judge) asked() {
	first := map[string]*history.Op{}
	for _, o := range j.ops {
		if o.Kind == history.DeleteCollection && !o.Dry && !o.Never && (first[o.Field] == nil || o.Call < first[o.Field].Call) {
			first[o.Field] = o
		}
	}
	for _, p := range j.parts {
		for _, scope := range p.scopes {
			for _, v := range scope {
				batch, ok := batchOf(v.row.Key)
				if !ok || !v.deleted || first[batch] == nil {
					continue
				}
				if newest := j.seenBefore(first[batch].Call); newest >= v.revision {
					j.violate("writes", append(opLines(first[batch]), rowLine(v.row), j.whoSaw(newest)), "%s is deleted before a client asked for that", v.row.Key)
				}
			}
		}
	}
}

// batchOf returns the batch that an object belongs to.
func batchOf(k history.Key) (batch string, ok bool) {
	text, ok := strings.CutPrefix(k.Name, "batch-")
	batch, _, _ = strings.Cut(text, "-")
	return batch, ok
}

// gone checks a namespace, or a definition, that is deleted.
func (j *judge) gone(r *history.Row, left map[history.Key]*history.Row, by []*history.Op, created map[history.Key]*history.Op) {
	j.judged("namespaces")
	what := strings.TrimSuffix(strings.Split(r.Key.Resource, ".")[0], "s")
	if len(by) == 0 {
		j.violate("namespaces", rowLines(*r), "the %s %s is deleted, and no client had asked for that", what, r.Key.Name)
		return
	}
	first := slices.MinFunc(by, func(a, b *history.Op) int { return int(a.Call - b.Call) })
	for k, row := range left {
		if o := created[k]; o != nil && o.Return < first.Call {
			j.violate("namespaces", append(opLines(o, first), rowLines(*row, *r)...), "the %s %s is gone, and %s is still there", what, r.Key.Name, k)
		}
	}
}

// Bounds of the time at which an Event that no client renews is deleted: the table stores times in whole seconds, and
// servers look for expired objects every few seconds.
const (
	earlyEvent = time.Second
	lateEvent  = 30 * time.Second
)

// expiry checks that Events live as long as servers keep them.
func (j *judge) expiry() {
	renewed := map[history.Key][]*history.Op{}
	for _, o := range j.ops {
		if o.Kind == history.Renew && (o.Outcome == history.OK || o.Outcome == history.Unknown) {
			renewed[o.Key] = append(renewed[o.Key], o)
		}
	}
	lost := j.beforeLoss()
	for k, ops := range renewed {
		if slices.ContainsFunc(ops, j.misdated) {
			j.open("Events that were written while the clock by which they expire was set")
			delete(renewed, k)
		}
	}
	for _, p := range j.parts {
		for i := range p.segment.Rows {
			r := &p.segment.Rows[i]
			if !r.Deleted || renewed[r.Key] == nil {
				continue
			}
			j.judged("expiry")
			for _, o := range renewed[r.Key] {
				if o.Outcome == history.OK && o.Return < lost && r.At-o.Call < history.EventTTL-earlyEvent {
					j.violate("expiry", append(opLines(o), rowLine(r)), "%s is deleted %s after a client had written it", r.Key, r.At-o.Call)
				}
			}
		}
		for i := range p.segment.Live {
			r := &p.segment.Live[i]
			if renewed[r.Key] == nil {
				continue
			}
			last := slices.MaxFunc(renewed[r.Key], func(a, b *history.Op) int { return int(a.Return - b.Return) })
			if last.Outcome == history.OK && j.r.Ended > j.calm(cutOff, last.Return, history.EventTTL+lateEvent, every)+j.misdates(last.Return) {
				j.violate("expiry", append(opLines(last), rowLine(r)), "%s is still there %s after it was written last", r.Key, j.r.Ended-last.Return)
			}
		}
	}
}

// misdated reports whether the clock of the server that stored an Event, by which it expires, may have been wrong.
func (j *judge) misdated(o *history.Op) bool {
	return slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool {
		return f.Stamps && (f.Server == o.Server || f.Server < 0) && f.Begin <= o.Return && f.End >= o.Call
	})
}

// misdates returns for how long clocks by which Events expire were wrong since a time.
func (j *judge) misdates(since time.Duration) (sum time.Duration) {
	for _, f := range j.r.Faults {
		if f.Stamps {
			sum += max(0, f.End-max(f.Begin, since))
		}
	}
	return sum
}
