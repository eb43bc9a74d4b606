package judge

import (
	"cmp"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// writes finds the write of each row, and the row of each write.
func (j *judge) writes() {
	rows := map[*history.Op]*version{}
	for _, p := range j.parts {
		for _, scope := range p.scopes {
			for _, v := range scope {
				if !v.deleted {
					j.explain(rows, v)
				}
			}
		}
	}
	for _, o := range j.r.Ops {
		if o.Force && o.Outcome == history.Conflict {
			j.violate("writes", opLines(o), "an apply by force is answered with a conflict")
		}
		if history.Faulty(o.Code) && !o.Never && !o.Tests {
			j.violate("writes", opLines(o), "a request that breaks no rule is refused")
		}
		if !o.Writes() || o.Key.Loose() || o.Outcome != history.OK || o.Got == nil {
			continue
		}
		if j.phantom(o.Got.Version) {
			j.violate("writes", opLines(o), "a write was acknowledged at revision %d, which the table does not have", o.Got.Version)
			continue
		}
		p := j.part(o.Got.Version, o.Got.Version)
		if p == nil || o.Got.Version == p.from { // the state at the beginning is not a list of writes
			j.open("writes whose revision was compacted before it was read")
			continue
		}
		j.judged("writes")
		switch v := rows[o]; {
		case v == nil:
			lines := opLines(o)
			if at := p.at(o.Key, o.Got.Version); at != nil {
				if next := p.next(at); next != nil && next.deleted && ends(o) && at.revision == o.Got.Version {
					continue
				}
				lines = append(lines, rowLine(at.row))
			}
			j.violate("writes", lines, "an acknowledged write is not in the table")
		case v.revision != o.Got.Version:
			j.violate("writes", append(opLines(o), rowLine(v.row)), "a write was acknowledged at revision %d, and is at %d", o.Got.Version, v.revision)
		case !shows(o, v.state):
			j.violate("writes", append(opLines(o), rowLine(v.row)), "a write is stored with another content than its answer had")
		}
	}
}

// shows reports whether the answer to an operation is of a state: all of it, or the replicas that a Scale has.
func shows(o *history.Op, s *history.State) bool {
	if o.Kind == history.Scale || o.Kind == history.GetScale {
		return o.Got.Fields[history.Replicas] == s.Fields[history.Replicas] && o.Got.UID == s.UID
	}
	return o.Got.Hash == s.Hash
}

// explain finds the write of a row: the one whose ID is new in it.
func (j *judge) explain(rows map[*history.Op]*version, v *version) {
	before := v.before()
	var op *history.Op
	changed := 0
	for field, id := range v.state.Fields {
		if field == history.Shared || before != nil && before.Fields[field] == id {
			continue
		}
		if found := j.ops[id]; found != nil && (found.Field == field || found.Also == field) {
			if op != found {
				changed++
			}
			op = found
			continue
		}
		changed++
		op = nil
	}
	switch {
	case changed > 0:
	case before == nil: // a Deployment
		op = j.created(v)
	case v.state.Going && !before.Going:
		if v.op = j.marked(v); v.op == nil {
			j.violate("writes", rowLines(*v.prev.row, *v.row), "revision %d marks %s for deletion, and no client had asked for that", v.revision, v.row.Key)
		}
		return
	case v.state.Going && changed == 0 && j.again(v):
		return
	case v.row.Stored != v.prev.row.Stored && v.state.Hash == before.Hash:
		// The storage version changed while an object was written, and its server stored it once more.
		if first := v.prev.op; first != nil && first.Got != nil && first.Got.Version == v.revision {
			rows[first] = v
		}
		return
	}
	lines := func(more ...*history.Op) []string {
		lines := []string{rowLine(v.row)}
		if before != nil {
			lines = []string{rowLine(v.prev.row), rowLine(v.row)}
		}
		return append(lines, opLines(more...)...)
	}
	switch {
	case strings.HasPrefix(v.row.Key.Name, "secret-of-") || v.row.Key.Name == "kube-root-ca.crt":
		return // written by the set-up and by a controller
	case op == nil:
		j.violate("writes", lines(), "revision %d has %d changes, and no write that made them", v.revision, changed)
		return
	}
	v.op = op
	if earlier := rows[op]; earlier != nil {
		j.violate("writes", append(lines(op), rowLine(earlier.row)), "a write was done twice")
		return
	}
	rows[op] = v
	whole := op.Kind == history.Create || op.Kind == history.Swap
	switch {
	case op.Dry:
		j.violate("writes", lines(op), "a dry run was stored")
	case op.Key != v.row.Key && !(op.Prefix && strings.HasPrefix(v.row.Key.Name, op.Key.Name) && op.Key.Scope() == v.row.Key.Scope()):
		j.violate("writes", lines(op), "a write to %s is in %s", op.Key, v.row.Key)
	case op.Outcome != history.OK && op.Outcome != history.Unknown:
		j.violate("writes", lines(op), "a write was done that was answered with %q", op.Outcome)
	case changed > 1:
		j.violate("writes", lines(op), "revision %d has the changes of several writes", v.revision)
	case op.Kind == history.Create && before != nil:
		j.violate("writes", lines(op), "an object that exists was created")
	case (op.Kind == history.Set || op.Kind == history.Status || op.Kind == history.Scale || op.Kind == history.Swap && !op.Creates) && before == nil:
		j.violate("writes", lines(op), "an object that does not exist was changed")
	case (op.Kind == history.Swap || op.Expect != 0) && before != nil && v.prev.revision != op.Expect:
		j.violate("writes", lines(op), "a write that expected version %d replaced version %d", op.Expect, v.prev.revision)
	case op.Kind == history.Bind && (before == nil || before.Node != "" || v.state.Node != op.Value):
		j.violate("writes", lines(op), "a Pod that is bound, or none, was bound to %s", op.Value)
	case op.Kind != history.Bind && before != nil && before.Node != v.state.Node:
		j.violate("writes", lines(op), "a Pod went from node %q to %q without a binding", before.Node, v.state.Node)
	case op.On != nil && v.state.On != *op.On:
		j.violate("writes", lines(op), "a write that says whether the object has a label left it at %v", v.state.On)
	case op.On == nil && before != nil && v.state.On != before.On:
		j.violate("writes", lines(op), "a write that says nothing of a label changed it to %v", v.state.On)
	case op.Kind == history.Apply:
		j.applied(op, v, lines)
	case !whole && before != nil && !keeps(before.Fields, v.state.Fields, op.Field):
		j.violate("writes", lines(op), "a write of one field changed another one")
	}
}

// applied checks an apply: its owner has the fields that it applies and no other, and other owners keep theirs, unless it takes one by
// force. The name of a field begins with that of its owner, but for the contested one, which its last writer owns.
func (j *judge) applied(op *history.Op, v *version, lines func(...*history.Op) []string) {
	before := v.before()
	if before == nil || len(j.r.Losses) > 0 { // what the owner had seen may be lost
		return
	}
	for field, id := range before.Fields {
		now, there := v.state.Fields[field]
		owner, _, _ := strings.Cut(field, ".")
		if field == history.Contested && j.ops[id] != nil {
			owner = j.ops[id].Client
		}
		switch applies := field == op.Field || field == op.Also; {
		case field == history.Shared: // shares checks it
		case owner != op.Client && !there:
			j.violate("writes", lines(op), "an apply removed %s, which another owner has", field)
		case owner != op.Client && now != id && !(op.Force && applies):
			j.violate("writes", lines(op), "an apply without force changed %s, which another owner has", field)
		case owner == op.Client && there && !applies:
			j.violate("writes", lines(op), "an apply left %s, which its owner no longer applies", field)
		}
	}
}

// graceful reports whether every delete of an object marks it first.
func graceful(k history.Key) bool { return k.Resource == "pods" }

// ends reports whether a write was answered with an object that is marked, waits for nothing, and goes with its next write.
func ends(o *history.Op) bool {
	return graceful(o.Key) && o.Outcome == history.OK && o.Got != nil && o.Got.Going
}

// marked returns the operation that marked an object for deletion.
func (j *judge) marked(v *version) *history.Op {
	if j.marks == nil {
		j.marks = map[history.Key]*history.Op{}
		for _, o := range j.ops {
			// A graceful delete may find the object gone, or fail, after it has marked it.
			marks := o.Kind == history.Delete && graceful(o.Key) || o.Kind == history.Mark && (o.Outcome == history.OK || o.Outcome == history.Unknown)
			if first := j.marks[o.Key]; marks && !o.Dry && (first == nil || o.Call < first.Call) {
				j.marks[o.Key] = o
			}
		}
	}
	return j.marks[v.row.Key]
}

// again reports whether a later delete may have moved the time of the first one, as a stock server does where that is after its own
// time: after a clock was set.
func (j *judge) again(v *version) bool {
	first := j.marked(v)
	return first != nil && slices.ContainsFunc(j.r.Ops, func(o *history.Op) bool {
		return o.Kind == history.Mark && !o.Dry && o.Key == v.row.Key && o != first && (o.Outcome == history.OK || o.Outcome == history.Unknown) &&
			slices.ContainsFunc(j.r.Faults, func(f *history.Fault) bool { return f.Clock && f.Begin <= o.Return && f.End >= first.Call })
	})
}

// created returns the operation that created an object without fields. Of those without an answer it is the first, which may have begun
// before a client saw the object.
func (j *judge) created(v *version) *history.Op {
	if j.creates == nil {
		j.creates = map[history.Key][]*history.Op{}
		for _, o := range j.ops {
			if o.Kind == history.Create && o.Field == "" {
				j.creates[o.Key] = append(j.creates[o.Key], o)
			}
		}
	}
	var open *history.Op
	for _, o := range j.creates[v.row.Key] {
		if o.Got != nil && o.Got.Version == v.revision {
			return o
		}
		if o.Outcome == history.Unknown && (open == nil || o.Call < open.Call) {
			open = o
		}
	}
	return open
}

// keeps reports whether all fields but one are as before.
func keeps(before, after map[string]string, but string) bool {
	for field, id := range before {
		if field != but && after[field] != id {
			return false
		}
	}
	return true
}

// deletes counts deletions: as many as were acknowledged, and not more than were asked for.
func (j *judge) deletes() {
	type count struct {
		acked, open int
		ops         []*history.Op
		rows        []*version
	}
	counts := map[history.Key]*count{}
	of := func(k history.Key) *count {
		if counts[k] == nil {
			counts[k] = &count{}
		}
		return counts[k]
	}
	batches := map[string]*history.Op{}
	lost := j.beforeLoss()
	for _, o := range j.ops {
		switch {
		case o.Dry:
		case o.Never:
			if o.Outcome == history.OK && o.Return < lost { // afterwards, what had been deleted may be there again
				j.violate("writes", opLines(o), "a write was acknowledged that breaks a rule")
			}
		case o.Kind == history.DeleteCollection && (o.Outcome == history.OK || o.Outcome == history.Unknown || o.Outcome == history.Refused):
			if known := batches[o.Field]; known == nil || o.Outcome == history.OK {
				batches[o.Field] = o // one that fails may have deleted some
			}
		case (o.Kind == history.Delete || o.Kind == history.Release) && o.Outcome == history.OK:
			of(o.Key).acked++
			of(o.Key).ops = append(of(o.Key).ops, o)
		case (o.Kind == history.Delete || o.Kind == history.Release) && o.Outcome == history.Unknown, ends(o),
			o.Kind != history.Create && graceful(o.Key) && o.Writes() && o.Outcome == history.Unknown:
			of(o.Key).open++
			of(o.Key).ops = append(of(o.Key).ops, o)
		}
	}
	for _, p := range j.parts {
		for _, scope := range p.scopes {
			for _, v := range scope {
				if v.deleted {
					of(v.row.Key).rows = append(of(v.row.Key).rows, v)
				}
			}
		}
	}
	whole := len(j.parts) == 1
	for k, c := range counts {
		j.judged("writes")
		lines := func() []string {
			lines := opLines(c.ops...)
			for _, v := range c.rows {
				lines = append(lines, rowLine(v.row))
			}
			return lines
		}
		batch, _ := batchOf(k)
		switch {
		case batch != "" && batches[batch] != nil && len(c.rows) <= 1:
		case whole && len(c.rows) < c.acked:
			j.violate("writes", lines(), "%s has %d deletions in the table, and %d were acknowledged", k, len(c.rows), c.acked)
		case len(c.rows) > c.acked+c.open:
			j.violate("writes", lines(), "%s has %d deletions in the table, and only %d were asked for", k, len(c.rows), c.acked+c.open)
		}
	}
	for _, p := range j.parts {
		for k, all := range p.keys {
			last := all[len(all)-1]
			batch, ok := batchOf(k)
			if !ok || last.deleted || p != j.parts[len(j.parts)-1] {
				continue
			}
			if o := batches[batch]; o != nil && o.Outcome == history.OK && last.op != nil && last.op.Outcome == history.OK && last.op.Return < o.Call {
				j.violate("writes", append(opLines(last.op, o), rowLine(last.row)), "deletecollection was acknowledged, and left %s", k)
			}
		}
	}
}

// order holds revisions against times, over all objects and servers.
func (j *judge) order() {
	var all []*version
	for _, p := range j.parts {
		for _, scope := range p.scopes {
			for _, v := range scope {
				if v.op != nil {
					all = append(all, v)
				}
			}
		}
	}
	for _, v := range all {
		j.judged("order")
		if v.op.Kind == history.Create && v.op.Field == "" && v.op.Outcome == history.Unknown {
			continue // the operation is a guess
		}
		if newest := j.seenBefore(v.op.Call); newest >= v.revision {
			j.violate("order", append([]string{j.whoSaw(newest)}, opLines(v.op)...), "a write got revision %d, and began after a client had seen %d", v.revision, newest)
		}
	}
}

// whoSaw describes the first record that shows a revision.
func (j *judge) whoSaw(revision uint64) string {
	type record struct {
		at   int64
		line string
	}
	var found []record
	for _, o := range j.r.Ops {
		if o.Got != nil && o.Got.Version == revision {
			found = append(found, record{int64(o.Return), o.String()})
		}
	}
	for _, l := range j.r.Lists {
		if len(l.Pages) > 0 && l.Pages[0].Version == revision {
			found = append(found, record{int64(l.Return), l.String()})
		}
	}
	for _, s := range j.r.Streams {
		for i := range s.Events {
			if e := &s.Events[i]; e.Item.State.Version == revision {
				found = append(found, record{int64(e.At), s.Client + " saw " + e.String()})
			}
		}
	}
	if len(found) == 0 {
		return ""
	}
	return slices.MinFunc(found, func(a, b record) int { return cmp.Compare(a.at, b.at) }).line
}
