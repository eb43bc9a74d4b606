// Package cores estimates how many writes a server would take with more processors than this machine has.
//
// It simulates clients that write again as soon as they are answered, and three stations with their measured
// times: the request, on any idle processor; the commit, one group at a time, partly on a processor and
// partly on the disk; and the feed with the cache, one group at a time. It models no limits that were not
// measured, such as memory, its collector, or the network.
package cores

import (
	"container/heap"
	"time"
)

// Group holds the times of a commit of Rows writes.
type Group struct {
	Rows      int
	Processor time.Duration // processor time that no other group uses, of the server and of the database
	Disk      time.Duration // waiting, without a processor
}

// Model is one server with its clients.
type Model struct {
	Cores   int
	Clients int
	Request time.Duration // processor time of a write outside of commit and feed
	Groups  []Group       // by rows, from 1 on; times in between are interpolated
	Most    int           // rows in a group
	Feed    time.Duration // for a row, on a processor
}

// Result holds the figures of a model's run.
type Result struct {
	Rate    float64       // writes a second
	Rows    float64       // in a group
	Busy    float64       // share of all processors that work
	Commit  float64       // share of the time during which a commit runs
	Feeding float64       // share of the time during which the feed runs
	Latency time.Duration // average, from the request to the answer
}

// commit returns the times of a commit of n writes.
func (m *Model) commit(n int) (processor, disk time.Duration) {
	last := m.Groups[len(m.Groups)-1]
	if n >= last.Rows { // each row costs as much as in the largest group
		return last.Processor * time.Duration(n) / time.Duration(last.Rows), last.Disk * time.Duration(n) / time.Duration(last.Rows)
	}
	for i := 1; i < len(m.Groups); i++ {
		a, b := m.Groups[i-1], m.Groups[i]
		if n > b.Rows {
			continue
		}
		between := func(x, y time.Duration) time.Duration {
			return x + (y-x)*time.Duration(n-a.Rows)/time.Duration(b.Rows-a.Rows)
		}
		return between(a.Processor, b.Processor), between(a.Disk, b.Disk)
	}
	return m.Groups[0].Processor, m.Groups[0].Disk
}

// Limit returns the rate with any number of processors: that of the slower of commit and feed with the
// largest groups.
func (m *Model) Limit() float64 {
	processor, disk := m.commit(m.Most)
	return float64(m.Most) / max(processor+disk, m.Feed*time.Duration(m.Most)).Seconds()
}

// task is work for one processor; then is called at its end.
type task struct {
	takes time.Duration
	then  func()
}

// event calls a function at a time.
type event struct {
	at   time.Duration
	do   func()
	turn int // order among events of one time
}

type events []event

func (e events) Len() int { return len(e) }
func (e events) Less(i, j int) bool {
	return e[i].at < e[j].at || e[i].at == e[j].at && e[i].turn < e[j].turn
}
func (e events) Swap(i, j int) { e[i], e[j] = e[j], e[i] }
func (e *events) Push(x any)   { *e = append(*e, x.(event)) }
func (e *events) Pop() any {
	last := (*e)[len(*e)-1]
	*e = (*e)[:len(*e)-1]
	return last
}

// play is the state of a running model.
type play struct {
	*Model
	now            time.Duration
	coming         events
	turns          int
	free           int
	ready          []task
	waiting        []time.Duration // the start of each request that waits for a commit
	written        [][]time.Duration
	committing     bool
	feeding        bool
	done, groups   int
	busy, held     time.Duration
	feedTime, took time.Duration
}

// Run simulates a duration.
func (m *Model) Run(long time.Duration) Result {
	p := &play{Model: m, free: m.Cores}
	for range m.Clients {
		p.request()
	}
	for p.coming.Len() > 0 {
		next := heap.Pop(&p.coming).(event)
		if next.at > long {
			break
		}
		p.now = next.at
		next.do()
	}
	r := Result{Rate: float64(p.done) / long.Seconds(), Busy: float64(p.busy) / float64(long) / float64(m.Cores), Commit: float64(p.held) / float64(long), Feeding: float64(p.feedTime) / float64(long)}
	if p.done > 0 {
		r.Rows, r.Latency = float64(p.done)/float64(max(1, p.groups)), p.took/time.Duration(p.done)
	}
	return r
}

func (p *play) after(d time.Duration, do func()) {
	p.turns++
	heap.Push(&p.coming, event{at: p.now + d, do: do, turn: p.turns})
}

// work queues a task for a processor.
func (p *play) work(takes time.Duration, then func()) {
	p.ready = append(p.ready, task{takes, then})
	p.start()
}

func (p *play) start() {
	for p.free > 0 && len(p.ready) > 0 {
		t := p.ready[0]
		p.ready = p.ready[1:]
		p.free--
		p.busy += t.takes
		p.after(t.takes, func() {
			p.free++
			t.then()
			p.start()
		})
	}
}

// request starts a write of one client.
func (p *play) request() {
	began := p.now
	p.work(p.Request, func() {
		p.waiting = append(p.waiting, began)
		p.commitNext()
	})
}

// commitNext commits all waiting writes, unless a commit runs.
func (p *play) commitNext() {
	if p.committing || len(p.waiting) == 0 {
		return
	}
	p.committing = true
	n := min(len(p.waiting), p.Most)
	group := p.waiting[:n:n]
	p.waiting = p.waiting[n:]
	processor, disk := p.commit(n)
	began := p.now
	p.work(processor, func() {
		p.after(disk, func() {
			p.committing = false
			p.held += p.now - began
			p.groups++
			p.written = append(p.written, group)
			p.feedNext()
			p.commitNext()
		})
	})
}

// feedNext publishes the next group, and answers its clients.
func (p *play) feedNext() {
	if p.feeding || len(p.written) == 0 {
		return
	}
	p.feeding = true
	group := p.written[0]
	p.written = p.written[1:]
	began := p.now
	p.work(p.Feed*time.Duration(len(group)), func() {
		p.feeding = false
		p.feedTime += p.now - began
		for _, asked := range group {
			p.done++
			p.took += p.now - asked
			p.request()
		}
		p.feedNext()
	})
}
