package seats

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"testing/synctest"
	"time"
)

// bubble runs a test with a scheduler whose clock is that of the bubble.
func bubble(t *testing.T, n int, l Limits, test func(t *testing.T, s *Scheduler)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		test(t, New(n, l, func() time.Duration { return time.Since(began) + 1 }))
	})
}

// sound checks the invariants of a scheduler at rest.
func (s *Scheduler) sound(t *testing.T) {
	t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	waiters := 0
	for _, l := range append(s.shared[:len(s.shared):len(s.shared)], s.fixed...) {
		running, used, waiting, wanted, active := 0, 0, 0, 0, 0
		for _, r := range s.running {
			if r.Level == l {
				running++
				used += r.Seats
			}
		}
		for _, e := range s.extras {
			if e.level == l {
				used += e.seats
			}
		}
		for _, q := range l.queues {
			if q == nil {
				continue
			}
			n, work := 0, 0.0
			for r := q.first; r != nil; r = r.after {
				n++
				waiting++
				wanted += r.Seats
				work += r.work()
			}
			if n != q.length || (n > 0) != (q.at >= 0) || work-q.work > 1e-6 || q.work-work > 1e-6 {
				t.Errorf("%s: queue %d of %d says %d at %d, work %v of %v", l.config.Name, q.index, n, q.length, q.at, q.work, work)
			}
			if n > 0 || q.running > 0 {
				active++
			}
		}
		for _, r := range l.resuming {
			wanted += r.Seats
		}
		waiters += waiting + len(l.resuming)
		if l.running != running || l.used != used || l.waiting != waiting || l.wanted != wanted || l.active != active {
			t.Errorf("%s: %d run with %d seats, of %d with %d; %d wait for %d, of %d for %d; %d active of %d",
				l.config.Name, l.running, l.used, running, used, l.waiting, l.wanted, waiting, wanted, l.active, active)
		}
		if r := l.next(); r != nil && !s.held(l) && l.room(r.Seats) {
			t.Errorf("%s: one waits for %d seats, of %d are %d taken", l.config.Name, r.Seats, l.limit, l.used)
		}
	}
	if s.waiters != waiters || waiters > 0 && !s.armed {
		t.Errorf("%d wait, not %d; armed %t", waiters, s.waiters, s.armed)
	}
}

// drained checks the state of an unused scheduler.
func (s *Scheduler) drained(t *testing.T) {
	t.Helper()
	s.sound(t)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.catchUp()
	if len(s.users) != 0 || len(s.running) != 0 || s.waiters != 0 || len(s.extras) != 0 || s.runs[0].Load() != 0 || s.runs[1].Load() != 0 {
		t.Errorf("left: %d users, %d that run, %d that wait, %d extras", len(s.users), len(s.running), s.waiters, len(s.extras))
	}
	for _, l := range s.shared {
		if !l.idle() || l.active != 0 || l.wanted != 0 {
			t.Errorf("%s is left with %d seats taken by %d, %d wait for %d, %d active", l.config.Name, l.used, l.running, l.waiting, l.wanted, l.active)
		}
	}
}

// TestModel makes many requests of all kinds come and go while levels change, and checks the scheduler's
// invariants.
func TestModel(t *testing.T) {
	all := map[string]int{}
	for seed := range uint64(30) {
		t.Run(fmt.Sprint(seed), func(t *testing.T) { model(t, seed, all) })
	}
	for _, outcome := range append(Reasons[:], Share, Slow, "served", "panicked") {
		if all[outcome.Error()] == 0 {
			t.Errorf("no request was %s: %v", outcome, all)
		}
	}
}

func model(t *testing.T, seed uint64, all map[string]int) {
	bubble(t, 12, Limits{Share: [2]int{4, 4}, Open: [2]int{5, 5}}, func(t *testing.T, s *Scheduler) {
		random := rand.New(rand.NewPCG(seed, 1))
		flow := &Flow{}
		configs := func() (list []Config) {
			for i := range 4 {
				if random.IntN(5) == 0 {
					continue
				}
				list = append(list, Config{
					Name: fmt.Sprint("level ", i), Kind: []Kind{Queue, Queue, Queue, Reject, Exempt}[random.IntN(5)],
					Shares: random.IntN(5), Lendable: random.IntN(101), Borrowing: random.IntN(200) - 1,
					Queues: 1 + random.IntN(8), Hand: 1 + random.IntN(3), Length: 1 + random.IntN(5),
				})
			}
			return list
		}
		levels := s.Configure(append(configs(), Config{Name: "last", Kind: Queue, Shares: 3, Queues: 4, Hand: 2, Length: 3}))
		outcomes := map[string]int{}
		ended := make(chan string, 10000)
		begun := 0
		for range 600 {
			switch random.IntN(12) {
			case 0:
				levels = s.Configure(append(configs(), Config{Name: "last", Kind: Queue, Shares: 3, Queues: 4, Hand: 2, Length: 3}))
			case 1, 2:
				time.Sleep(time.Duration(random.IntN(15)) * time.Millisecond)
			case 4:
				if random.IntN(10) == 0 {
					time.Sleep(11 * time.Second)
				}
			default:
				r := &Request{
					Level: levels[random.IntN(len(levels))], Flow: flow, Hash: uint64(random.IntN(6)) * 0x9e3779b97f4a7c15,
					User: fmt.Sprint("user ", random.IntN(4)), Class: Class(random.IntN(2)), Begins: random.IntN(8) == 0, Master: random.IntN(10) == 0,
					Seats: 1 + random.IntN(3), Patience: time.Duration(1+random.IntN(60)) * time.Millisecond,
				}
				if random.IntN(4) == 0 {
					r.Extra, r.ExtraFor = 1+random.IntN(3), time.Duration(random.IntN(20))*time.Millisecond
				}
				begun++
				go serve(s, r, rand.New(rand.NewPCG(seed, uint64(begun))), ended)
			}
			synctest.Wait()
			s.sound(t)
		}
		for range begun {
			outcome := <-ended
			outcomes[outcome]++
			all[outcome]++
		}
		time.Sleep(time.Second)
		synctest.Wait()
		s.Configure(nil)
		s.drained(t)
		n := s.Counts([]*Flow{flow})[0]
		if n.Running != 0 || n.Seats != 0 || n.Waiting != 0 || n.WaitingSeats != 0 || int(n.Dispatched) != outcomes["served"]+outcomes["panicked"] {
			t.Errorf("counted %+v, of %v", n, outcomes)
		}
		for i, why := range Reasons {
			if int(n.Rejected[i]) != outcomes[why.Error()] {
				t.Errorf("%d refused by %s, not %d", n.Rejected[i], why, outcomes[why.Error()])
			}
		}
	})
}

// serve is one request, with all that may happen to it.
func serve(s *Scheduler, r *Request, random *rand.Rand, ended chan<- string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if random.IntN(6) == 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(random.IntN(20))*time.Millisecond)
		defer cancel()
	}
	if err := s.Enter(ctx, r); err != nil {
		ended <- err.Error()
		return
	}
	how := "served"
	defer func() {
		if recover() != nil {
			how = "panicked"
		}
		s.Leave(r)
		s.Leave(r)
		ended <- how
	}()
	for range random.IntN(3) {
		time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
		switch random.IntN(4) {
		case 0:
			s.Pause(r)
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond)
			if s.Resume(ctx, r) != nil {
				return
			}
		case 1, 2:
			s.Sending(r)
			time.Sleep(time.Duration(random.IntN(50)) * time.Millisecond)
			if s.Sent(ctx, r) != nil {
				return
			}
		case 3:
			panic(errors.New("a handler"))
		}
	}
}
