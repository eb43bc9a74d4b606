package server_test

import (
	"context"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// refusing is a driver that takes no writes while it is set to refuse them.
type refusing struct {
	sqlstore.Driver
	why *atomic.Pointer[error]
}

func (r refusing) Apply(ctx context.Context, batch []sqlstore.Txn, now time.Time) ([]sqlstore.Outcome, error) {
	if err := r.why.Load(); err != nil {
		return nil, *err
	}
	return r.Driver.Apply(ctx, batch, now)
}

// TestStartWithoutWrites: a server whose address changed, on a store that takes no writes, starts and serves reads; what it had to
// write at the start is written once it can be, without a restart.
func TestStartWithoutWrites(t *testing.T) {
	for name, why := range map[string]error{"full": sqlstore.ErrFull, "read-only": sqlstore.ErrReadOnly, "refused": sqlstore.ErrRefused} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var refused atomic.Pointer[error]
			d := refusing{storetest.NewShared().Open(), &refused}
			at := func(port int) func(*server.Config) {
				return func(c *server.Config) {
					c.Bootstrap.ServiceIP, c.Bootstrap.AdvertiseIP, c.Bootstrap.AdvertisePort = net.IPv4(10, 96, 0, 1).To4(), net.IPv4(192, 0, 2, 1).To4(), port
				}
			}
			t.Run("before", func(t *testing.T) { // which ends it
				servertest.Start(t, servertest.On(d, sqlstore.Config{}), at(6443), servertest.Idle).PutConfigMaps()
			})
			refused.Store(&why)
			s := servertest.Start(t, servertest.On(d, sqlstore.Config{}), at(7443), servertest.Idle)
			if w := s.Do("GET", "/api/v1/configmaps", ""); w.Code != 200 {
				t.Errorf("a list gives %d %s", w.Code, w.Body)
			}
			const endpoints = "/api/v1/namespaces/default/endpoints/kubernetes"
			if got := string(s.Must("GET", endpoints, "")); !strings.Contains(got, "6443") {
				t.Errorf("before the store takes writes: %s", got)
			}
			if got := string(s.Must("GET", "/readyz?verbose", "")); !strings.Contains(got, "[!]store-writes") || !strings.Contains(got, "cannot be written: what the start left out") {
				t.Errorf("the server says %s", got)
			}
			refused.Store(nil)
			servertest.Eventually(t, func() bool { return strings.Contains(string(s.Must("GET", endpoints, "")), "7443") })
			servertest.Eventually(t, func() bool {
				return !strings.Contains(string(s.Must("GET", "/readyz?verbose", "")), "[!]")
			})
		})
	}
}
