package storetest

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// Recorder is a Sink that keeps the whole log and checks its order.
type Recorder struct {
	mu   sync.Mutex
	next int64
	log  []sqlstore.Change
	bad  []string
}

// NewRecorder expects the log after a revision.
func NewRecorder(after int64) *Recorder { return &Recorder{next: after + 1} }

// Apply implements sqlstore.Sink.
func (r *Recorder) Apply(batch []sqlstore.Change) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range batch {
		if c.Revision != r.next {
			r.bad = append(r.bad, fmt.Sprintf("revision %d came instead of %d", c.Revision, r.next))
		}
		r.next = c.Revision + 1
		r.log = append(r.log, c)
	}
}

// Log has the changes so far.
func (r *Recorder) Log(t testing.TB) []sqlstore.Change {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.bad) > 0 {
		t.Fatalf("the feed is out of order: %v", r.bad)
	}
	return r.log[:len(r.log):len(r.log)]
}

// sinkFunc is a Sink.
type sinkFunc func([]sqlstore.Change)

// Apply implements sqlstore.Sink.
func (f sinkFunc) Apply(batch []sqlstore.Change) { f(batch) }

// server is a running Store with its sink.
type server struct {
	*sqlstore.Store
	*Recorder
	stop func() error
}

// serve runs a Store on a driver, at the tests' time unless cfg has a clock, and as patient as the tests with a busy
// database; it is stopped by the test's cleanup at the latest.
func serve(t testing.TB, d sqlstore.Driver, cfg sqlstore.Config) *server {
	t.Helper()
	b, err := d.Bounds(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Clock == nil {
		cfg.Clock = func() time.Time { return start }
	}
	cfg.RetryFor = cmp.Or(cfg.RetryFor, patience)
	s := &server{Store: sqlstore.New(d, cfg), Recorder: NewRecorder(b.Head)}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, b.Head, s.Recorder) }()
	s.stop = sync.OnceValue(func() error {
		cancel()
		select {
		case err := <-done:
			return err
		case <-time.After(patience):
			return errors.New("Run does not end")
		}
	})
	t.Cleanup(func() { s.stop() })
	return s
}

func write(t testing.TB, s *server, ops ...sqlstore.Op) sqlstore.Outcome {
	t.Helper()
	out, err := s.Write(t.Context(), ops...)
	if err != nil {
		t.Fatalf("%s: %v", ops[0].Key, err)
	}
	return out
}

