package sqlstore

import (
	"fmt"
	"testing"
	"time"
)

type idleSink struct{}

func (idleSink) Apply([]Change) {}

// BenchmarkFeed is what the feed takes for a row of a group of so many that was committed: what it
// makes of them for the sink, and telling their writers. The sink does nothing.
func BenchmarkFeed(b *testing.B) {
	for _, rows := range []int{1, 32, 256} {
		b.Run(fmt.Sprintf("rows=%d", rows), func(b *testing.B) {
			f := &feed{Store: New(&goneDriver{}, Config{Clock: time.Now}), sink: idleSink{}}
			revision := int64(0)
			b.ReportAllocs()
			for n := 0; n < b.N; {
				b.StopTimer()
				var batch []*write
				for ; len(batch) < rows && n < b.N; n++ {
					revision++
					w := &write{txn: Txn{Ops: []Op{{Verb: Create, Key: Key{Resource: "pods", Name: "a"}}}}, done: make(chan struct{})}
					w.out = Outcome{Revisions: []int64{revision}, Created: []int64{revision}}
					batch = append(batch, w)
					go func() { <-w.done }()
				}
				time.Sleep(time.Duration(len(batch)) * time.Microsecond) // they wait by now
				b.StartTimer()
				if err := f.take(b.Context(), batch); err != nil {
					b.Fatal(err)
				}
			}
			if f.applied.Load() != revision {
				b.Fatalf("the sink has %d of %d revisions", f.applied.Load(), revision)
			}
		})
	}
}
