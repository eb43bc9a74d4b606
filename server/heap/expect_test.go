package heap_test

import (
	"context"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/heap"
)

// mapped returns how much of the heap the system has given, in bytes.
func mapped() uint64 {
	free := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(free)
	return free[0].Value.Uint64() + free[1].Value.Uint64() + free[2].Value.Uint64()
}

// TestExpect: the collector does not run before the expected memory is in use; free memory goes back to the system
// when the start is over.
func TestExpect(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const expected = 256 << 20
	ctx, cancel := context.WithCancel(t.Context())
	startup := heap.Start(ctx)
	startup.Expect(expected)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	var held [][]byte
	for range expected / 2 >> 16 {
		held = append(held, make([]byte, 1<<16))
	}
	time.Sleep(3 * 100 * time.Millisecond) // some looks
	runtime.ReadMemStats(&after)
	if after.NumGC != before.NumGC {
		t.Errorf("collected %d times", after.NumGC-before.NumGC)
	}
	done := make(chan error)
	go func() { done <- startup.Run(ctx) }()
	for mapped() > expected/8*7 {
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(held)
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	startup.Expect(expected) // after the start has ended
}

// TestExpectWithoutRoom: of little, and where GOGC is set, the collector is left as it is.
func TestExpectWithoutRoom(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	t.Setenv("GOGC", "77")
	heap.Start(t.Context()).Expect(1 << 30)
	t.Setenv("GOGC", "")
	ctx, cancel := context.WithCancel(t.Context())
	startup := heap.Start(ctx)
	startup.Expect(1 << 20)
	if now := debug.SetGCPercent(100); now != 100 {
		t.Errorf("GOGC is %d", now)
	}
	cancel()
	if err := startup.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
