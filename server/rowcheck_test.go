package server_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

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
