package simulated_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/objects"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// durations are the steps of time.
var durations = []time.Duration{time.Millisecond, 5 * time.Millisecond, 25 * time.Millisecond, 25 * time.Millisecond, 300 * time.Millisecond, 2500 * time.Millisecond, 15 * time.Second}

func any1[T any](all []T, n uint32) (one T, ok bool) {
	if len(all) == 0 {
		return one, false
	}
	return all[int(n)%len(all)], true
}

// step takes one step, if it is possible.
func (w *world) step(s step) {
	server := w.anyServer(s.b)
	switch s.do {
	case answerCall:
		if c, ok := any1(w.answerable(), s.a); ok {
			fault := uint32(0)
			if s.b%100 < w.cfg.faults {
				fault = 1 + s.c%6
			}
			if w.short = 0; s.d%8 == 0 {
				w.short = 1 + s.d/8%3
			}
			text := c.String()
			w.say("%s %s", text, w.answer(c, fault))
		}
	case executeCall:
		all := slices.DeleteFunc(w.answerable(), func(c *call) bool { return c.done || c.own || strings.HasPrefix(c.method, "Lead") })
		if c, ok := any1(all, s.a); ok {
			w.short = 0
			w.execute(c)
			w.say("%s is executed, and not answered yet", c)
		}
	case pass:
		d := durations[int(s.a)%len(durations)]
		time.Sleep(d)
		w.say("%s pass", d)
	case startWrite:
		if server != nil && w.writing() < 5 {
			w.write(server, s.a, s.c, s.d)
		}
	case startGet:
		if server != nil && len(w.open) < 12 {
			w.get(server, s.a, s.c)
		}
	case startList:
		if server != nil && len(w.pagers) < 6 {
			w.list(server, s.a, s.c)
		}
	case nextPage:
		if p, ok := any1(w.pagers, s.a); ok && !p.busy && server != nil {
			w.page(server, p)
		}
	case turnWatcher:
		x, _ := any1(w.watchers, s.a)
		w.turn(x, server, s.c, s.d%10 < 7)
	case disconnectWatcher:
		if x, _ := any1(w.watchers, s.a); x.stream != nil {
			w.say("%s disconnects", x)
			x.disconnect()
		}
	case giveHint:
		if server, _ := any1(w.servers, s.a); w.hint(server) {
			w.say("%s is hinted to look", server)
		}
	case burst:
		if !w.cfg.exclusive {
			w.burst(s)
		}
	case giveUp:
		if r, ok := any1(w.open, s.a); ok {
			w.say("the client of %s gives up", r)
			r.cancel()
		}
	case startPast:
		if server != nil {
			w.past(server, s.a)
		}
	case startServer:
		w.restart(int(s.a) % len(w.servers))
	case killServer:
		if server, _ := any1(w.servers, s.a); !server.stopping {
			w.say("%s is killed", server)
			w.kill(server, s.c)
		}
	case stopServer:
		if server, _ := any1(w.servers, s.a); !server.stopping {
			w.say("%s is stopped", server)
			w.leave(server)
		}
	case compactTo:
		w.compact(s.a, s.b)
	case takeLead:
		if name, ok := any1(slices.Sorted(maps.Keys(w.leaders)), s.a); ok {
			d := w.leaders[name]
			w.say("%s loses the lead of %s", d.server, name)
			w.unlead(d, name)
		}
	case lateCommit:
		if m, ok := any1(w.late, s.a); ok {
			w.finishLate(m)
		}
	case failOver:
		if !w.cfg.exclusive {
			w.failOver(s.a)
		}
	case upkeep:
		switch {
		case server == nil:
		case s.a%3 == 0:
			server.cache.EndSlow()
		case s.a%3 == 1:
			server.cache.Forget()
		default:
			server.cache.Pack(context.Background())
		}
	}
}

// answerable returns the calls that may be answered now.
func (w *world) answerable() []*call {
	now := time.Now()
	return slices.DeleteFunc(w.waiting(), func(c *call) bool { return c.due.After(now) })
}

