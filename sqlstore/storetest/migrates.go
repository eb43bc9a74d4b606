package storetest

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Migrates has a driver write while another one that is opened migrates the schema, and while a third is opened although the
// schema is already one of a later build. older takes the schema back by a migration, newer takes it forward. No write fails.
func Migrates(t *testing.T, db Database, older, newer func()) {
	a := db.Open(t)
	older()
	var wrote atomic.Int64
	var writers sync.WaitGroup
	stop := make(chan struct{})
	write := func(d sqlstore.Driver, name string) {
		writers.Go(func() {
			for n := 0; ; n++ {
				select {
				case <-stop:
					return
				default:
				}
				out, err := d.Apply(t.Context(), []sqlstore.Txn{create(pod(fmt.Sprintf("%s-%d", name, n)), `{"kind":"Pod"}`)}, time.Now())
				if err == nil {
					err = out[0].Err
				}
				if err != nil {
					t.Errorf("write %d of %s: %v", n, name, err)
					return
				}
				wrote.Add(1)
				time.Sleep(time.Millisecond) // SQLite's lock is not fair: a writer without a pause keeps the others out
			}
		})
	}
	until := func(more int64) {
		for n := wrote.Load(); wrote.Load() < n+more && !t.Failed(); time.Sleep(time.Millisecond) {
		}
	}
	write(a, "a")
	until(20)
	b := db.Open(t) // migrates
	until(20)
	newer()
	c := db.Open(t) // of a build that lacks the last migration
	write(b, "b")
	write(c, "c")
	until(60)
	close(stop)
	writers.Wait()
	CheckTable(t, c)
	if bounds, err := c.Bounds(t.Context()); err != nil || bounds.Head != wrote.Load() {
		t.Errorf("the newest revision is %+v, %v, after %d writes", bounds, err, wrote.Load())
	}
}
