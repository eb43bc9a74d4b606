package seats

import (
	"context"
	"math"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// one returns a level with queues that has all seats.
func (s *Scheduler) one(queues, hand, length int) *Level {
	return s.Configure([]Config{{Name: "one", Kind: Queue, Shares: 1, Borrowing: -1, Queues: queues, Hand: hand, Length: length}})[0]
}

// run runs a request for a time, and returns how long it waited.
func run(t *testing.T, s *Scheduler, r *Request, lasts time.Duration) (waited time.Duration) {
	start := time.Now()
	if err := s.Enter(context.Background(), r); err != nil {
		t.Errorf("refused: %v", err)
		return 0
	}
	waited = time.Since(start)
	time.Sleep(lasts)
	s.Leave(r)
	return waited
}

// A flow with many requests does not keep one with few waiting for more than its turn.
func TestFairness(t *testing.T) {
	bubble(t, 4, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(64, 1, 500), &Flow{}
		var served, ended atomic.Int64
		for range 400 {
			go func() {
				run(t, s, &Request{Level: l, Flow: counts, Hash: 1, Patience: time.Hour}, 100*time.Millisecond)
				ended.Add(1)
			}()
		}
		time.Sleep(time.Second)
		for range 20 {
			if waited := run(t, s, &Request{Level: l, Flow: counts, Hash: 2, Patience: time.Hour}, 100*time.Millisecond); waited > 100*time.Millisecond {
				t.Errorf("a mouse waited for %s", waited)
			}
			served.Add(1)
		}
		if ended.Load() > 350 {
			t.Error("the elephant had gone already")
		}
		for ended.Load() < 400 {
			time.Sleep(time.Second)
		}
		synctest.Wait()
		s.drained(t)
	})
}

// Two flows that always have requests waiting get seats alike, by what their requests take:
// wide or long ones are fewer.
func TestFairnessByWork(t *testing.T) {
	for _, c := range []struct {
		name  string
		seats [2]int
		lasts [2]time.Duration
		want  float64 // requests of the first for each of the second
	}{
		{"alike", [2]int{1, 1}, [2]time.Duration{20 * time.Millisecond, 20 * time.Millisecond}, 1},
		{"wide", [2]int{1, 4}, [2]time.Duration{20 * time.Millisecond, 20 * time.Millisecond}, 4},
		{"long", [2]int{1, 1}, [2]time.Duration{20 * time.Millisecond, 100 * time.Millisecond}, 5},
	} {
		t.Run(c.name, func(t *testing.T) {
			bubble(t, 8, Limits{}, func(t *testing.T, s *Scheduler) {
				l, counts := s.one(64, 1, 500), &Flow{}
				var served [2]atomic.Int64
				var over atomic.Bool
				for i := range 2 {
					for range 40 {
						go func() {
							for !over.Load() {
								run(t, s, &Request{Level: l, Flow: counts, Hash: uint64(i), Seats: c.seats[i], Patience: time.Hour}, c.lasts[i])
								served[i].Add(1)
							}
						}()
					}
				}
				time.Sleep(20 * time.Second)
				got := float64(served[0].Load()) / float64(served[1].Load())
				if got < 0.8*c.want || got > 1.25*c.want {
					t.Errorf("%d and %d were served: %.2f, want %.2f", served[0].Load(), served[1].Load(), got, c.want)
				}
				over.Store(true)
				time.Sleep(20 * time.Second)
				s.drained(t)
			})
		})
	}
}

// Seats that a level does not use go to one that wants more, within its bounds, and come
// back.
func TestBorrowing(t *testing.T) {
	bubble(t, 100, Limits{}, func(t *testing.T, s *Scheduler) {
		levels := s.Configure([]Config{
			{Name: "busy", Kind: Queue, Shares: 30, Lendable: 50, Borrowing: 100, Queues: 1, Hand: 1, Length: 1000},
			{Name: "idle", Kind: Queue, Shares: 60, Lendable: 50, Borrowing: -1, Queues: 1, Hand: 1, Length: 1000},
			{Name: "strict", Kind: Reject, Shares: 10, Lendable: 0, Borrowing: 0},
		})
		limits := func() (list []int) {
			states, _ := s.States(OfLevels)
			for _, l := range states {
				list = append(list, l.Limit)
			}
			return list
		}
		counts := &Flow{}
		var over atomic.Bool
		load := func(l *Level, n int) {
			for range n {
				go func() {
					for !over.Load() {
						run(t, s, &Request{Level: l, Flow: counts, Patience: time.Hour}, 50*time.Millisecond)
					}
				}()
			}
		}
		load(levels[0], 200)
		time.Sleep(21 * time.Second)
		if got := limits(); !slices.Equal(got, []int{60, 30, 10}) {
			t.Errorf("with one busy: %v", got)
		}
		load(levels[1], 200)
		time.Sleep(21 * time.Second)
		if got := limits(); got[0]+got[1] != 90 || got[0] < 29 || got[0] > 31 {
			t.Errorf("with both busy: %v", got)
		}
		over.Store(true)
		time.Sleep(20 * time.Second)
		s.drained(t)
	})
}

