package sqlstore

import (
	"context"
	"errors"
	"log/slog"
	"time"
)

// Config sets a Store up. Zero values take the defaults named.
type Config struct {
	Retention    time.Duration // how long ended rows are kept; default 5m
	MaxBatch     int           // most Txns in one commit; default 512
	MaxBatchSize int           // most value bytes in one commit; default 4 MiB
	MaxValue     int           // largest value; default 3 MiB (the API's own limit is lower)
	Clock        func() time.Time
	Log          *slog.Logger
}

// Sink receives the log. The store calls it from one goroutine, in revision
// order, without gaps, and acknowledges an own write only after the Sink has
// returned from its revision. It must not block.
type Sink interface {
	Apply(batch []Change)
}

// Store is the face that a server uses. It is safe for concurrent use.
type Store struct {
	driver Driver
	cfg    Config
}

// New makes a Store on a driver. Nothing runs until Run.
func New(d Driver, cfg Config) *Store { return &Store{driver: d, cfg: cfg} }

var errStub = errors.New("sqlstore: being built")

// Run commits, tails and compacts until ctx ends, then waits for its goroutines.
// The sink is first brought every change after from.
func (s *Store) Run(ctx context.Context, from int64, sink Sink) error { return errStub }

// Write commits ops together. It returns when they are durable and the sink has
// them. Errors: ExistsError, ConflictError, NotFoundError, ErrTooLarge, ErrFull,
// ErrUnavailable, ErrUncertain, ErrClosed.
func (s *Store) Write(ctx context.Context, ops ...Op) (Outcome, error) {
	return Outcome{}, errStub
}

// Head returns a revision no older than any write acknowledged, by any server,
// before the call. Concurrent callers share one query; an exclusive driver needs none.
func (s *Store) Head(ctx context.Context) (int64, error) { return 0, errStub }

// Applied is the newest revision that the sink has.
func (s *Store) Applied() int64 { return 0 }

// Floor is the highest compacted revision known here.
func (s *Store) Floor() int64 { return 0 }

// Scan, Read and Changes read the table; see Driver.
func (s *Store) Scan(ctx context.Context, req ScanRequest) ([]Row, error) {
	return s.driver.Scan(ctx, req)
}

func (s *Store) Read(ctx context.Context, key Key, revision int64) (Row, error) {
	return s.driver.Read(ctx, key, revision)
}

func (s *Store) Changes(ctx context.Context, after int64, limit int, previous bool) ([]Change, error) {
	return s.driver.Changes(ctx, after, limit, previous)
}

// Lead runs fn on one server at a time under name: it waits to become the
// holder, calls fn with a context that ends when the lead is lost, and tries
// again until ctx ends.
func (s *Store) Lead(ctx context.Context, name string, fn func(context.Context)) error {
	return errStub
}
