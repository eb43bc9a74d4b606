package budget

import (
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// TestLine: pieces of long answers take turns among users, and one whose client takes its
// time is passed by.
func TestLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(1)
		var mu sync.Mutex
		var order []string
		comes := func(user string) {
			go func() {
				if _, err := l.Enter(t.Context(), user); err == nil {
					mu.Lock()
					defer mu.Unlock()
					order = append(order, user)
				}
			}()
			synctest.Wait()
		}
		for _, user := range []string{"a", "a", "a", "b"} {
			comes(user)
		}
		for _, want := range [][]string{{"a"}, {"a", "b"}, {"a", "b", "a"}, {"a", "b", "a", "a"}} {
			mu.Lock()
			got := slices.Clone(order)
			mu.Unlock()
			if !slices.Equal(got, want) {
				t.Fatalf("let in were %q, want %q", got, want)
			}
			time.Sleep(Lap)
			synctest.Wait()
		}
	})
}

// TestLineAndShortAnswers: while there are short answers too, some processors are theirs.
func TestLineAndShortAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewLine(4)
		var mu sync.Mutex
		in := map[*Place]bool{}
		for range 10 {
			go func() {
				p, err := l.Enter(t.Context(), "a")
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				in[&p] = true
			}()
		}
		// next ends all turns, and says how many others have one then.
		next := func() int {
			synctest.Wait()
			mu.Lock()
			places := in
			in = map[*Place]bool{}
			mu.Unlock()
			for p := range places {
				p.Leave()
				p.Leave() // more than once does nothing
			}
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			return len(in)
		}
		// state is how many were let in, how many of them have had their turn, how many have
		// one, and how many users there are.
		state := func() (let, over, running, users int) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for p := range in {
				if p.Over() {
					over++
				}
			}
			l.gate.mu.Lock()
			defer l.gate.mu.Unlock()
			return len(in), over, l.gate.running, len(l.gate.users)
		}
		if let, _, _, _ := state(); let != 4 {
			t.Fatalf("%d have turns, of 4 processors", let)
		}
		// Those that have turns end them, and others follow: fewer, and after a rest.
		const took = 5 * time.Millisecond
		l.Short()
		time.Sleep(took)
		if n := next(); n != 0 {
			t.Errorf("%d have turns, without a rest", n)
		}
		time.Sleep(took)
		if let, _, running, _ := state(); let != 2 || running != 2 {
			t.Errorf("%d have turns beside short answers, of 4 processors", let)
		}
		// Turns end by themselves, but not more than one more follows each.
		time.Sleep(2 * Lap)
		if let, over, running, _ := state(); let != 4 || over != 2 || running != 2 {
			t.Errorf("%d were let in, of whom %d had their turn, %d have it", let, over, running)
		}
		time.Sleep(Lately)
		next()
		if _, _, running, users := state(); l.Turns() != 4 || running != 0 || users != 0 {
			t.Errorf("%d turns although there are no short answers; %d have a turn, %d users", l.Turns(), running, users)
		}
		var none *Line
		none.Short()
		if p, err := none.Enter(t.Context(), "a"); err != nil || p.Over() {
			t.Errorf("without a line: %v, over %t", err, p.Over())
		}
	})
}
