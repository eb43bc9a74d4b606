package history_test

import (
	"context"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
)

// losing is a driver that has left out one revision.
type losing struct {
	sqlstore.Driver
	lost atomic.Int64
}

func (d *losing) Floors(ctx context.Context) (f sqlstore.Floors, err error) {
	f, err = d.Driver.Floors(ctx)
	if at := d.lost.Load(); at != 0 {
		f.Skipped = append(slices.Clone(f.Skipped), sqlstore.Skipped{From: at - 1, To: at + 1})
	}
	return f, err
}

func (d *losing) Scan(ctx context.Context, req sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	if at := d.lost.Load(); at != 0 && req.Revision == at {
		return nil, &sqlstore.CompactedError{Revision: at, Floor: at + 1}
	}
	return d.Driver.Scan(ctx, req)
}

// TestPagesLeftOut: the pages of a state that the database has lost do not go on, although memory has it for them.
func TestPagesLeftOut(t *testing.T) {
	t.Parallel()
	d := &losing{Driver: stores["memory"](t)}
	s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(d, sqlstore.Config{Retention: time.Hour, CompactEvery: 10 * time.Millisecond}))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	for range 2 {
		s.Must("POST", configmaps, `{"metadata":{"generateName":"c-"}}`)
	}
	page := read[metav1.PartialObjectMetadataList](t, s, configmaps+"?limit=1")
	next := configmaps + "?limit=1&continue=" + page.Continue
	s.Must("GET", next, "")
	revision, err := strconv.ParseInt(page.ResourceVersion, 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	d.lost.Store(revision)
	servertest.Eventually(t, func() bool { return s.Do("GET", next, "").Code == http.StatusGone })
}

// TestLeftOut: a revision that the database has left out shows no state, as in a list: clients may have seen one with it that is lost.
func TestLeftOut(t *testing.T) {
	t.Parallel()
	const short = 50 * time.Millisecond
	d := stores["sqlite"](t)
	s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(d, sqlstore.Config{Retention: time.Hour, LogRetention: short, PackEvery: short, CompactEvery: short}))
	s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	configmap(t, s, "POST", "1")
	servertest.Eventually(t, func() bool { return s.Store.Floor() > 0 }) // the past is kept for longer than the log
	from, to, err := d.(sqlstore.Admin).SkipRevisions(t.Context(), 1000)
	if err != nil {
		t.Fatal(err)
	}
	next := configmap(t, s, "PUT", "2")
	at := func(revision any) string { return fmt.Sprintf("%sconfigmaps:c:%v", item, revision) }
	servertest.Eventually(t, func() bool { return s.Do("GET", at(from+1), "").Code == http.StatusGone })
	kept := fmt.Sprint("kept from revision ", to)
	refused(t, s, at(to-1), http.StatusGone, kept)
	refused(t, s, at(from+1)+"/diff", http.StatusGone, kept)
	refused(t, s, at(next)+fmt.Sprint("/diff?from=", to-1), http.StatusGone, kept)
	for _, path := range []string{at(from), at(next), at(next) + "/diff"} {
		s.Must("GET", path, "")
	}
}
