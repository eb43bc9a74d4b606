package main

import (
	"strings"
	"testing"
	"time"
)

// TestChurnCounts: each acknowledged write is due once at each watcher; events of writes that failed are neither
// lost nor due.
func TestChurnCounts(t *testing.T) {
	acks := map[uint64]int64{eventOf(0, 0): 1000, eventOf(0, 1): 2000, eventOf(7, 0): 3000}
	failed := eventOf(7, 1)
	var r churned
	r.count(acks, churnSeen{Ended: 2, Watchers: [][]arrival{
		{{eventOf(0, 0), 1010}, {eventOf(0, 1), 1990}, {failed, 2500}, {eventOf(7, 0), 3050}},
		{{eventOf(0, 0), 1020}, {eventOf(0, 0), 1030}, {eventOf(7, 0), 3040}},
	}})
	if r.due != 6 || r.lost != 1 || r.twice != 1 || r.ended != 2 || r.lag50 != 20*time.Nanosecond || r.lag99 != 50*time.Nanosecond {
		t.Errorf("%+v", r)
	}
}

// TestChurnReadsEvents: the values that a watcher reads from the lines of a watch.
func TestChurnReadsEvents(t *testing.T) {
	c := newChurnWatcher(&client{}, churnWatch{From: "5"})
	c.readEvents(strings.NewReader(`{"type":"ADDED","object":{"metadata":{"name":"a","resourceVersion":"6"},"data":{"event":"@4294967297@"}}}
{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"9"}}}
{"type":"MODIFIED","object":{"metadata":{"name":"a","resour`))
	if len(c.seen) != 1 || c.seen[0].Event != eventOf(1, 1) || c.last != "9" {
		t.Errorf("saw %v, up to %s", c.seen, c.last)
	}
}
