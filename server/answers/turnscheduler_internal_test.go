package answers

import (
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/server/fair"
	"github.com/rowlock/rowlock/server/request"
)

// TestLineAndShortAnswers: while there are short answers too, some processors are theirs.
func TestLineAndShortAnswers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := NewTurnScheduler(4)
		var mu sync.Mutex
		in := map[*fair.Place]bool{}
		for range 10 {
			go func() {
				p, err := l.gate.Enter(t.Context(), "a", 0)
				if err != nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				in[p] = true
			}()
		}
		// next ends all turns, and returns how many others then begin.
		next := func() int {
			synctest.Wait()
			mu.Lock()
			places := in
			in = map[*fair.Place]bool{}
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
		// state returns how many were let in, and how many of them have had their turn.
		state := func() (let, over int) {
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			for p := range in {
				if p.TurnEnded() {
					over++
				}
			}
			return len(in), over
		}
		if let, _ := state(); let != 4 {
			t.Fatalf("%d have turns, of 4 processors", let)
		}
		// Those that have turns end them, and others follow: fewer, and after a rest.
		const took = 5 * time.Millisecond
		l.RecordShort()
		time.Sleep(took)
		if n := next(); n != 0 {
			t.Errorf("%d have turns, without a rest", n)
		}
		time.Sleep(took)
		if let, over := state(); let != 2 || over != 0 {
			t.Errorf("%d have turns beside short answers, of 4 processors", let)
		}
		// Turns end by themselves, but not more than one more follows each.
		time.Sleep(2 * maxTurn)
		if let, over := state(); let != 4 || over != 2 {
			t.Errorf("%d were let in, of whom %d had their turn", let, over)
		}
		time.Sleep(recent)
		next()
		if l.Concurrency() != 4 {
			t.Errorf("%d turns although there are no short answers", l.Concurrency())
		}
		var none *TurnScheduler
		none.RecordShort()
		p := (&Answers{}).Turn(&Request{R: httptest.NewRequest("GET", "/", nil), Scope: &request.Scope{}})
		if err := p.Next(2 * freeBytes); err != nil || p.place.TurnEnded() {
			t.Errorf("without a line: %v, over %t", err, p.place.TurnEnded())
		}
		p.End()
	})
}
