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
	for range mostDetails + 5 {
		r.add(&task{Resource: "pods", name: "p"}, Failed, "no")
	}
	if r.finish(); len(r.Details) != mostDetails || r.Unnamed != 5 || r.Total.Failed != mostDetails+5 {
		t.Errorf("%d details, %d unnamed, %+v", len(r.Details), r.Unnamed, r.Total)
	}
}

// TestLook: answers of the target that are large are taken apart one after the other, and one
// that is larger than all may be is taken apart alone.
func TestLook(t *testing.T) {
	c := &copier{looking: semaphore.NewWeighted(mostUnderWay)}
	done, err := c.look(t.Context(), make([]byte, mostUnderWay/2), make([]byte, mostUnderWay))
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
	if done, err = c.look(t.Context(), make([]byte, mostUnderWay)); err != nil {
		t.Fatal(err)
	}
	defer done()
	if _, err := c.look(ctx, make([]byte, 1)); !errors.Is(err, context.Canceled) {
		t.Errorf("a look after the end: %v", err)
	}
}