func TestAllocate(t *testing.T) {
	for _, c := range []struct {
		total  float64
		claims []claim
		want   []float64
		fair   float64
	}{
		{10, []claim{{0, 10, 2}, {0, 10, 3}}, []float64{4, 6}, 2},
		{10, []claim{{1, 3, 2}, {0, 10, 3}}, []float64{3, 7}, 7. / 3},
		{10, []claim{{8, 10, 1}, {0, 10, 4}}, []float64{8, 2}, 0.5},
		{10, []claim{{8, 10, 1}, {5, 10, 4}}, []float64{8, 5}, 1.25},
		{100, []claim{{0, 10, 1}, {0, 20, 4}}, []float64{10, 20}, 10},
		{6, []claim{{0, 10, 0}, {0, 10, 0}}, []float64{3, 3}, 3000},
	} {
		got, fair := allocate(c.total, c.claims)
		for i := range got {
			if math.Abs(got[i]-c.want[i]) > 1e-9 {
				t.Errorf("%v of %v: %v", c.total, c.claims, got)
			}
		}
		if math.Abs(fair-c.fair) > 1e-9 {
			t.Errorf("%v of %v: fair part %v, want %v", c.total, c.claims, fair, c.fair)
		}
	}
}

// Each hand is of different cards, and all cards are dealt alike.
func TestDeal(t *testing.T) {
	const deck, n = 13, 5
	var dealt [deck]int
	var buf [maxHand]int
	for hash := range uint64(deck * (deck - 1) * (deck - 2) * (deck - 3) * (deck - 4)) {
		hand := deal(buf[:0], hash, deck, n)
		for i, card := range hand {
			if card < 0 || card >= deck || i > 0 && card <= hand[i-1] {
				t.Fatalf("%d: %v", hash, hand)
			}
			dealt[card]++
		}
	}
	if slices.Max(dealt[:]) != slices.Min(dealt[:]) {
		t.Errorf("cards were dealt %v times", dealt)
	}
}

// The seats of a write with many watchers stay taken for a while after it, even if only waiting requests need
// them.
func TestExtraSeats(t *testing.T) {
	bubble(t, 3, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(1, 1, 9), &Flow{}
		run(t, s, &Request{Level: l, Flow: counts, Extra: 3, ExtraFor: 200 * time.Millisecond}, time.Millisecond)
		if waited := run(t, s, &Request{Level: l, Flow: counts, Patience: time.Hour}, 0); waited < 190*time.Millisecond || waited > 220*time.Millisecond {
			t.Errorf("the next one waited for %s", waited)
		}
		s.drained(t)
	})
}

// A removed level serves its waiting requests; one that becomes exempt, at once.
func TestLevelsThatChange(t *testing.T) {
	bubble(t, 2, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(4, 1, 9), &Flow{}
		done := make(chan time.Duration, 10)
		for range 6 {
			go func() { done <- run(t, s, &Request{Level: l, Flow: counts, Patience: time.Hour}, time.Second) }()
		}
		synctest.Wait()
		s.Configure([]Config{{Name: "other", Kind: Reject, Shares: 1}})
		if states, _ := s.States(OfLevels); len(states) != 2 || !states[0].Draining || states[0].Waiting != 4 {
			t.Errorf("%+v", states)
		}
		for range 6 {
			<-done
		}
		s.Configure([]Config{{Name: "other", Kind: Reject, Shares: 1}})
		if states, _ := s.States(OfLevels); len(states) != 1 || states[0].Limit != 2 {
			t.Errorf("%+v", states)
		}
		l = s.one(4, 1, 9)
		for range 6 {
			go func() { done <- run(t, s, &Request{Level: l, Flow: counts, Patience: time.Hour}, time.Second) }()
		}
		synctest.Wait()
		s.Configure([]Config{{Name: "one", Kind: Exempt}})
		for range 6 {
			if waited := <-done; waited > 0 {
				t.Errorf("one waited for %s", waited)
			}
		}
		s.drained(t)
	})
}

