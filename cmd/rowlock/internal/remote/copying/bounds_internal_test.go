package copying

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/semaphore"
)

// one is a Source of one object.
type one string

func (one) Resources() []string { return []string{"configmaps"} }

func (o one) Objects(context.Context, string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) { yield([]byte(o), nil) }
}

// TestMostOwners: a source cannot have as many owners remembered as it likes, however long
// their UIDs are.
func TestMostOwners(t *testing.T) {
	var owners []string
	for i := range 11 {
		owners = append(owners, fmt.Sprintf(`{"uid":"%d%s"}`, i, strings.Repeat("x", 1000)))
	}
	c := &copier{from: one(`{"metadata":{"name":"x","ownerReferences":[` + strings.Join(owners, ",") + `]}}`), report: newReport(false), done: map[string]*bits{}, owners: map[ownerKey]*owner{}, mostOwners: 11}
	if err := c.survey(t.Context()); err != nil || len(c.owners) != 11 {
		t.Fatalf("%d owners, %v", len(c.owners), err)
	}
	if c.mostOwners = 10; c.survey(t.Context()) == nil {
		t.Error("11 owners were remembered where 10 may be")
	}
}

// TestMostDetails: a report counts everything, and names so much of it.
func TestMostDetails(t *testing.T) {
	r := newReport(false)
	for range maxDetails + 5 {
		r.add(&task{Resource: "pods", name: "p"}, Failed, "no")
	}
	if r.finish(); len(r.Details) != maxDetails || r.Unnamed != 5 || r.Total.Failed != maxDetails+5 {
		t.Errorf("%d details, %d unnamed, %+v", len(r.Details), r.Unnamed, r.Total)
	}
}

// TestLook: answers of the target that are large are taken apart one after the other, and one
// that is larger than all may be is taken apart alone.
func TestLook(t *testing.T) {
	c := &copier{looking: semaphore.NewWeighted(maxUnderWay)}
	done, err := c.look(t.Context(), make([]byte, maxUnderWay/2), make([]byte, maxUnderWay))
	if err != nil {
		t.Fatal(err)
	}
	second := make(chan error, 1)
	go func() {
		done, err := c.look(t.Context(), make([]byte, 1))
		if err == nil {
			done()
		}
		second <- err
	}()
	select {
	case err := <-second:
		t.Fatalf("a second answer was taken apart beside the first: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	done()
	if err := <-second; err != nil {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if done, err = c.look(t.Context(), make([]byte, maxUnderWay)); err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := c.look(ctx, make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a look after the end: %v", err)
	}
}

// many is a Source of the same object several times.
type many struct {
	one
	times int
}

func (m many) Objects(context.Context, string) iter.Seq2[[]byte, error] {
	return func(yield func([]byte, error) bool) {
		for range m.times {
			if !yield([]byte(m.one), nil) {
				return
			}
		}
	}
}

// TestMostUnderWay: of objects that are large, so many are read as are bounded together, also
// where more workers wait for them.
func TestMostUnderWay(t *testing.T) {
	large := one(`{"metadata":{"name":"x","namespace":"a"},"data":{"k":"` + strings.Repeat("x", maxUnderWay*2/3) + `"}}`)
	c := &copier{from: many{large, 2}, report: newReport(false), done: map[string]*bits{"configmaps": {}}, owners: map[ownerKey]*owner{}, weight: semaphore.NewWeighted(maxUnderWay)}
	work, ended := make(chan *task, 2), make(chan error, 1)
	go func() {
		_, progress, err := c.resource(t.Context(), "configmaps", 0, work)
		if progress != 2 {
			err = errors.Join(err, fmt.Errorf("%d objects were read", progress))
		}
		ended <- err
	}()
	first := <-work
	select {
	case <-work:
		t.Fatal("a second large object was read beside the first")
	case err := <-ended:
		t.Fatalf("it has ended: %v", err)
	case <-time.After(20 * time.Millisecond):
	}
	c.weight.Release(first.weight)
	<-work
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
