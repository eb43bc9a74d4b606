// Package postgres is the driver of PostgreSQL 13 or newer.
//
// Revisions are allocated under the row lock of kv_meta's counter, so that several servers share one database.
// Passwords come from the URL, PG* variables or the password file, and never appear in an error.
//
// Goroutines: the listener, the notifier and the watcher of other hosts of Hints, which end with its context; the
// heartbeat of the leads, which ends with the last one; the one that flushes relaxed commits. Close waits for all.
package postgres

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/rowlock/rowlock/sqlstore"
)

// Config sets a Driver up. Zero values take the defaults named.
type Config struct {
	// Poll looks for other servers' writes at PollInterval instead of listening
	// for notifications, and keeps to what a pooler in transaction mode allows.
	Poll             bool
	AnyPooler        bool          // turns Poll on behind a pooler in transaction mode, which is refused otherwise
	PollInterval     time.Duration // default 50ms with Poll; without it 5s, in case a notification is lost
	MaxConns         int32         // default: pool_max_conns of the URL, else 8
	StatementTimeout time.Duration // default 30s
	LockTimeout      time.Duration // default 5s
	LeadFor          time.Duration // how long a lead outlives its holder; default 1.4s
	Relaxed          []string      // resources whose commits are acknowledged up to sqlstore.RelaxedFor before they are on the disk
	NoMigrate        bool          // fail with SchemaError instead of bringing an older schema up to date
	Reconnected      func()        // called when the connection that listens is made anew; may be nil
	Log              *slog.Logger
}

// connectTime bounds how long connecting takes, unless connect_timeout sets it.
const connectTime = 4 * time.Second

// boundsTime returns the network timeout of a short statement that other work waits for. It leaves
// room for making a connection, whose error is more specific than a timeout.
func (d *Driver) boundsTime() time.Duration {
	return max(5*time.Second, d.single.ConnectTimeout+time.Second)
}

// answerTime returns the network timeout of a write, after which its connection is closed.
func (d *Driver) answerTime() time.Duration { return d.cfg.LockTimeout + d.boundsTime() }

func (c Config) withDefaults() Config {
	if c.PollInterval <= 0 {
		c.PollInterval = 5 * time.Second
		if c.Poll {
			c.PollInterval = 50 * time.Millisecond
		}
	}
	if c.StatementTimeout <= 0 {
		c.StatementTimeout = 30 * time.Second
	}
	if c.LockTimeout <= 0 {
		c.LockTimeout = 5 * time.Second
	}
	if c.LeadFor <= 0 {
		c.LeadFor = 1400 * time.Millisecond
	}
	if c.Reconnected == nil {
		c.Reconnected = func() {}
	}
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Driver implements sqlstore.Driver.
type Driver struct {
	sqlstore.Unstaged
	cfg      Config
	pool     *pgxpool.Pool
	single   *pgx.ConnConfig // of connections outside the pool
	hosts    *hosts
	accepts  pgconn.ValidateConnectFunc // whether a server takes writes
	nonce    string                     // names this process in markers and leads
	session  string                     // the application_name of its connections
	seq      int64                      // number of the last batch
	marked   bool                       // the marker's row is there, as far as known
	far      int64
	parts    int          // how many connections read everything
	head     atomic.Int64 // a revision that is or was the newest, to choose how to read
	planned  atomic.Int64 // what head was when sessions were last replaced for their plans
	trimmed  atomic.Int64 // no row that ended before it is left, as far as known
	reset    atomic.Int64 // when the pool was reset last, in Unix nanoseconds
	pending  *pendingBatch
	lineage  lineage // which database this is
	relaxed  *sqlstore.Relaxed
	reserved int64      // revisions up to here may be given to relaxed commits; guarded by mu
	mu       sync.Mutex // Apply and Resolve
	notify   chan struct{}
	leads    *leads
	clock    clock
	closing  chan struct{}
	once     sync.Once
	loops    sync.WaitGroup
}

// Open connects to the database that url names (any libpq URL or keyword string)
// and creates or migrates the schema. Only a server that takes writes will do: what
// a standby shows may be old. Errors: SchemaError, ErrUnavailable.
func Open(ctx context.Context, url string, cfg Config) (*Driver, error) {
	cfg = cfg.withDefaults()
	from, err := newSource(url, cfg.Log)
	if err != nil {
		return nil, fmt.Errorf("opening PostgreSQL: %w", err)
	}
	pc := from.first.Copy()
	if cfg.MaxConns > 0 {
		pc.MaxConns = cfg.MaxConns
	} else if pc.MaxConns < 8 {
		pc.MaxConns = 8
	}
	d := &Driver{cfg: cfg, far: farBack, parts: max(1, min(maxParts, int(pc.MaxConns)/2)), nonce: newNonce(), notify: make(chan struct{}, 1), closing: make(chan struct{})}
	d.leads = newLeads(kvLead{d}, d.nonce, cfg.LeadFor, &d.loops, d.closing, cfg.Log)
	d.relaxed = sqlstore.NewRelaxed(cfg.Relaxed, d.flush)
	d.lineage.begin(d.head.Load, cfg.Log)
	d.prepare(pc)
	d.accepts = pc.ConnConfig.ValidateConnect
	pc.ConnConfig.ValidateConnect = d.validate
	d.single = pc.ConnConfig.Copy()
	d.hosts = newHosts(from, &d.single.Config, cfg.Log, func() { d.pool.Reset() })
	pc.BeforeConnect, pc.BeforeClose = d.hosts.choose, d.hosts.abandon
	d.checkPrimaries(ctx)
	if d.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		d.hosts.close()
		return nil, fmt.Errorf("opening PostgreSQL: %w", redact(err))
	}
	d.lineage.use(d.pool.Reset)
	if err := d.check(ctx); err != nil {
		d.Close()
		if errors.Is(err, errShared) && cfg.AnyPooler {
			cfg.Poll, cfg.PollInterval = true, 0
			return Open(ctx, url, cfg)
		}
		return nil, fmt.Errorf("opening PostgreSQL: %w", err)
	}
	if err := d.migrate(ctx); err != nil {
		d.Close()
		return nil, fmt.Errorf("opening PostgreSQL: %w", err)
	}
	if _, err := d.Bounds(ctx); err != nil { // for its clock, among others
		d.Close()
		return nil, fmt.Errorf("opening PostgreSQL: %w", err)
	}
	if _, err := d.pool.Exec(ctx, qOldMarkers); err != nil {
		d.cfg.Log.Debug("cannot remove the markers of former servers", "error", err)
	}
	var sums string
	if err := d.pool.QueryRow(ctx, qDataChecksums).Scan(&sums); err == nil && sums == "off" {
		d.cfg.Log.Warn("PostgreSQL runs with data_checksums = off: damage of its disk can change or lose objects without an error; stop it, run pg_checksums --enable, and start it again")
	}
	if d.relaxed != nil {
		d.loops.Go(func() { d.relaxed.Run(d.closing) })
	}
	return d, nil
}

