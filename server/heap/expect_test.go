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

// mapped is how much of the heap the system has given, in bytes.
func mapped() uint64 {
	free := []metrics.Sample{{Name: "/memory/classes/heap/free:bytes"}, {Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}}
	metrics.Read(free)
	return free[0].Value.Uint64() + free[1].Value.Uint64() + free[2].Value.Uint64()
}

// TestExpect: what is expected is there before it is needed, and nothing is collected meanwhile; what was not needed
// goes back to the system when the start is over.
func TestExpect(t *testing.T) {
	t.Setenv("GOGC", "")
	defer debug.SetGCPercent(debug.SetGCPercent(100))
	const expected = 256 << 20
	ctx, cancel := context.WithCancel(t.Context())
	startup := heap.Start(ctx)
	startup.Expect(expected)
	if there := mapped(); runtime.GOOS == "linux" && there < expected/4*3 {
		t.Errorf("%d bytes are there", there)
	}
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
	if grown := after.HeapSys - before.HeapSys; runtime.GOOS == "linux" && grown > expected/8 {
		t.Errorf("%d bytes more were taken from the system", grown)
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
	startup.Expect(expected) // nobody waits for it any more
}

// TestExpectLittle: of little nothing is made, and where GOGC is set nothing at all.
func TestExpectLittle(t *testing.T) {
	before := mapped()
	t.Setenv("GOGC", "77")
	heap.Start(t.Context()).Expect(1 << 30)
	t.Setenv("GOGC", "")
	ctx, cancel := context.WithCancel(t.Context())
	startup := heap.Start(ctx)
	startup.Expect(1 << 20)
	if there := mapped(); there > before+(32<<20) {
		t.Errorf("%d bytes are there, %d were", there, before)
	}
	cancel()
	if err := startup.Run(ctx); err != nil {
		t.Fatal(err)
	}
}