// restart starts a server in the place of one that has ended.
func (w *world) restart(machine int) {
	s := w.servers[machine]
	if !s.over() || !s.stopping {
		return
	}
	s.driver.Close()
	w.servers[machine] = w.start(machine, s.life+1)
	w.say("%s starts", w.servers[machine])
}

func (w *world) finishLate(m *commit) {
	w.late = slices.DeleteFunc(w.late, func(o *commit) bool { return o == m })
	if m.done || m.never {
		return
	}
	for _, s := range w.servers {
		s.driver.hinted = true
	}
	err := m.run(w, w.outside)
	w.say("a commit of a connection that is gone comes to its end (%s): %v", describe(m.batch), err)
}

// compact compacts up to any revision.
func (w *world) compact(a, b uint32) {
	floor := w.logFloor()
	to := floor + int64(a)%(w.head()-floor+1)
	var err error
	if w.cfg.store.LogRetention > 0 && w.cfg.store.LogRetention < w.cfg.store.Retention {
		past := int64(b) % (to + 1)
		_, err = w.outside.Retain(context.Background(), sqlstore.Floors{Log: to, Past: map[string]int64{"": past}})
		w.say("the log is compacted to %d, snapshots to %d: %v", to, past, err)
	} else {
		_, err = w.outside.Trim(context.Background(), to, 1<<20)
		w.say("history is compacted to %d: %v", to, err)
	}
	if err != nil {
		w.failed("compaction: %v", err)
	}
}

// failOver promotes a standby that may lack the last commits. All connections break.
func (w *world) failOver(a uint32) {
	head := w.head()
	b := failover{found: head, goesOn: head + 5}
	if n := len(w.ends) - 1 - int(a%4); n >= 0 && w.ends[n] >= w.logFloor() {
		b.found = w.ends[n] // a standby has whole commits
	}
	var rows []sqlstore.Row
	for key := range w.keys {
		if e := w.state(key, b.found); e != nil {
			rows = append(rows, sqlstore.Row{Key: e.key, Revision: e.revision, Created: e.created, Value: []byte(e.value), ExpiresAt: e.expires, WrittenAt: time.Now()})
		}
	}
	w.db = memory.New(memory.Config{})
	w.outside.Close()
	w.outside = w.db.Open()
	err := w.outside.Load(context.Background(), sqlstore.Content{Bounds: sqlstore.Bounds{Floor: b.goesOn, Head: b.goesOn}, Rows: func(yield func(sqlstore.Row, error) bool) {
		for _, row := range rows {
			if !yield(row, nil) {
				return
			}
		}
	}})
	if err != nil {
		w.failed("filling a standby: %v", err)
		return
	}
	w.say("a standby is promoted that has everything up to %d of %d, and goes on behind %d", b.found, head, b.goesOn)
	for r := b.found + 1; r <= head; r++ {
		if k := w.writes[w.at(r).value]; k != nil {
			delete(k.seen, w.at(r).value)
		}
	}
	for w.head() < b.goesOn {
		w.log = append(w.log, entry{revision: w.head() + 1})
	}
	w.breaks, w.ends = append(w.breaks, b), append(w.ends, b.goesOn)
	w.shown = max(w.shown, b.goesOn) // reads from here on are of the standby, or newer
	for _, m := range w.late {
		m.never = true
	}
	w.late = nil
	for _, s := range w.servers {
		s.driver.inner.Close()
		s.driver.inner = w.db.Open()
		s.driver.hinted = true
	}
	for _, name := range slices.Sorted(maps.Keys(w.leaders)) {
		w.unlead(w.leaders[name], name)
	}
	for _, c := range w.waiting() {
		switch {
		case c.own:
		case c.commit != nil && c.done:
			c.driver.cut = c.commit
			w.release(c, fmt.Errorf("%w: the primary has gone", sqlstore.ErrUncertain))
		default:
			w.release(c, fmt.Errorf("%w: the primary has gone", sqlstore.ErrUnavailable))
		}
		w.settle()
	}
}

