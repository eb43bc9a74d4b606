package sqlstore_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

func batchOf(resources ...string) (batch []sqlstore.Txn) {
	for _, r := range resources {
		batch = append(batch, sqlstore.Txn{Ops: []sqlstore.Op{{Key: sqlstore.Key{Resource: r, Name: "a"}}}})
	}
	return batch
}

func TestParseRelaxed(t *testing.T) {
	got, err := sqlstore.ParseRelaxed([]string{"leases", "events", "leases"})
	if err != nil || !slices.Equal(got, []string{"leases.coordination.k8s.io", "events"}) {
		t.Fatalf("got %q, %v", got, err)
	}
	for _, name := range []string{"pods", "", "Leases", "leases.coordination.k8s.io"} {
		if _, err := sqlstore.ParseRelaxed([]string{"events", name}); err == nil || !strings.Contains(err.Error(), `"`+name+`"`) {
			t.Errorf("%q gave %v", name, err)
		}
	}
}

// TestRelaxedWindow: nothing else is relaxed, and nothing while the disk is late.
func TestRelaxedWindow(t *testing.T) {
	var none *sqlstore.Relaxed
	if none.May(batchOf("events")) {
		t.Fatal("without names a batch is relaxed")
	}
	r := sqlstore.NewRelaxed([]string{"events"}, nil)
	if !r.May(batchOf("events", "events")) || r.May(batchOf("events", "pods")) || r.May(batchOf("pods")) {
		t.Fatal("other batches are relaxed than those of events alone")
	}
	r.Committed(3)
	time.Sleep(sqlstore.RelaxedFor) // no sync runs
	if r.May(batchOf("events")) {
		t.Fatal("a batch is relaxed while one before it is late")
	}
	if s := r.Stats(); s.Writes != 3 || s.Unsynced < sqlstore.RelaxedFor {
		t.Fatalf("the counts are %+v", s)
	}
	r.Durable()
	if s := r.Stats(); !r.May(batchOf("events")) || s.Unsynced != 0 {
		t.Fatalf("behind a durable commit: %+v", s)
	}
}

// TestRelaxedRun: a sync comes by itself, and again after it failed.
func TestRelaxedRun(t *testing.T) {
	synced, fail := make(chan struct{}), make(chan error)
	r := sqlstore.NewRelaxed([]string{"events"}, func() error {
		err := <-fail
		synced <- struct{}{}
		return err
	})
	closing, ended := make(chan struct{}), make(chan struct{})
	go func() {
		r.Run(closing)
		close(ended)
	}()
	r.Committed(1)
	fail <- sqlstore.ErrUnavailable
	<-synced
	fail <- nil // it comes again
	if s := r.Stats(); r.Failed() == nil || s.Failures != 1 || r.May(batchOf("events")) {
		t.Fatalf("after a failure: %v, %+v", r.Failed(), s)
	}
	<-synced
	close(closing)
	<-ended
	if s := r.Stats(); r.Failed() != nil || s.Unsynced != 0 || !r.May(batchOf("events")) {
		t.Fatalf("after the next: %v, %+v", r.Failed(), s)
	}
}

// TestRelaxedFail: a sync that failed elsewhere, and while one is under way that succeeds, is mended also where
// nothing waits for one.
func TestRelaxedFail(t *testing.T) {
	began, end := make(chan struct{}), make(chan error)
	r := sqlstore.NewRelaxed([]string{"events"}, func() error {
		began <- struct{}{}
		return <-end
	})
	closing, ended := make(chan struct{}), make(chan struct{})
	go func() {
		r.Run(closing)
		close(ended)
	}()
	r.Committed(1)
	<-began
	r.Fail(sqlstore.ErrUnavailable)
	end <- nil
	<-began // once more
	if r.Failed() == nil || r.May(batchOf("events")) {
		t.Error("what failed meanwhile is forgotten")
	}
	end <- nil
	r.Durable()
	close(closing)
	<-ended
	if r.Failed() != nil {
		t.Errorf("after the next: %v", r.Failed())
	}
}
