package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// An object is a register with a value and a version.
type register struct{ value, version string } // version "?": written by a request without an answer

type registerInput struct {
	op            string // get, set, swap
	key           int
	value, expect string
}

type registerOutput struct {
	result         string // ok, conflict, unknown
	value, version string
}

// registerModel says what states may follow from a state by an operation.
var registerModel = porcupine.NondeterministicModel{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		byKey := map[int][]porcupine.Operation{}
		for _, op := range history {
			k := op.Input.(registerInput).key
			byKey[k] = append(byKey[k], op)
		}
		var parts [][]porcupine.Operation
		for _, part := range byKey {
			parts = append(parts, part)
		}
		return parts
	},
	Init: func() []any { return []any{register{"0", "?"}} },
	Step: func(state, input, output any) []any {
		s, in, out := state.(register), input.(registerInput), output.(registerOutput)
		fits := func(version string) bool { return s.version == "?" || s.version == version }
		switch {
		case in.op == "get" && out.result == "unknown":
			return []any{s}
		case in.op == "get" && out.value == s.value && fits(out.version):
			return []any{register{s.value, out.version}}
		case in.op == "get":
			return nil
		case out.result == "unknown" && (in.op == "set" || fits(in.expect)):
			return []any{s, register{in.value, "?"}}
		case out.result == "unknown":
			return []any{s}
		case out.result == "conflict" && s.version != in.expect:
			return []any{s}
		case out.result == "conflict":
			return nil
		case in.op == "set" || fits(in.expect):
			return []any{register{in.value, out.version}}
		}
		return nil
	},
	Equal:             func(a, b any) bool { return a == b },
	DescribeOperation: func(in, out any) string { return fmt.Sprintf("%+v -> %+v", in, out) },
}

const registers = 4

// TestLinearizable reads, sets and swaps a few objects from many clients through two
// servers while PostgreSQL is killed and connections break, and looks for an order
// of all operations that explains every answer.
func TestLinearizable(t *testing.T) {
	t.Parallel()
	pg, proxy, c := behindProxy(t)
	a := clients(t, c)
	for k := range registers {
		want(t, a[0], 201, http.MethodPost, configMaps, "application/json", fmt.Sprintf(`{"metadata":{"name":"r%d"},"data":{"v":"0"}}`, k))
	}
	ctx, stop := context.WithCancel(context.Background())
	defer stop()
	var mu sync.Mutex
	var history []porcupine.Operation
	var wg sync.WaitGroup
	began, seed := time.Now(), rand.Uint64()
	t.Logf("seed %d", seed)
	for client := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(client)))
			known := [registers]string{}
			for i := 0; ctx.Err() == nil; i++ {
				in := registerInput{op: "get", key: r.IntN(registers), value: fmt.Sprintf("%d-%d", client, i)}
				switch n := r.IntN(4); {
				case n == 1:
					in.op = "set"
				case n > 1 && known[in.key] != "":
					in.op, in.expect = "swap", known[in.key]
				}
				call := time.Since(began)
				out := operate(a[r.IntN(2)], in)
				op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(began))}
				if out.result == "unknown" {
					op.Return = int64(time.Hour) // it may happen at any time from now on
				}
				known[in.key] = out.version
				mu.Lock()
				history = append(history, op)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for _, fault := range []func(){
		proxy.Cut, func() { proxy.LoseCommits(3) }, func() { proxy.CutRequests(3) },
		func() {
			pg.Kill()
			if err := pg.Run(context.Background()); err != nil {
				t.Error(err)
			}
		},
		func() { proxy.Stall(); time.Sleep(300 * time.Millisecond); proxy.Go() },
	} {
		time.Sleep(600 * time.Millisecond)
		fault()
	}
	time.Sleep(600 * time.Millisecond)
	stop()
	wg.Wait()
	counts := map[string]int{}
	for _, op := range history {
		counts[op.Input.(registerInput).op+" "+op.Output.(registerOutput).result]++
	}
	t.Logf("%d operations: %v", len(history), counts)
	if counts["swap ok"] == 0 || counts["swap conflict"] == 0 || counts["get ok"] == 0 || counts["set ok"] == 0 {
		t.Error("the history is too thin to say much")
	}
	if result := porcupine.CheckOperationsTimeout(registerModel.ToModel(), history, patience); result != porcupine.Ok {
		t.Errorf("the history is %s", result)
	}
}

func operate(a *api, in registerInput) registerOutput {
	method, contentType, body := http.MethodGet, "", ""
	switch in.op {
	case "set":
		method, contentType, body = http.MethodPatch, "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":%q}}`, in.value)
	case "swap":
		method, contentType, body = http.MethodPut, "application/json", fmt.Sprintf(`{"metadata":{"name":"r%d","resourceVersion":%q},"data":{"v":%q}}`, in.key, in.expect, in.value)
	}
	code, answer, err := a.do(context.Background(), method, fmt.Sprintf("%s/r%d", configMaps, in.key), contentType, body)
	var object configMap
	switch {
	case err == nil && code == http.StatusConflict && in.op == "swap":
		return registerOutput{result: "conflict"}
	case err != nil || code != http.StatusOK || json.Unmarshal(answer, &object) != nil:
		return registerOutput{result: "unknown"}
	}
	return registerOutput{"ok", object.Data["v"], object.Metadata.ResourceVersion}
}

// TestRegisterModel keeps the model honest: it must refuse what no register does.
func TestRegisterModel(t *testing.T) {
	t.Parallel()
	op := func(client int, in registerInput, out registerOutput, call, ret int64) porcupine.Operation {
		return porcupine.Operation{ClientId: client, Input: in, Output: out, Call: call, Return: ret}
	}
	set := registerInput{op: "set", value: "1"}
	get := registerInput{op: "get"}
	for name, c := range map[string]struct {
		history []porcupine.Operation
		ok      bool
	}{
		"a read of what was written": {[]porcupine.Operation{op(0, set, registerOutput{"ok", "1", "5"}, 0, 1), op(1, get, registerOutput{"ok", "1", "5"}, 2, 3)}, true},
		"a stale read":               {[]porcupine.Operation{op(0, set, registerOutput{"ok", "1", "5"}, 0, 1), op(1, get, registerOutput{"ok", "0", "4"}, 2, 3)}, false},
		"a write that came late":     {[]porcupine.Operation{op(0, set, registerOutput{result: "unknown"}, 0, 100), op(1, get, registerOutput{"ok", "0", "4"}, 2, 3), op(1, get, registerOutput{"ok", "1", "5"}, 4, 5)}, true},
		"a write undone":             {[]porcupine.Operation{op(0, set, registerOutput{result: "unknown"}, 0, 100), op(1, get, registerOutput{"ok", "1", "5"}, 2, 3), op(1, get, registerOutput{"ok", "0", "4"}, 4, 5)}, false},
		"two swaps from one version": {[]porcupine.Operation{
			op(0, registerInput{op: "get"}, registerOutput{"ok", "0", "4"}, 0, 1),
			op(0, registerInput{op: "swap", value: "1", expect: "4"}, registerOutput{"ok", "1", "5"}, 2, 5),
			op(1, registerInput{op: "swap", value: "2", expect: "4"}, registerOutput{"ok", "2", "6"}, 3, 6)}, false},
	} {
		if got := porcupine.CheckOperations(registerModel.ToModel(), c.history); got != c.ok {
			t.Errorf("%s: linearizable is %v", name, got)
		}
	}
}