// heal ends all faults, and judges whether everything comes to rest, and how.
func (w *world) heal() {
	w.say("all faults end")
	w.short = 0
	for _, m := range slices.Clone(w.late) {
		w.finishLate(m)
	}
	for until := time.Now().Add(5 * time.Minute); w.violation == ""; {
		busy := false
		for i := range w.servers {
			w.restart(i)
			w.settle()
		}
		for _, c := range w.answerable() {
			w.mu.Lock()
			still := slices.Contains(w.calls, c)
			w.mu.Unlock()
			if still {
				busy = busy || c.method != "sleep"
				w.say("%s is answered", c)
				w.answer(c, 0)
				w.settle()
			}
		}
		for _, s := range w.servers {
			busy = w.hint(s) || busy
			w.settle()
		}
		for _, x := range w.watchers {
			before := len(w.open)
			w.turn(x, w.anyServer(uint32(x.number)), 0, true)
			busy = busy || len(w.open) > before
			w.settle()
		}
		for i, p := range slices.Clone(w.pagers) {
			if s := w.anyServer(uint32(i)); s != nil && !p.busy {
				busy = true
				w.page(s, p)
				w.settle()
			}
		}
		if busy || w.violation != "" {
			continue
		}
		missing := w.missing()
		if missing == "" {
			break
		}
		if time.Now().After(until) {
			w.failed("five minutes after the last fault %s", missing)
		}
		time.Sleep(250 * time.Millisecond)
		w.settle()
	}
	if w.violation == "" {
		w.judgeRest()
	}
}

// missing describes the first part that is not at rest.
func (w *world) missing() string {
	serving := w.serving()
	switch {
	case len(serving) < len(w.servers):
		return "a server does not serve"
	case len(w.open) > 0:
		return fmt.Sprintf("%s has no answer", w.open[0])
	case len(w.pagers) > 0:
		return "a list has not ended"
	}
	for _, s := range serving {
		if at := s.cache.Revision(); at != w.head() {
			return fmt.Sprintf("%s has revision %d of %d", s, at, w.head())
		}
	}
	for _, x := range w.watchers {
		if !w.complete(x) {
			return fmt.Sprintf("%s, connected to %v, has what was shown up to %d of %d", x, x.server, x.at, w.head())
		}
	}
	return ""
}

// judgeRest compares everything at rest.
func (w *world) judgeRest() {
	for _, s := range w.serving() {
		for n := range uint32(8) {
			wish := w.wish(n)
			found, err := s.Collection(permit, objects.Place{Resource: resourceOf(wish.resource), Namespace: wish.namespace})
			if err != nil {
				w.failed("%v", err)
				return
			}
			var items []*cache.Item
			found.Select(wish.filter(), cache.Position{}, func(it *cache.Item) bool {
				items = append(items, it)
				return true
			})
			if text := w.differs(wish, items, found.Revision); text != "" || found.Revision != w.head() {
				w.failed("in the end %s has of %s at %d of %d: %s", s, wish, found.Revision, w.head(), text)
			}
		}
	}
	for _, x := range w.watchers {
		for range 5 {
			if x.at < w.head() && x.stream != nil && !x.busy {
				w.take(x)
				w.settle()
			}
		}
		if x.at < w.head() && x.stream != nil && w.violation == "" && !x.busy {
			w.failed("%s got everything up to %d, and no mark at %d", x, x.at, w.head())
		}
	}
}

// end ends everything that runs: servers are stopped if all is well, and killed otherwise.
func (w *world) end() {
	for _, s := range w.servers {
		if w.violation == "" && !s.stopping {
			w.leave(s)
		}
	}
	for until := time.Now().Add(time.Minute); w.violation == "" && slices.ContainsFunc(w.servers, func(s *server) bool { return !s.over() }); {
		for _, c := range w.answerable() {
			w.answer(c, 0)
			w.settle()
		}
		if time.Now().After(until) {
			w.failed("a server does not end within a minute")
		}
		time.Sleep(100 * time.Millisecond)
		w.settle()
	}
	for _, s := range w.servers {
		if !s.over() {
			w.kill(s, 2)
		}
		synctest.Wait()
	}
	for _, r := range w.open {
		r.cancel()
	}
	for _, x := range w.watchers {
		x.disconnect()
	}
	synctest.Wait()
	for _, s := range w.servers {
		s.driver.Close()
		s.cache.Close()
	}
	w.outside.Close()
}
