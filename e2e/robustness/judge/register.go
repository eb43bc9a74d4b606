package judge

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// Register is an object with a value and a version, or the absence of one.
type Register struct {
	Exists  bool
	Value   string
	Version uint64 // 0: written by a request without an answer
}

// RegisterInput is an operation on a register: get, create, set, swap or delete.
type RegisterInput struct {
	Op      string
	Key     string
	Value   string // "": not known, of a get
	Expect  uint64 // of a swap, and of a delete if it is not 0
	Creates bool   // a swap that creates what does not exist
}

// RegisterOutput is its answer.
type RegisterOutput struct {
	Outcome history.Outcome
	Value   string
	Version uint64
}

// RegisterModel returns which states may follow from a state by an operation.
func RegisterModel(initial Register) porcupine.NondeterministicModel {
	return porcupine.NondeterministicModel{
		Partition: func(ops []porcupine.Operation) [][]porcupine.Operation {
			byKey := map[string][]porcupine.Operation{}
			for _, op := range ops {
				k := op.Input.(RegisterInput).Key
				byKey[k] = append(byKey[k], op)
			}
			return slices.Collect(maps.Values(byKey))
		},
		Init: func() []any { return []any{initial} },
		Step: func(state, input, output any) []any {
			return step(state.(Register), input.(RegisterInput), output.(RegisterOutput))
		},
		Equal:             func(a, b any) bool { return a == b },
		DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
	}
}

func step(s Register, in RegisterInput, out RegisterOutput) []any {
	// A state whose version is not known may have any.
	fits := func(version uint64) bool { return s.Exists && (s.Version == 0 || s.Version == version) }
	same, none := []any{s}, []any(nil)
	when := func(ok bool, then []any) []any {
		if ok {
			return then
		}
		return none
	}
	written := []any{Register{true, in.Value, out.Version}}
	switch out.Outcome {
	case history.NotFound:
		return when(!s.Exists, same)
	case history.Exists:
		return when(s.Exists, same)
	case history.Conflict: // of a swap or a delete that expects a version
		return when(!s.Exists || s.Version != in.Expect, same)
	}
	done := out.Outcome == history.OK
	var possible bool
	switch in.Op {
	case history.Get:
		if !done {
			return same
		}
		return when(fits(out.Version) && out.Value == s.Value, []any{Register{true, s.Value, out.Version}})
	case history.Create:
		possible = !s.Exists
	case history.Set:
		possible = s.Exists
	case history.Swap:
		possible = fits(in.Expect) || in.Creates && !s.Exists
	case history.Delete:
		possible, written = s.Exists && (in.Expect == 0 || fits(in.Expect)), []any{Register{}}
	}
	if done {
		return when(possible, written)
	}
	if possible { // it may have come to pass
		return append(same, written...)
	}
	return same
}

// registerTime bounds the search for an order of one object's operations.
const registerTime = 5 * time.Second

// registers checks the registers of the traffic.
func (j *judge) registers() {
	byKey := map[history.Key][]*history.Op{}
	lost := j.beforeLoss()
	for _, o := range j.r.Ops {
		if !strings.HasPrefix(o.Key.Name, "register") && !o.Key.Loose() || o.Cached || o.Dry || o.Never || o.AtLeast != 0 || o.Call >= lost {
			continue
		}
		if o.Return >= lost {
			open := *o
			open.Outcome, open.Got = history.Unknown, nil
			o = &open
		}
		byKey[o.Key] = append(byKey[o.Key], o)
	}
	done := map[*history.Op]*version{}
	for _, p := range j.parts {
		for k, all := range p.keys {
			if byKey[k] == nil {
				continue
			}
			for _, v := range all {
				if v.op != nil {
					done[v.op] = v
				}
			}
		}
	}
	whole := len(j.parts) == 1
	for k, ops := range byKey {
		register := RegisterModel(j.initialRegister(k))
		model := register.ToModel()
		whole := whole && !k.Loose()
		operations := operationsOf(ops, done, whole)
		j.v.Judged["register"] += len(operations)
		switch porcupine.CheckOperationsTimeout(model, operations, registerTime) {
		case porcupine.Unknown:
			j.open("registers for which no order was found in time")
		case porcupine.Illegal:
			j.violate("register", shortest(model, ops, done, whole), "the operations on %s are not linearizable", k)
		}
	}
}

// initialRegister returns an object at the beginning of the round.
func (j *judge) initialRegister(k history.Key) Register {
	if len(j.parts) == 0 {
		return Register{}
	}
	v := j.parts[0].at(k, j.parts[0].from)
	if v == nil {
		return Register{}
	}
	return Register{Exists: true, Value: valueOf(v.state), Version: v.revision}
}

func valueOf(s *history.State) string { return s.Fields["v"] + s.Fields["holder"] }

