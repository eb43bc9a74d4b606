package contention_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/contention"
	"github.com/rowlock/rowlock/sqlstore"
)

var key = sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "c"}

// loser returns a writer that lost its first try.
func loser(l *contention.Queues) *contention.Writer {
	w := l.Writer(key, "ann")
	w.Conflicted()
	return &w
}

// try calls Wait in a goroutine of its own; the channel receives the result.
func try(ctx context.Context, w *contention.Writer, pinned bool) <-chan error {
	may := make(chan error, 1)
	go func() { may <- w.Wait(ctx, pinned) }()
	return may
}

func waits(t *testing.T, may <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-may:
		t.Fatalf("it does not wait: %v", err)
	default:
	}
}

func goes(t *testing.T, may <-chan error) {
	t.Helper()
	synctest.Wait()
	select {
	case err := <-may:
		if err != nil {
			t.Fatal(err)
		}
	default:
		t.Fatal("it waits")
	}
}

// TestNobodyIsInTheWay: as long as no writer loses, none is known.
func TestNobodyIsInTheWay(t *testing.T) {
	var l contention.Queues
	for range 3 {
		w := l.Writer(key, "ann")
		if err := w.Wait(t.Context(), false); err != nil || l.Waiting(key) != 0 {
			t.Fatal(err, l.Waiting(key))
		}
		defer w.Done()
	}
}

// TestOrder: losers go one after the other, newcomers after them, and a writer that loses in its turn keeps
// its place.
func TestOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l contention.Queues
		a, b := loser(&l), loser(&l)
		c := l.Writer(key, "ann")
		goes(t, try(t.Context(), a, false))
		second := try(t.Context(), b, false)
		waits(t, second)
		third := try(t.Context(), &c, false)
		waits(t, third)
		a.Conflicted()
		goes(t, try(t.Context(), a, false)) // still its turn
		waits(t, second)
		other := l.Writer(sqlstore.Key{Resource: "configmaps", Namespace: "a", Name: "d"}, "ann")
		goes(t, try(t.Context(), &other, false))
		a.Done()
		goes(t, second)
		waits(t, third)
		b.Done()
		goes(t, third)
		c.Done()
		if n := l.Waiting(key); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// TestCancelled: a canceled writer leaves the queue, wherever its place.
func TestCancelled(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l contention.Queues
		first, second, third := loser(&l), loser(&l), loser(&l)
		goes(t, try(t.Context(), first, false))
		ctx, cancel := context.WithCancel(t.Context())
		given := try(ctx, second, false)
		waits(t, given)
		last := try(t.Context(), third, false)
		waits(t, last)
		cancel()
		if err := <-given; !errors.Is(err, context.Canceled) {
			t.Fatal(err)
		}
		second.Done()
		if n := l.Waiting(key); n != 2 {
			t.Errorf("%d wait, want 2", n)
		}
		first.Done()
		goes(t, last)
		third.Done()
		if n := l.Waiting(key); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// TestATurnEnds: a slow writer does not delay the others forever, keeps its
// place, and has twice the time in its next turn.
func TestATurnEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l contention.Queues
		slow, quick := loser(&l), loser(&l)
		goes(t, try(t.Context(), slow, false))
		second := try(t.Context(), quick, false)
		waits(t, second)
		time.Sleep(3 * time.Second)
		goes(t, second)
		slow.Conflicted() // to the other
		again := try(t.Context(), slow, false)
		waits(t, again)
		late := l.Writer(key, "ann")
		third := try(t.Context(), &late, false)
		waits(t, third)
		quick.Done()
		goes(t, again) // before later ones
		time.Sleep(3 * time.Second)
		waits(t, third) // it has four seconds now
		slow.Done()
		goes(t, third)
		late.Done()
	})
}

// TestUsersTakeTurns: others wait for only one of a user's many slow writers, and writers that come again and
// again do not overtake it forever.
func TestUsersTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l contention.Queues
		var crowd []*contention.Writer
		var goesOn []<-chan error
		for range 20 {
			w := loser(&l)
			crowd, goesOn = append(crowd, w), append(goesOn, try(t.Context(), w, false))
			synctest.Wait()
		}
		goes(t, goesOn[0])
		came := func() (*contention.Writer, <-chan error) {
			w := l.Writer(key, "bob")
			may := try(t.Context(), &w, false)
			waits(t, may)
			return &w, may
		}
		bob, his := came()
		crowd[0].Done()
		goes(t, his)
		rest := 1
		for ; rest < 7; rest++ { // he comes again before he is done
			again, next := came()
			bob.Done()
			goes(t, goesOn[rest])
			waits(t, next)
			crowd[rest].Done()
			goes(t, next)
			bob = again
		}
		bob.Done()
		for ; rest < len(crowd); rest++ {
			goes(t, goesOn[rest])
			crowd[rest].Done()
		}
		if n := l.Waiting(key); n != 0 {
			t.Errorf("%d are left", n)
		}
	})
}

// TestPinned: a writer that names a version does not wait, unless another loses to such writers again and
// again.
func TestPinned(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l contention.Queues
		w := loser(&l)
		goes(t, try(t.Context(), w, false))
		for range 3 {
			p := l.Writer(key, "ann")
			goes(t, try(t.Context(), &p, true))
			p.Done()
			w.Conflicted()
			goes(t, try(t.Context(), w, false))
		}
		p := l.Writer(key, "ann")
		may := try(t.Context(), &p, true)
		waits(t, may)
		w.Done()
		goes(t, may)
		p.Done()
	})
}

// TestRests: a writer that loses very often pauses between its attempts, and not when its request ends.
func TestRests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l contention.Queues
		w := l.Writer(key, "ann")
		defer w.Done()
		at := time.Now()
		for range 100 {
			w.Conflicted()
			goes := w.Wait(t.Context(), false)
			if goes != nil {
				t.Fatal(goes)
			}
		}
		if rested := time.Since(at); rested == 0 || rested > 2*time.Second {
			t.Errorf("it rested for %v", rested)
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := w.Wait(ctx, false); !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}
