package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	judging "github.com/rowlock/rowlock/e2e/robustness/judge"
)

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
	var ops []porcupine.Operation
	var wg sync.WaitGroup
	began, seed := time.Now(), rand.Uint64()
	t.Logf("seed %d", seed)
	for client := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(client)))
			known := [registers]uint64{}
			for i := 0; ctx.Err() == nil; i++ {
				n := r.IntN(registers)
				in := judging.RegisterInput{Op: history.Get, Key: fmt.Sprint("r", n), Value: fmt.Sprintf("%d-%d", client, i)}
				switch kind := r.IntN(4); {
				case kind == 1:
					in.Op = history.Set
				case kind > 1 && known[n] != 0:
					in.Op, in.Expect = history.Swap, known[n]
				}
				call := time.Since(began)
				out := operate(a[r.IntN(2)], in)
				op := porcupine.Operation{ClientId: client, Input: in, Call: int64(call), Output: out, Return: int64(time.Since(began))}
				if out.Outcome == history.Unknown {
					op.Return = int64(time.Hour) // it may happen at any time from now on
				}
				known[n] = out.Version
				mu.Lock()
				ops = append(ops, op)
				mu.Unlock()
				time.Sleep(10 * time.Millisecond)
			}
		})
	}
	for _, fault := range []func(){
		proxy.CloseConnections, func() { proxy.DropCommitReplies(3) }, func() { proxy.CutRequests(3) },
		func() {
			pg.Kill()
			if err := pg.Run(context.Background()); err != nil {
				t.Error(err)
			}
		},
		func() { proxy.Stall(); time.Sleep(300 * time.Millisecond); proxy.Resume() },
	} {
		time.Sleep(600 * time.Millisecond)
		fault()
	}
	time.Sleep(600 * time.Millisecond)
	stop()
	wg.Wait()
	counts := map[string]int{}
	for _, op := range ops {
		counts[op.Input.(judging.RegisterInput).Op+" "+string(op.Output.(judging.RegisterOutput).Outcome)]++
	}
	t.Logf("%d operations: %v", len(ops), counts)
	if counts["swap ok"] == 0 || counts["swap conflict"] == 0 || counts["get ok"] == 0 || counts["set ok"] == 0 {
		t.Error("the history is too thin to say much")
	}
	model := judging.RegisterModel(judging.Register{Exists: true, Value: "0"})
	if result := porcupine.CheckOperationsTimeout(model.ToModel(), ops, patience); result != porcupine.Ok {
		t.Errorf("the history is %s", result)
	}
}

func operate(a *api, in judging.RegisterInput) judging.RegisterOutput {
	method, contentType, body := http.MethodGet, "", ""
	switch in.Op {
	case history.Set:
		method, contentType, body = http.MethodPatch, "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":%q}}`, in.Value)
	case history.Swap:
		method, contentType, body = http.MethodPut, "application/json", fmt.Sprintf(`{"metadata":{"name":%q,"resourceVersion":"%d"},"data":{"v":%q}}`, in.Key, in.Expect, in.Value)
	}
	code, answer, err := a.do(context.Background(), method, configMaps+"/"+in.Key, contentType, body)
	if err == nil && code == http.StatusConflict && in.Op == history.Swap {
		return judging.RegisterOutput{Outcome: history.Conflict}
	}
	var object configMap
	if err != nil || code != http.StatusOK || json.Unmarshal(answer, &object) != nil {
		return judging.RegisterOutput{Outcome: history.Unknown}
	}
	version, err := strconv.ParseUint(object.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		return judging.RegisterOutput{Outcome: history.Unknown}
	}
	return judging.RegisterOutput{Outcome: history.OK, Value: object.Data["v"], Version: version}
}
