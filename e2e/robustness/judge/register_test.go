package judge_test

import (
	"testing"

	"github.com/anishathalye/porcupine"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

// TestRegisterModel keeps the model honest: it must refuse what no register does.
func TestRegisterModel(t *testing.T) {
	t.Parallel()
	op := func(client int, in judge.RegisterInput, out judge.RegisterOutput, call, ret int64) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: ret}
	}
	ok := func(value string, version uint64) judge.RegisterOutput {
		return judge.RegisterOutput{Outcome: history.OK, Value: value, Version: version}
	}
	said := func(o history.Outcome) judge.RegisterOutput { return judge.RegisterOutput{Outcome: o} }
	set := judge.RegisterInput{Op: history.Set, Value: "1"}
	get := judge.RegisterInput{Op: history.Get}
	swap := func(value string, expect uint64) judge.RegisterInput {
		return judge.RegisterInput{Op: history.Swap, Value: value, Expect: expect}
	}
	create, remove := judge.RegisterInput{Op: history.Create, Value: "2"}, judge.RegisterInput{Op: history.Delete}
	lease := swap("3", 9)
	lease.Creates = true
	type ops = []porcupine.Operation
	for name, c := range map[string]struct {
		ops ops
		ok  bool
	}{
		"a read of what was written":        {ops{op(0, set, ok("1", 5), 0, 1), op(1, get, ok("1", 5), 2, 3)}, true},
		"a stale read":                      {ops{op(0, set, ok("1", 5), 0, 1), op(1, get, ok("0", 4), 2, 3)}, false},
		"a write that came late":            {ops{op(0, set, said(history.Unknown), 0, 100), op(1, get, ok("0", 4), 2, 3), op(1, get, ok("1", 5), 4, 5)}, true},
		"a write undone":                    {ops{op(0, set, said(history.Unknown), 0, 100), op(1, get, ok("1", 5), 2, 3), op(1, get, ok("0", 4), 4, 5)}, false},
		"two swaps from one version":        {ops{op(0, get, ok("0", 4), 0, 1), op(0, swap("1", 4), ok("1", 5), 2, 5), op(1, swap("2", 4), ok("2", 6), 3, 6)}, false},
		"a create of what exists":           {ops{op(0, create, ok("2", 5), 0, 1)}, false},
		"a create behind a delete":          {ops{op(0, remove, said(history.OK), 0, 1), op(0, create, ok("2", 5), 2, 3), op(0, get, ok("2", 5), 4, 5)}, true},
		"a deleted object back":             {ops{op(0, remove, said(history.OK), 0, 1), op(0, get, ok("0", 4), 2, 3)}, false},
		"a delete lost":                     {ops{op(0, remove, said(history.OK), 0, 1), op(0, create, said(history.Exists), 2, 3)}, false},
		"a delete that may have happened":   {ops{op(0, remove, said(history.Unknown), 0, 100), op(0, get, said(history.NotFound), 2, 3)}, true},
		"nothing there, and nobody deleted": {ops{op(0, get, said(history.NotFound), 2, 3)}, false},
		"a swap that creates a lease":       {ops{op(0, remove, said(history.OK), 0, 1), op(0, lease, ok("3", 12), 2, 3)}, true},
		"a swap that creates another":       {ops{op(0, remove, said(history.OK), 0, 1), op(0, swap("3", 9), ok("3", 12), 2, 3)}, false},
		"a conflict without a reason":       {ops{op(0, get, ok("0", 4), 0, 1), op(0, swap("1", 4), said(history.Conflict), 2, 3)}, false},
	} {
		model := judge.RegisterModel(judge.Register{Exists: true, Value: "0"})
		if got := porcupine.CheckOperations(model.ToModel(), c.ops); got != c.ok {
			t.Errorf("%s: linearizable is %v", name, got)
		}
	}
}