// A level has no more than its queues hold, and no more queues than are of use.
func TestQueuesAreBounded(t *testing.T) {
	bubble(t, 1, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(10_000_000, 5, 3), &Flow{}
		hold := &Request{Level: l, Flow: counts}
		if err := s.Enter(context.Background(), hold); err != nil {
			t.Fatal(err)
		}
		refused := make(chan error, 100)
		for range 20 {
			go func() {
				r := &Request{Level: l, Flow: counts, Hash: 7, Patience: time.Second}
				err := s.Enter(context.Background(), r)
				s.Leave(r)
				refused <- err
			}()
		}
		synctest.Wait()
		if len(refused) != 5 || len(l.queues) != maxQueues {
			t.Errorf("%d of 20 were refused, with room for 15; %d queues", len(refused), len(l.queues))
		}
		s.Leave(hold)
		for range 20 {
			if err := <-refused; err != nil && err != QueueFull {
				t.Error(err)
			}
		}
		s.drained(t)
	})
}

func TestDecisionsAllocateNothing(t *testing.T) {
	s, l, counts := busy()
	r := &Request{}
	if n := testing.AllocsPerRun(1000, func() {
		*r = Request{Level: l, Flow: counts, Hash: 12345, User: "somebody", Seats: 2}
		if s.Enter(context.Background(), r) != nil {
			t.Error("refused")
		}
		s.Leave(r)
	}); n != 0 {
		t.Errorf("a decision allocates %v times", n)
	}
}

// busy returns a scheduler of usual size of which some seats are taken.
func busy() (*Scheduler, *Level, *Flow) {
	began := time.Now()
	s := New(600, Limits{Share: [2]int{100, 50}, Open: [2]int{300, 250}, Bodies: 64 << 20}, func() time.Duration { return time.Since(began) + 1 })
	l, counts := s.one(128, 6, 50), &Flow{}
	for i := range 100 {
		_ = s.Enter(context.Background(), &Request{Level: l, Flow: counts, Hash: uint64(i) * 0x9e3779b97f4a7c15, User: "others"})
	}
	return s, l, counts
}

func BenchmarkDecision(b *testing.B) {
	s, l, counts := busy()
	r := &Request{}
	b.ReportAllocs()
	for b.Loop() {
		*r = Request{Level: l, Flow: counts, Hash: 0x123456789abcdef, User: "somebody"}
		if s.Enter(context.Background(), r) != nil {
			b.Fatal("refused")
		}
		s.Leave(r)
	}
}

// A request whose body another goroutine reads may end while that waits for seats: none are
// lost, and the other one hears of it.
func TestLeavesWhileItsBodyWaits(t *testing.T) {
	bubble(t, 1, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(4, 1, 9), &Flow{}
		r := &Request{Level: l, Flow: counts, User: "a"}
		if err := s.Enter(context.Background(), r); err != nil {
			t.Fatal(err)
		}
		s.Pause(r)
		other := &Request{Level: l, Flow: counts, User: "b"}
		if err := s.Enter(context.Background(), other); err != nil {
			t.Fatal(err)
		}
		ended := make(chan error, 2)
		for range 2 { // the body's goroutine, and that of the answer
			go func() { ended <- s.Resume(context.Background(), r) }()
		}
		synctest.Wait()
		s.Leave(r)
		synctest.Wait()
		if len(ended) != 2 {
			t.Error("a request waits for the seats of one that has ended")
		}
		s.Pause(r)
		if err := s.Resume(context.Background(), r); err != nil {
			t.Error(err)
		}
		s.Leave(other)
		s.drained(t)
	})
}

// A write may end at the very moment at which its seats are taken: either they are not, or the writer waits
// for others. A request never continues without seats.
func TestWritesThatEndAsSeatsAreTaken(t *testing.T) {
	var clock atomic.Int64
	clock.Store(1)
	s := New(1, Limits{}, func() time.Duration { return time.Duration(clock.Load()) })
	l, counts := s.one(1, 1, 9), &Flow{}
	ctx := context.Background()
	var inside atomic.Int64
	works := func() {
		if n := inside.Add(1); n > 1 {
			t.Errorf("%d work, with one seat", n)
		}
		runtime.Gosched()
		inside.Add(-1)
	}
	var both sync.WaitGroup
	for range 4 {
		both.Go(func() {
			for range 500 {
				r := &Request{Level: l, Flow: counts, Patience: time.Hour}
				if err := s.Enter(ctx, r); err != nil {
					t.Error(err)
					return
				}
				for range 3 {
					works()
					s.Sending(r)
					clock.Add(int64(Unmoved)) // so that the next request takes the seats
					runtime.Gosched()
					if err := s.Sent(ctx, r); err != nil {
						t.Error(err)
					}
				}
				works()
				s.Leave(r)
			}
		})
	}
	both.Wait()
	s.drained(t)
}

