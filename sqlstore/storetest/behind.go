package storetest

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// mirror is a Sink that keeps the live rows, and can be loaded again.
type mirror struct {
	mu      sync.Mutex
	at      int64
	live    map[sqlstore.Key]sqlstore.Row
	reloads int
	bad     []string
}

// Apply implements sqlstore.Sink.
func (m *mirror) Apply(batch []sqlstore.Change) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, c := range batch {
		if c.Revision != m.at+1 {
			m.bad = append(m.bad, fmt.Sprintf("revision %d came after %d", c.Revision, m.at))
		}
		m.at = c.Revision
		if c.Deleted {
			delete(m.live, c.Key)
		} else {
			m.live[c.Key] = c.Row
		}
	}
}

// Reload implements sqlstore.Reloader.
func (m *mirror) Reload(ctx context.Context, s *sqlstore.Store, _ bool) (int64, error) {
	head, err := s.Head(ctx)
	if err != nil {
		return 0, err
	}
	live := map[sqlstore.Key]sqlstore.Row{}
	req := sqlstore.ScanRequest{Limit: 7, Revision: head}
	for {
		rows, err := s.Scan(ctx, req)
		if err != nil {
			return 0, err
		}
		for _, r := range rows {
			live[r.Key] = r
		}
		if len(rows) < req.Limit {
			break
		}
		req.After = rows[len(rows)-1].Key
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if head < m.at {
		m.bad = append(m.bad, fmt.Sprintf("loaded anew at %d, behind %d", head, m.at))
	}
	m.at, m.live = head, live
	m.reloads++
	return head, nil
}

// equals compares what the sink has with the table.
func (m *mirror) equals(t testing.TB, d sqlstore.Driver) {
	t.Helper()
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, bad := range m.bad {
		t.Error(bad)
	}
	rows := scanAll(t, d, sqlstore.ScanRequest{Limit: 100})
	for _, r := range rows {
		if have := m.live[r.Key]; have.Revision != r.Revision || string(have.Value) != string(r.Value) {
			t.Errorf("the sink has\n%s, the table\n%s", show(have), show(r))
		}
	}
	if len(rows) != len(m.live) {
		t.Errorf("the sink has %d objects, the table %d", len(m.live), len(rows))
	}
}

func mirrored(t testing.TB, d sqlstore.Driver, cfg sqlstore.Config) (*sqlstore.Store, *mirror) {
	t.Helper()
	cfg.Clock = func() time.Time { return start }
	s, m := sqlstore.New(d, cfg), &mirror{live: map[sqlstore.Key]sqlstore.Row{}}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, 0, m) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	return s, m
}

func trimAll(t testing.TB, d sqlstore.Driver, to int64) {
	t.Helper()
	if err := sqlstore.Trim(t.Context(), d, to, 0, func(int) {}); err != nil {
		t.Fatal(err)
	}
}

// cutOff makes history end beyond the point that a server's feed has reached: its sink is loaded again, and
// its writes are still acknowledged.
func cutOff(t *testing.T, db Database) {
	other := db.Open(t)
	b := &broken{Driver: db.Open(t), cause: sqlstore.ErrUnavailable}
	s, m := mirrored(t, b, sqlstore.Config{})
	put := func(name string) {
		t.Helper()
		if _, err := s.Write(t.Context(), create(pod(name), "own").Ops...); err != nil {
			t.Fatal(err)
		}
	}
	put("a")
	b.down.Store(true)
	for i := range 30 {
		must(t, other, create(pod(fmt.Sprintf("other-%02d", i)), "x"))
	}
	must(t, other, remove(pod("other-03"), 5, "x"))
	last := must(t, other, update(pod("a"), 1, "changed"))
	trimAll(t, other, last)
	if _, err := s.Write(t.Context(), create(pod("refused"), "x").Ops...); err == nil {
		t.Fatal("a database that is away took a write")
	}
	b.down.Store(false)
	put("b") // and not before the sink has it
	m.mu.Lock()
	if m.live[pod("b")].Revision != last+1 || string(m.live[pod("a")].Value) != "changed" {
		t.Errorf("after its acknowledgement the write is at %+v in the sink", m.live[pod("b")])
	}
	m.mu.Unlock()
	put("c")
	m.equals(t, other)
	if m.reloads != 1 {
		t.Errorf("the sink was loaded anew %d times", m.reloads)
	}
	if s.Behind() != 0 {
		t.Errorf("the feed is behind for %s", s.Behind())
	}
}

// cutOffAgain does that repeatedly, while both servers write.
func cutOffAgain(t *testing.T, db Database) {
	other := db.Open(t)
	b := &broken{Driver: db.Open(t), cause: sqlstore.ErrUnavailable}
	s, m := mirrored(t, b, sqlstore.Config{RetryFor: patience})
	var writers sync.WaitGroup
	stop := make(chan struct{})
	for w := range 3 {
		writers.Go(func() {
			for i := 0; ; i++ {
				select {
				case <-stop:
					return
				default:
				}
				k := pod(fmt.Sprintf("own-%d-%d", w, i))
				out, err := s.Write(t.Context(), create(k, "x").Ops...)
				if err != nil {
					t.Error(err)
					return
				}
				if s.Applied() < out.Revisions[0] {
					t.Errorf("%s is acknowledged at %d, the sink is at %d", k, out.Revisions[0], s.Applied())
				}
			}
		})
	}
	for round := range 10 {
		b.down.Store(true)
		var last int64
		for i := range 5 {
			last = must(t, other, create(pod(fmt.Sprintf("other-%d-%d", round, i)), "x"))
		}
		trimAll(t, other, last)
		b.down.Store(false)
		for deadline := time.Now().Add(patience); s.Applied() < last; time.Sleep(time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatalf("the feed is at %d, the log at %d", s.Applied(), last)
			}
			// Without a hint, the next write finds the gap.
		}
	}
	close(stop)
	writers.Wait()
	m.equals(t, other)
	if m.reloads == 0 {
		t.Error("the sink was never loaded anew")
	}
}
