// Package rowlocktest gives each test a Kubernetes API of its own: in the process of the test, in memory,
// without files and without ports unless it asks for them.
//
//	srv := rowlocktest.Start(t, rowlocktest.CRDs("../config/crd"))
//	mgr, err := ctrl.NewManager(srv.Config(), ...)
//
// Features that a real server lacks: Clone copies a prepared server, Reset goes back to a Snapshot, Inject
// makes requests fail by rules, Clock moves time, Record lists the requests of a controller, and History has
// all past states of an object.
//
// Start returns a server that is ready; everything that it started has ended when the test ends, in the order
// of t.Cleanup; the log of a server is shown only if its test fails. Servers do not affect each other, so
// tests run in parallel. But the servers of a process share some state that only servers make: the UIDs of
// the namespaces and roles that each cluster has, and the authority and the key that sign client certificates
// and tokens of service accounts. A credential of one is therefore valid for others that have the same
// account.
//
// The stability is that of package embed.
package rowlocktest

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/authx"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/embed"
	"github.com/rowlock/rowlock/server/filters"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
)

// Server is a server of a test.
type Server struct {
	t       testing.TB
	plane   *embed.ControlPlane
	db      *memory.Database
	options options
	clock   *Clock
	faults  *faults
	records *records
	tokens  *tokens
}

// Start runs a server until the test ends.
func Start(t testing.TB, list ...Option) *Server {
	t.Helper()
	o := collect(list)
	if from := prepared.get(o.gates()); from != nil {
		return start(t, o, from.Clone(), newClock(), nil)
	}
	var empty func(*Server)
	if o.bare() {
		// The objects that each cluster has are written once in a process.
		empty = func(s *Server) { prepared.byKinds.LoadOrStore(o.gates(), s.db.Snapshot()) }
	}
	return start(t, o, memory.New(memory.Config{}), newClock(), empty)
}

// grace is the time for requests in flight after the end of their test.
const grace = 5 * time.Second

// start runs a server on a database. empty is called before anything is added to the initial objects.
func start(t testing.TB, o options, db *memory.Database, clock *Clock, empty func(*Server)) *Server {
	t.Helper()
	s := &Server{t: t, db: db, options: o, clock: clock, faults: &faults{}, records: &records{}, tokens: &tokens{}}
	log := &log{}
	t.Cleanup(func() { log.print(t) })
	authority, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	asked := o.embed
	asked.Store = func(context.Context) (sqlstore.Driver, error) { return db.Open(), nil }
	asked.ClientAuthorities, asked.TokenAuthenticators = authority.pool, []authx.TokenAuthenticator{s.tokens}
	asked.Grace, asked.Log, asked.Version, asked.Past = grace, slog.New(slog.NewTextHandler(log, nil)), "rowlock.test", o.past
	asked.Configure = func(c *server.Config) {
		c.Clock, c.ClockMoves, c.BeforeWebhook = clock.Now, clock.moves, s.faults.webhook
		c.Cache = cache.NewWith(c.Catalogue, cache.Config{JSON: c.Cache.JSON(), Clock: clock.Now})
		c.Around = []filters.Filter{s.records.filter(s), s.faults.filter}
		c.Controllers.Authority = func() ([]byte, error) { return authority.pem, nil }
		c.Controllers.Sign = authority.sign
	}
	asked.ConfigureStore = func(c *sqlstore.Config) { c.Clock, c.Elapsed, c.Sleep = clock.Now, clock.elapsed, clock.sleep }
	plane, err := embed.New(t.Context(), asked)
	if err != nil {
		t.Fatal(err)
	}
	s.plane = plane
	clock.onMove(plane.Server.Cache.Forget)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- plane.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		s.faults.clear() // requests that are held up continue
		if err := <-ended; err != nil {
			t.Errorf("rowlocktest: the server ended with %v", err)
		}
	})
	if err := plane.Ready(t.Context()); err != nil {
		t.Fatalf("rowlocktest: %v", err)
	}
	if empty != nil {
		empty(s)
	}
	definitions, err := o.own()
	if err != nil {
		t.Fatalf("rowlocktest: %v", err)
	}
	if len(definitions)+len(o.folders) > 0 {
		s.CRDs(o.folders, definitions...)
	}
	return s
}

// Config is for clients that may do everything.
func (s *Server) Config() *rest.Config { return s.plane.Config() }

// As is for clients that act as a user, in groups, with the rights of roles and bindings; a user without any
// may do next to nothing. See Allow.
func (s *Server) As(user string, groups ...string) *rest.Config { return s.plane.As(user, groups...) }

// AsServiceAccount is for clients that are a service account.
func (s *Server) AsServiceAccount(namespace, name string) *rest.Config {
	return s.As("system:serviceaccount:"+namespace+":"+name, "system:serviceaccounts", "system:serviceaccounts:"+namespace)
}

// Clock returns the server's.
func (s *Server) Clock() *Clock { return s.clock }

// Snapshot is the state of a server at one moment.
type Snapshot struct{ of *memory.Snapshot }

// Snapshot keeps the present state. Its cost does not depend on the size of that.
func (s *Server) Snapshot() Snapshot { return Snapshot{s.db.Snapshot()} }

// Reset restores the objects of a snapshot of this server, or of one of which it is a clone, and removes all
// faults of Inject. It does so by writes: it deletes later objects and recreates or changes back others, with
// the UIDs and times that they had, and under new resource versions. So existing watches stay open and see
// the changes, and informers of a manager that runs through several tests stay correct. The clock does not
// change. Controllers may react to the writes; stop them first to avoid that, or take a Clone for each test.
func (s *Server) Reset(to Snapshot) {
	s.t.Helper()
	s.faults.clear()
	if err := s.db.Reset(s.t.Context(), to.of, s.plane.Store); err != nil {
		s.t.Fatalf("rowlocktest: %v", err)
	}
}

// Clone runs another server, until t ends, with the stored objects of this one: the two share unchanged data.
// It starts with this one's options, time and history, and without its faults and records. This server may
// continue to work.
func (s *Server) Clone(t testing.TB) *Server {
	t.Helper()
	return s.Snapshot().start(t, s)
}

func (n Snapshot) start(t testing.TB, like *Server) *Server {
	t.Helper()
	o := like.options
	o.kinds, o.definitions, o.folders = nil, nil, nil // they are stored
	return start(t, o, n.of.Clone(), like.clock.copy(), nil)
}

// CloneOf is Clone of the state at a snapshot.
func (s *Server) CloneOf(t testing.TB, snapshot Snapshot) *Server {
	t.Helper()
	return snapshot.start(t, s)
}