var storeTests = map[string]func(*testing.T, Database){
	"revisions are left out":            skipped,
	"revisions of history are left out": skippedPast,
	"a write is in the sink when it returns": func(t *testing.T, db Database) {
		s := serve(t, db.Open(t), sqlstore.Config{})
		type mark struct{ n int }
		for i := range 20 {
			aux := &mark{i}
			out := write(t, s, sqlstore.Op{Verb: sqlstore.Create, Key: pod(fmt.Sprint(i)), Value: []byte("x"), Aux: aux})
			log := s.Log(t)
			last := log[len(log)-1]
			if last.Revision != out.Revisions[0] || last.Aux != any(aux) || s.Applied() != last.Revision || last.Created != out.Created[0] || last.PrevRevision != 0 {
				t.Fatalf("the sink has %+v after %+v", last, out)
			}
		}
		out := write(t, s, update(pod("3"), 4, "y").Ops[0], remove(pod("4"), 5, "z").Ops[0])
		log := s.Log(t)[20:]
		if fmt.Sprint(out.Revisions, out.Created) != "[21 22] [4 5]" || log[0].PrevRevision != 4 || log[1].PrevRevision != 5 || !log[1].Deleted || log[1].Superseded != 22 || string(log[1].Value) != "z" {
			t.Fatalf("the sink has %+v after %+v", log, out)
		}
		if h, err := s.Head(t.Context()); h != 22 || err != nil {
			t.Fatalf("Head gave %d, %v", h, err)
		}
	},
	"what the sink shows is not newer than the head": func(t *testing.T, db Database) {
		d := db.Open(t)
		s := sqlstore.New(d, sqlstore.Config{Clock: func() time.Time { return start }, RetryFor: patience})
		ctx, cancel := context.WithCancel(t.Context())
		var stale []string
		sink := sinkFunc(func(batch []sqlstore.Change) { // as a watcher that reads when it sees an event
			for _, c := range batch {
				if h, err := s.Head(ctx); err != nil || h < c.Revision {
					stale = append(stale, fmt.Sprintf("%d, %v at revision %d", h, err, c.Revision))
				}
			}
		})
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx, 0, sink) }()
		for i := range 10 {
			if _, err := s.Write(ctx, create(pod(fmt.Sprint(i)), "x").Ops...); err != nil {
				t.Fatal(err)
			}
			if _, err := s.Head(ctx); err != nil { // from here on a driver with the database for itself is not asked
				t.Fatal(err)
			}
		}
		cancel()
		if err := <-done; err != nil || stale != nil {
			t.Fatalf("%v; the head was %v", err, stale)
		}
	},
	"refusals": func(t *testing.T, db Database) {
		s := serve(t, db.Open(t), sqlstore.Config{MaxValue: 10})
		write(t, s, create(pod("a"), "a").Ops[0])
		var exists *sqlstore.ExistsError
		if _, err := s.Write(t.Context(), create(pod("a"), "b").Ops...); !errors.As(err, &exists) || exists.Current.Revision != 1 {
			t.Fatalf("a second create gave %v", err)
		}
		_, err := s.Write(t.Context(), create(pod("b"), "12345678901").Ops...)
		wantErr(t, err, sqlstore.ErrTooLarge)
		for _, ops := range [][]sqlstore.Op{{}, {{Key: pod("x")}}, {{Verb: sqlstore.Create, Key: key("", "", "x")}}, join(create(pod("x"), ""), update(pod("x"), 1, "")).Ops} {
			if _, err := s.Write(t.Context(), ops...); err == nil {
				t.Fatalf("%+v was written", ops)
			}
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		_, err = s.Write(ctx, create(pod("c"), "c").Ops...)
		wantErr(t, err, context.Canceled)
		write(t, s, create(pod("d"), "d").Ops[0])
		if h, err := s.Head(t.Context()); h != 2 || err != nil {
			t.Fatalf("Head gave %d, %v", h, err)
		}
	},
	"the end": func(t *testing.T, db Database) {
		d := db.Open(t)
		s := serve(t, d, sqlstore.Config{})
		var acknowledged atomic.Int64
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Go(func() {
				for i := 0; ; i++ {
					_, err := s.Write(context.Background(), create(pod(fmt.Sprintf("%d-%d", w, i)), "x").Ops...)
					if err != nil {
						if !errors.Is(err, sqlstore.ErrClosed) {
							t.Errorf("a write at the end gave %v", err)
						}
						return
					}
					acknowledged.Add(1)
				}
			})
		}
		waitFor(t, "some writes", func() bool { return acknowledged.Load() > 100 })
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
		wg.Wait()
		b, err := d.Bounds(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if b.Head != acknowledged.Load() || int64(len(s.Log(t))) != b.Head {
			t.Fatalf("%d writes were acknowledged, %d shown, %d are stored", acknowledged.Load(), len(s.Log(t)), b.Head)
		}
	},
	"a fresh sink is brought up to date": func(t *testing.T, db Database) {
		d := db.Open(t)
		history(t, 50, d)
		r := NewRecorder(10)
		ctx, cancel := context.WithCancel(t.Context())
		s := sqlstore.New(d, sqlstore.Config{Clock: func() time.Time { return start }})
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx, 10, r) }()
		waitFor(t, "the head", func() bool { return s.Applied() == 50 })
		cancel()
		if err := <-done; err != nil {
			t.Fatal(err)
		}
		if log := r.Log(t); len(log) != 40 {
			t.Fatalf("%d changes came", len(log))
		}
	},
	"a sink below the floor": func(t *testing.T, db Database) {
		d := db.Open(t)
		history(t, 50, d)
		if _, err := d.Trim(t.Context(), 30, 0); err != nil {
			t.Fatal(err)
		}
		s := sqlstore.New(d, sqlstore.Config{Clock: func() time.Time { return start }})
		err := s.Run(t.Context(), 29, NewRecorder(29))
		wantErr(t, err, &sqlstore.CompactedError{Revision: 29, Floor: 30})
		// It may be run again, from where the log still is.
		ctx, cancel := context.WithCancel(t.Context())
		r := NewRecorder(30)
		done := make(chan error, 1)
		go func() { done <- s.Run(ctx, 30, r) }()
		waitFor(t, "the second run", func() bool { return s.Applied() == 50 })
		if _, err := s.Write(t.Context(), create(pod("new"), "x").Ops...); err != nil {
			t.Fatal(err)
		}
		cancel()
		if err := <-done; err != nil || len(r.Log(t)) != 21 {
			t.Fatalf("the second run gave %v and %d changes", err, len(r.Log(t)))
		}
	},
	"two servers, one log": twoServers,
	"head sees the other server": func(t *testing.T, db Database) {
		a, b := serve(t, db.Open(t), sqlstore.Config{}), serve(t, db.Open(t), sqlstore.Config{})
		for i := range 50 {
			writer, reader := a, b
			if i%2 == 1 {
				writer, reader = b, a
			}
			r := write(t, writer, create(pod(fmt.Sprint(i)), "x").Ops[0]).Revisions[0]
			if h, err := reader.Head(t.Context()); h < r || err != nil {
				t.Fatalf("after revision %d the other server's head is %d, %v", r, h, err)
			}
		}
	},
	"head of a server that came and went": func(t *testing.T, db Database) {
		a := serve(t, db.Open(t), sqlstore.Config{})
		for i := range 5 {
			if _, err := a.Head(t.Context()); err != nil {
				t.Fatal(err)
			}
			d := db.Open(t)
			r := must(t, d, create(pod(fmt.Sprint(i)), "x"))
			d.Close()
			if h, err := a.Head(t.Context()); h < r || err != nil {
				t.Fatalf("after revision %d the head is %d, %v", r, h, err)
			}
		}
	},
	"compaction": func(t *testing.T, db Database) {
		d := db.Open(t)
		s, c := timed(t, d)
		r := write(t, s, create(pod("a"), "0").Ops[0]).Revisions[0]
		for range 20 {
			r = write(t, s, update(pod("a"), r, "x").Ops[0]).Revisions[0]
		}
		c.round(t)
		c.pass(30 * time.Second)
		later := write(t, s, update(pod("a"), r, "y").Ops[0]).Revisions[0]
		c.round(t)
		c.pass(40 * time.Second) // the first writes are 70s old, the last 40s
		waitFor(t, "the floor to rise", func() bool { return s.Floor() == r })
		waitFor(t, "rows to go", func() bool {
			stats, err := d.Stats(t.Context())
			return err == nil && stats.HistoryRows == 1
		})
		if row, err := s.Read(t.Context(), pod("a"), r); err != nil || row.Superseded != later {
			t.Fatalf("at the floor: %+v, %v", row, err)
		}
		wantBounds(t, d, r, later)
	},
	"expiry": func(t *testing.T, db Database) {
		d := db.Open(t)
		s, c := timed(t, d)
		event := key("events", "default", "e")
		write(t, s, sqlstore.Op{Verb: sqlstore.Create, Key: event, Value: []byte("seen"), ExpiresAt: start.Add(time.Hour)})
		write(t, s, create(key("events", "default", "f"), "kept").Ops[0])
		c.round(t)
		c.pass(2 * time.Hour)
		waitFor(t, "the delete", func() bool { return len(s.Log(t)) == 3 })
		last := s.Log(t)[2]
		if !last.Deleted || last.Key != event || string(last.Value) != "seen" || last.PrevRevision != 1 {
			t.Fatalf("expiry wrote %+v", last)
		}
		_, err := d.Read(t.Context(), event, 0)
		wantErr(t, err, &sqlstore.NotFoundError{Key: event})
	},
	"one leader at a time": func(t *testing.T, db Database) {
		a, b := serve(t, db.Open(t), sqlstore.Config{}), serve(t, db.Open(t), sqlstore.Config{})
		var leaders, terms atomic.Int32
		ctx, cancel := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		for _, s := range []*server{a, b} {
			wg.Go(func() {
				s.Lead(ctx, "test", func(ctx context.Context) {
					if leaders.Add(1) > 1 {
						t.Error("two leaders")
					}
					terms.Add(1)
					select {
					case <-ctx.Done():
					case <-time.After(10 * time.Millisecond):
					}
					leaders.Add(-1)
				})
			})
		}
		waitFor(t, "two terms", func() bool { return terms.Load() >= 2 })
		cancel()
		wg.Wait()
	},
}
