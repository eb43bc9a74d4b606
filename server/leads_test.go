package server_test

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// ledDriver remembers on behalf of which lead each object was created.
type ledDriver struct {
	sqlstore.Driver
	mu    sync.Mutex
	leads map[sqlstore.Key]string
}

func (d *ledDriver) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	d.mu.Lock()
	for _, t := range batch {
		for _, op := range t.Ops {
			if op.Verb == sqlstore.Create {
				d.leads[op.Key] = t.Lead
			}
		}
	}
	d.mu.Unlock()
	return d.Driver.Apply(ctx, batch, now)
}

// TestControllersWriteWhileTheyLead: the database refuses a controller's writes once another server has its lead. A client's
// writes need none.
func TestControllersWriteWhileTheyLead(t *testing.T) {
	driver := &ledDriver{Driver: storetest.NewShared().Open(), leads: map[sqlstore.Key]string{}}
	s := servertest.Start(t, servertest.On(driver, sqlstore.Config{}))
	s.Must(http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"led"}}`)
	namespace := sqlstore.Key{Resource: "namespaces", Name: "led"}
	account := sqlstore.Key{Resource: "serviceaccounts", Namespace: "led", Name: "default"}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		driver.mu.Lock()
		lead, made := driver.leads[account]
		by, known := driver.leads[namespace]
		driver.mu.Unlock()
		if made {
			if lead == "" || !known || by != "" {
				t.Errorf("the controller wrote on behalf of %q, the client of %q", lead, by)
			}
			return
		}
		if time.Now().After(deadline) {
			t.Fatal("no controller created the account")
		}
	}
}
