package postgres_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/postgres"
)

// TestClock follows the database's time through slow answers and a clock that is set.
func TestClock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := postgres.NewClock()
		there := time.Date(2031, 1, 1, 0, 0, 0, 0, time.UTC)
		wait := func(d time.Duration) { time.Sleep(d); there = there.Add(d) }
		ask := func(before, after time.Duration) {
			asked := time.Now()
			wait(before)
			at := there
			wait(after)
			c.Update(at, asked, time.Now())
		}
		near := func(want time.Time, within time.Duration) {
			t.Helper()
			if off := c.Now().Sub(want).Abs(); off > within {
				t.Fatalf("the clock is %v off", off)
			}
		}
		if c.Now() != time.Now() {
			t.Error("before any answer it is not this machine's")
		}
		ask(time.Millisecond, time.Millisecond)
		near(there, 0)
		wait(time.Hour)
		ask(time.Second, 0) // slow on one way alone: no reason to move
		near(there, 0)
		wait(time.Hour)
		there = there.Add(time.Millisecond) // it drifted
		ask(time.Second, 0)                 // slow on one way alone: no reason to move far
		near(there, 0)
		there = there.Add(-time.Millisecond)
		ask(0, time.Second)
		near(there, 0)
		there = there.Add(3 * time.Hour)
		near(there.Add(-3*time.Hour), 0)
		ask(0, 10*time.Millisecond)
		near(there, 5*time.Millisecond)
		there = there.Add(-50 * time.Hour)
		ask(time.Millisecond, time.Millisecond)
		near(there, 0)
	})
}

// TestLeadsNeedNoClock sets the times in the table as a database's clock might that is
// set: a lead stays with a holder that lives, and leaves one that does not.
func TestLeadsNeedNoClock(t *testing.T) {
	const leadFor = 250 * time.Millisecond
	db := newDatabase(t, postgres.Config{LeadFor: leadFor})
	a, b := db.Open(t), db.Open(t)
	held, _ := firstLead(t, a, "x")
	take := func(d sqlstore.Driver) bool {
		t.Helper()
		_, _, ok, _ := lead(t, d, "x")
		return ok
	}
	for _, set := range []string{"- interval '5 hours'", "+ interval '5 hours'"} {
		db.Exec(t, "UPDATE kv_lead SET until = until "+set)
		for deadline := time.Now().Add(3 * leadFor); time.Now().Before(deadline); time.Sleep(leadFor / 10) {
			if take(b) {
				select {
				case <-held: // this machine was too slow to renew it
					return
				case <-time.After(2 * time.Minute): // a busy machine may be late to tell it
					t.Fatalf("with a clock set %s two have it", set)
				}
			}
		}
	}
	if err := a.Close(); err != nil { // without giving it up, as one that dies
		t.Fatal(err)
	}
	db.Exec(t, "UPDATE kv_lead SET until = until + interval '5 hours'")
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(leadFor / 10) {
		if take(b) {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("a lead whose holder is dead stays with it")
		}
	}
}