// The same with each order of the steps.
func TestWhoTakesSeatsAndWhoEndsAWrite(t *testing.T) {
	bubble(t, 1, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(1, 1, 9), &Flow{}
		r := &Request{Level: l, Flow: counts}
		if err := s.Enter(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		s.Sending(r)
		if r.stuck(s.now()) != 0 {
			t.Error("a write is stuck that has just begun")
		}
		time.Sleep(Unmoved)
		since := r.stuck(s.now())
		if err := s.Sent(t.Context(), r); since == 0 || err != nil || r.lose(since) {
			t.Errorf("seats are taken for a write of %d that has ended: %v", since, err)
		}
		s.Sending(r)
		time.Sleep(Unmoved)
		if r.lose(since) {
			t.Error("seats are taken for a write before this one")
		}
		other := &Request{Level: l, Flow: counts, Patience: time.Minute}
		if err := s.Enter(t.Context(), other); err != nil || r.seated || r.stuck(s.now()) != 0 {
			t.Error("no seat of a write that is stuck, or one twice", err)
		}
		ended := make(chan error)
		go func() { ended <- s.Sent(t.Context(), r) }()
		synctest.Wait()
		select {
		case <-ended:
			t.Error("it goes on without a seat")
		default:
		}
		s.Leave(other)
		if err := <-ended; err != nil || !r.seated {
			t.Error("it has no seat again", err)
		}
		s.Leave(r)
		s.drained(t)
	})
}

// While a request waits for its client with both its answer and its body, seats that it got
// for the one are not held for the other.
func TestSeatsForABodyDuringAWrite(t *testing.T) {
	bubble(t, 1, Limits{}, func(t *testing.T, s *Scheduler) {
		l, counts := s.one(4, 1, 9), &Flow{}
		slow := &Request{Level: l, Flow: counts, User: "a"}
		if err := s.Enter(t.Context(), slow); err != nil {
			t.Fatal(err)
		}
		s.Sending(slow)
		for range 2 {
			time.Sleep(Unmoved)
			r := &Request{Level: l, Flow: counts, User: "b", Patience: time.Minute}
			if err := s.Enter(t.Context(), r); err != nil {
				t.Fatal(err)
			}
			if waited, _ := r.Waited(); waited > 2*Unmoved {
				t.Errorf("a request waited %v for one that writes", waited)
			}
			s.Leave(r)
			if err := s.Resume(t.Context(), slow); err != nil { // that of its body
				t.Fatal(err)
			}
		}
		if err := s.Sent(t.Context(), slow); err != nil || !slow.seated {
			t.Error("it goes on without a seat", err)
		}
		s.Leave(slow)
		s.drained(t)
	})
}

// A request that lost several seats gets them back before later requests, however few these need: free seats
// are reserved for it.
func TestWideRequestsAreNotPassed(t *testing.T) {
	for _, kind := range []Kind{Queue, Reject} {
		bubble(t, 4, Limits{}, func(t *testing.T, s *Scheduler) {
			l := s.Configure([]Config{{Name: "one", Kind: kind, Shares: 1, Borrowing: -1, Queues: 8, Hand: 1, Length: 100}})[0]
			counts := &Flow{}
			enter := func(seats int) *Request {
				t.Helper()
				r := &Request{Level: l, Flow: counts, Hash: uint64(seats), Seats: seats, Patience: time.Hour}
				if err := s.Enter(t.Context(), r); err != nil {
					t.Fatal(err)
				}
				return r
			}
			wide := enter(3)
			s.Pause(wide)
			narrow := []*Request{enter(1), enter(1), enter(1)}
			resumed := make(chan error, 1)
			go func() { resumed <- s.Resume(t.Context(), wide) }()
			synctest.Wait()
			// One seat is free, and one more than that when a narrow one leaves.
			late := &Request{Level: l, Flow: counts, Hash: 1, Seats: 1, Patience: time.Hour}
			let := make(chan error, 1)
			go func() { let <- s.Enter(t.Context(), late) }()
			synctest.Wait()
			s.Leave(narrow[0])
			synctest.Wait()
			select {
			case err := <-let:
				if kind == Queue || err != Concurrency {
					t.Errorf("one passed a request that waits for its seats: %v", err)
				}
			default:
				if kind == Reject {
					t.Error("it waits where nothing does")
				}
			}
			s.Leave(narrow[1])
			if err := <-resumed; err != nil {
				t.Error(err)
			}
			s.Leave(wide)
			if kind == Queue {
				if err := <-let; err != nil {
					t.Error(err)
				}
				s.Leave(late)
			}
			s.Leave(narrow[2])
			s.drained(t)
		})
	}
}
