package documents_test

import (
	"runtime"
	"testing"

	"github.com/rowlock/rowlock/server/aggregator"
	"github.com/rowlock/rowlock/server/aggregator/documents"
)

// A goroutine that reads the APIServices before another one, and stores them after it, does not give them a newer number.
func TestNumbersOfLists(t *testing.T) {
	w := newWorld(t)
	agg := aggregator.New(aggregator.Config{Cache: w.cache})
	before := agg.Services()
	w.leave("late.example", "v1", "one")
	read, come := make(chan struct{}), make(chan struct{})
	first := true
	d := documents.New(documents.Config{Cache: w.cache, Services: func() *aggregator.Services {
		if !first {
			return agg.Services()
		}
		first = false
		close(read)
		<-come
		return before
	}})
	type list struct {
		length int
		number uint64
	}
	ask := func() <-chan list {
		result := make(chan list, 1)
		go func() {
			all, number := d.Services()
			result <- list{len(all), number}
		}()
		return result
	}
	older := ask()
	<-read
	newer := ask()
	for range 1000 { // it comes first, unless it waits for the other
		runtime.Gosched()
	}
	close(come)
	if a, b := <-older, <-newer; a.length != 0 || b.length != 1 || a.number >= b.number {
		t.Errorf("%d APIServices have the number %d, %d the number %d", a.length, a.number, b.length, b.number)
	}
}
