package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// differing is a database whose table and indexes differ.
type differing struct {
	sqlstore.Driver
	rows []sqlstore.Row
	err  error
}

func (differing) ChecksRows() bool { return true }

func (d differing) CheckRows(_ context.Context, _ bool, page func([]sqlstore.Row) error) error {
	return errors.Join(page(d.rows), d.err)
}

// TestRowsAreChecked: if the table and its indexes differ, readyz reports it once the server serves, and also
// if they could not be compared.
func TestRowsAreChecked(t *testing.T) {
	lost := sqlstore.Row{Key: sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: "lost"}, Revision: 1, Damaged: &sqlstore.DamageError{Reason: "an index has the row, but the table does not"}}
	for name, tc := range map[string]struct {
		database differing
		want     []string
	}{
		"an object is lost":        {differing{rows: []sqlstore.Row{lost}}, []string{"1 objects cannot be read", "configmaps/default/lost at revision 1: damaged in the database: an index has the row"}},
		"it could not be compared": {differing{err: errors.New("the disk is gone")}, []string{"0 objects cannot be read; the table could not be compared with its indexes", "the disk is gone"}},
	} {
		t.Run(name, func(t *testing.T) {
			tc.database.Driver = memory.New(memory.Config{}).Open()
			s := servertest.Start(t, servertest.On(tc.database, sqlstore.Config{}), servertest.Idle, func(c *server.Config) {
				c.Authenticator = servertest.Everybody{User: servertest.Admin}
			})
			servertest.Eventually(t, func() bool {
				w := s.Do(http.MethodGet, "/readyz/corrupt-objects", "")
				reported := w.Code == http.StatusInternalServerError
				for _, want := range tc.want {
					reported = reported && strings.Contains(w.Body.String(), want)
				}
				return reported
			})
			if w := s.Do(http.MethodGet, "/readyz", ""); w.Code != http.StatusOK {
				t.Errorf("the server is not ready: %d %s", w.Code, w.Body)
			}
		})
	}
}

// damaging is a database with a damaged row. deleted is set once a delete of the row passes on that its value is damaged.
type damaging struct {
	sqlstore.Driver
	key     sqlstore.Key
	deleted atomic.Bool
}

func (d *damaging) ReadAll(ctx context.Context, revision int64, take func([]sqlstore.Row) error) error {
	return d.Driver.ReadAll(ctx, revision, func(rows []sqlstore.Row) error {
		for i := range rows {
			if rows[i].Key == d.key {
				rows[i].Damaged = &sqlstore.DamageError{Reason: "its checksum does not match"}
			}
		}
		return take(rows)
	})
}

func (d *damaging) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	for _, txn := range batch {
		for _, op := range txn.Ops {
			if op.Key == d.key && op.Verb == sqlstore.Delete && op.Damaged {
				d.deleted.Store(true)
			}
		}
	}
	return d.Driver.Apply(ctx, batch, now)
}

// TestDeletesDamagedRow: the delete of an object whose row is damaged writes its value again, and no checksum that confirms it.
func TestDeletesDamagedRow(t *testing.T) {
	d := &damaging{Driver: memory.New(memory.Config{}).Open(), key: sqlstore.Key{Resource: "configmaps", Namespace: "default", Name: "damaged"}}
	const value = `{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"damaged","namespace":"default","uid":"u"}}`
	out, err := d.Apply(t.Context(), []sqlstore.Txn{{Ops: []sqlstore.Op{{Verb: sqlstore.Create, Key: d.key, Value: []byte(value)}}}}, time.Now())
	if err != nil || out[0].Err != nil {
		t.Fatal(out, err)
	}
	s := servertest.Start(t, servertest.Idle, servertest.On(d, sqlstore.Config{}), func(c *server.Config) {
		c.Feature = func(gate string) bool { return gate == "AllowUnsafeMalformedObjectDeletion" }
	})
	const path = "/api/v1/namespaces/default/configmaps/damaged"
	if w := s.Do(http.MethodDelete, path, ""); w.Code != http.StatusInternalServerError || d.deleted.Load() {
		t.Errorf("%d %s", w.Code, w.Body)
	}
	s.Must(http.MethodDelete, path, `{"apiVersion":"v1","kind":"DeleteOptions","ignoreStoreReadErrorWithClusterBreakingPotential":true}`)
	if !d.deleted.Load() {
		t.Error("the value of the damaged row is written as a right one")
	}
}