// operationsOf converts operations for porcupine. The outcomes in the table of writes without an answer spare it guesses.
func operationsOf(ops []*history.Op, done map[*history.Op]*version, whole bool) []porcupine.Operation {
	var list []porcupine.Operation
	clients := map[string]int{}
	for _, o := range ops {
		if _, ok := clients[o.Client]; !ok {
			clients[o.Client] = len(clients)
		}
		in := RegisterInput{Op: o.Kind, Key: o.Key.String(), Expect: o.Expect, Creates: o.Creates}
		if o.Kind != history.Get && o.Kind != history.Delete {
			in.Value = cmp.Or(o.Value, o.ID)
		}
		out := RegisterOutput{Outcome: o.Outcome}
		if o.Tests && o.Code == http.StatusUnprocessableEntity { // the test of the patch fails
			out.Outcome = history.Conflict
		}
		if o.Got != nil {
			out.Version, out.Value = o.Got.Version, valueOf(o.Got)
		}
		op := porcupine.Operation{ClientId: clients[o.Client], Input: in, Call: int64(o.Call), Output: out, Return: int64(o.Return)}
		switch out.Outcome {
		case history.OK, history.NotFound, history.Exists:
		case history.Conflict:
			if o.Expect == 0 {
				continue
			}
		case history.Unknown:
			if o.Kind == history.Get {
				continue
			}
			op.Return = math.MaxInt64
			if o.Kind == history.Delete {
				break
			}
			if v := done[o]; v != nil {
				op.Output = RegisterOutput{Outcome: history.OK, Version: v.revision}
			} else if whole {
				continue
			}
		default:
			continue
		}
		list = append(list, op)
	}
	return list
}

// shortest returns the shortest history that is still impossible: up to some answer, with the operations that were under way then
// as open, and without operations that are not needed.
func shortest(model porcupine.Model, ops []*history.Op, done map[*history.Op]*version, whole bool) []string {
	type cut struct{ answered, open []*history.Op }
	bad := func(c cut) bool {
		list := operationsOf(c.answered, done, whole)
		for _, op := range operationsOf(c.open, nil, false) { // whatever they did, they may have done
			if op.Input.(RegisterInput).Op != history.Get {
				op.Output, op.Return = RegisterOutput{Outcome: history.Unknown}, math.MaxInt64
				op.ClientId += 1000
				list = append(list, op)
			}
		}
		return porcupine.CheckOperationsTimeout(model, list, time.Second) == porcupine.Illegal
	}
	ops = slices.Clone(ops)
	slices.SortFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
	upTo := func(n int) cut {
		c := cut{answered: ops[:n]}
		for _, o := range ops[n:] {
			if o.Call < ops[n-1].Return && o.Writes() {
				c.open = append(c.open, o)
			}
		}
		return c
	}
	low, high := 1, len(ops)
	for low < high {
		if mid := (low + high) / 2; bad(upTo(mid)) {
			high = mid
		} else {
			low = mid + 1
		}
	}
	least := upTo(high)
	least.answered = slices.Clone(least.answered)
	for i := len(least.answered) - 1; i >= 0; i-- {
		if o := least.answered[i]; o.Kind == history.Get || o.Outcome != history.OK && o.Outcome != history.Unknown {
			if without := (cut{slices.Delete(slices.Clone(least.answered), i, i+1), least.open}); bad(without) {
				least = without
			}
		}
	}
	lines := opLines(least.answered...)
	// Each write is a step of the object; the last ones are the most informative.
	if len(lines) > 30 {
		lines = append([]string{fmt.Sprintf("... %d operations before", len(lines)-30)}, lines[len(lines)-30:]...)
	}
	for _, line := range opLines(least.open...) {
		lines = append(lines, "under way: "+line)
	}
	return lines
}

// sets checks sets that only grow. A read has all members whose addition was acknowledged before it began, and none whose
// addition begins after it ended; and one of two reads has all that the other has, which is the earlier one.
func (j *judge) sets() {
	byKey := map[history.Key][]*history.Op{}
	lost := j.beforeLoss()
	for _, o := range j.r.Ops {
		if strings.HasPrefix(o.Key.Name, "set") && o.Return < lost && o.Outcome == history.OK && o.Got != nil && !o.Cached {
			byKey[o.Key] = append(byKey[o.Key], o)
		}
	}
	for k, ops := range byKey {
		// By the time of the answers; each contains the members that were acknowledged before it began.
		slices.SortFunc(ops, func(a, b *history.Op) int { return cmp.Compare(a.Return, b.Return) })
		for i, o := range ops {
			j.judged("set")
			for _, earlier := range ops[:i] {
				if earlier.Return >= o.Call {
					continue
				}
				if id, missing := lacks(o, earlier); missing {
					j.violate("set", opLines(j.ops[id], earlier, o), "%s lacks %s, which had been seen in it before", k, id)
				}
			}
			for id := range o.Got.Fields {
				if add := j.ops[id]; add != nil && add.Call > o.Return {
					j.violate("set", opLines(o, add), "%s has %s before that was added", k, id)
				}
			}
		}
		slices.SortFunc(ops, func(a, b *history.Op) int { return cmp.Compare(len(a.Got.Fields), len(b.Got.Fields)) })
		for i := 1; i < len(ops); i++ {
			if id, missing := lacks(ops[i], ops[i-1]); missing {
				j.violate("set", opLines(j.ops[id], ops[i-1], ops[i]), "of two reads of %s each lacks what the other has: no order fits both", k)
			}
		}
	}
}

func lacks(later, earlier *history.Op) (id string, missing bool) {
	for id := range earlier.Got.Fields {
		if _, ok := later.Got.Fields[id]; !ok {
			return id, true
		}
	}
	return "", false
}