// limit bounds how long a call may wait for an answer, as a network that swallows
// packets ends no connection.
func (d *Driver) limit(ctx context.Context, most time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeoutCause(ctx, most, errSilent)
}

// call begins a call of the database; done translates its error.
func (d *Driver) call(ctx context.Context, most time.Duration) (_ context.Context, done func(*error)) {
	ctx, cancel := d.limit(ctx, most)
	return ctx, func(err *error) {
		if *err != nil {
			*err = d.translate(ctx, *err)
		}
		cancel()
	}
}

// prepare makes every connection alike. With a pooler in transaction mode a
// session's settings would reach strangers: there they are set in each transaction.
func (d *Driver) prepare(pc *pgxpool.Config) {
	pc.ConnConfig.ConnectTimeout = cmp.Or(pc.ConnConfig.ConnectTimeout, connectTime)
	if pc.ConnConfig.ValidateConnect == nil {
		pc.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsReadWrite
	}
	name := cmp.Or(pc.ConnConfig.RuntimeParams["application_name"], "rowlock")
	d.session = name[:min(len(name), 40)] + " " + d.nonce
	pc.ConnConfig.RuntimeParams["application_name"] = d.session
	pc.ConnConfig.OnNotice = noticed
	if d.cfg.Poll {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		return
	}
	pc.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		_, err := c.Exec(ctx, d.settings(false)+"; "+qOwnSession, pgx.QueryExecModeSimpleProtocol)
		return err
	}
}

// settings returns the statement that bounds how long a statement or a lock may take, and keeps the planner on the indexes that
// the statements were written for even while statistics are young: in the transaction, or in the whole session.
func (d *Driver) settings(transaction bool) string {
	return fmt.Sprintf(qSettings, transaction, d.cfg.StatementTimeout.Milliseconds(), d.cfg.LockTimeout.Milliseconds())
}

// queueSettings sets a transaction up where sessions are not ours.
func (d *Driver) queueSettings(b *pgx.Batch) {
	if d.cfg.Poll {
		b.Queue(d.settings(true))
	}
}

func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// connect makes a connection outside the pool.
func (d *Driver) connect(ctx context.Context) (*pgx.Conn, error) {
	c := d.single.Copy()
	if err := d.hosts.choose(ctx, c); err != nil {
		return nil, err
	}
	return pgx.ConnectConfig(ctx, c)
}

// Now implements sqlstore.Driver with the database's clock.
func (d *Driver) Now() time.Time { return d.clock.now() }

// Exclusive implements sqlstore.Driver: other servers may always write.
func (d *Driver) Exclusive() uint64 { return 0 }

// Close waits for everything the driver started, and for calls under way. It deletes the marker of
// the last batch, which is no longer needed.
func (d *Driver) Close() error {
	d.once.Do(func() {
		close(d.closing)
		d.loops.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.relaxed.Stats().Unsynced > 0 {
			_ = d.flush() // else PostgreSQL does it within three times its wal_writer_delay
		}
		if d.marked {
			_, _ = d.pool.Exec(ctx, qDropMarker, d.marker()) // one short row more does no harm
		}
		d.pool.Close()
		d.hosts.close()
	})
	return nil
}

func (d *Driver) closed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// Pool returns how the connections are used, for metrics.
func (d *Driver) Pool() (total, idle, acquired, most int32) {
	s := d.pool.Stat()
	return s.TotalConns(), s.IdleConns(), s.AcquiredConns(), s.MaxConns()
}
