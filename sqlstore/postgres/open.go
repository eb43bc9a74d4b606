// Package postgres keeps the store in PostgreSQL 13 or newer.
//
// It promises what sqlstore.Driver asks, with revisions handed out under the row
// lock of kv_meta's counter, so that several servers share one database. Passwords
// are taken from the URL, PG* variables or the password file and never appear in
// an error.
//
// Goroutines: the listener and the notifier of Hints, which end with its context;
// the heartbeat of each lead, which ends with the lead. Close waits for all.
package postgres

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	migratepgx "github.com/golang-migrate/migrate/v4/database/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlock/rowlock/migrations"
	"github.com/rowlock/rowlock/sqlstore"
)

// Config sets a Driver up. Zero values take the defaults named.
type Config struct {
	// Poll looks for other servers' writes at PollInterval instead of listening
	// for notifications, and keeps to what a pooler in transaction mode allows.
	Poll             bool
	PollInterval     time.Duration // default 50ms with Poll; without it 5s, in case a notification is lost
	MaxConns         int32         // default: pool_max_conns of the URL, else 8
	StatementTimeout time.Duration // default 30s
	LockTimeout      time.Duration // default 5s
	LeadFor          time.Duration // how long a lead outlives its holder; default 5s
	NoMigrate        bool          // fail with SchemaError instead of bringing an older schema up to date
	Log              *slog.Logger
}

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
		c.LeadFor = 5 * time.Second
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	return c
}

// Driver implements sqlstore.Driver.
type Driver struct {
	cfg     Config
	pool    *pgxpool.Pool
	connect *pgx.ConnConfig
	nonce   string // names this process in markers and leads
	seq     int64
	pending *pendingBatch
	mu      sync.Mutex // Apply and Resolve
	notify  chan struct{}
	leads   atomic.Int64
	closing chan struct{}
	once    sync.Once
	loops   sync.WaitGroup
}

// Open connects to the database that url names (any libpq URL or keyword string)
// and creates or migrates the schema. Errors: SchemaError, ErrUnavailable,
// ErrReadOnly.
func Open(ctx context.Context, url string, cfg Config) (*Driver, error) {
	cfg = cfg.withDefaults()
	pc, err := pgxpool.ParseConfig(url)
	if err != nil {
		return nil, fmt.Errorf("opening PostgreSQL: %w", redact(err))
	}
	if cfg.MaxConns > 0 {
		pc.MaxConns = cfg.MaxConns
	} else if pc.MaxConns < 8 {
		pc.MaxConns = 8
	}
	d := &Driver{cfg: cfg, nonce: newNonce(), notify: make(chan struct{}, 1), closing: make(chan struct{})}
	d.prepare(pc)
	d.connect = pc.ConnConfig.Copy()
	if d.pool, err = pgxpool.NewWithConfig(ctx, pc); err != nil {
		return nil, fmt.Errorf("opening PostgreSQL: %w", redact(err))
	}
	if err := d.migrate(ctx); err != nil {
		d.Close()
		return nil, fmt.Errorf("opening PostgreSQL: %w", err)
	}
	if _, err := d.pool.Exec(ctx, qOldMarkers); err != nil {
		d.cfg.Log.Debug("cannot remove the markers of former servers", "error", err)
	}
	return d, nil
}

// prepare makes every connection alike. With a pooler in transaction mode a
// session's settings would reach strangers: there they are set in each transaction.
func (d *Driver) prepare(pc *pgxpool.Config) {
	if pc.ConnConfig.ConnectTimeout == 0 {
		pc.ConnConfig.ConnectTimeout = 5 * time.Second
	}
	if d.cfg.Poll {
		pc.ConnConfig.DefaultQueryExecMode = pgx.QueryExecModeExec
		return
	}
	pc.AfterConnect = func(ctx context.Context, c *pgx.Conn) error {
		// Generic plans: the custom plan of a long array costs more than its run.
		all := append(d.settings("SESSION"), "SET plan_cache_mode = force_generic_plan")
		_, err := c.Exec(ctx, strings.Join(all, "; "), pgx.QueryExecModeSimpleProtocol)
		return err
	}
}

// settings bound how long a statement or a lock may take, and keep the planner on
// the indexes that the statements were written for even while statistics are young.
func (d *Driver) settings(scope string) []string {
	set := func(name, value string) string { return "SET " + scope + " " + name + " = " + value }
	return []string{
		set("statement_timeout", fmt.Sprint(d.cfg.StatementTimeout.Milliseconds())),
		set("lock_timeout", fmt.Sprint(d.cfg.LockTimeout.Milliseconds())),
		set("enable_seqscan", "off"),
		set("enable_hashjoin", "off"),
		set("enable_mergejoin", "off"),
	}
}

// queueSettings sets a transaction up where sessions are not ours.
func (d *Driver) queueSettings(b *pgx.Batch) {
	if d.cfg.Poll {
		for _, s := range d.settings("LOCAL") {
			b.Queue(s)
		}
	}
}

func newNonce() string {
	var b [8]byte
	rand.Read(b[:]) // never fails
	return hex.EncodeToString(b[:])
}

// migrate brings the schema up to date, or says why it cannot be used.
func (d *Driver) migrate(ctx context.Context) error {
	known, err := migrations.Newest("postgres")
	if err != nil {
		return err
	}
	found, dirty, err := d.schema(ctx)
	if err != nil {
		return err
	}
	if found > known {
		var compatible int64
		if err := d.pool.QueryRow(ctx, `SELECT number FROM kv_meta WHERE key = 'schema_compatible'`).Scan(&compatible); err != nil {
			return fmt.Errorf("reading the schema's compatibility: %w", translate(err))
		}
		if uint(compatible) > known {
			return &sqlstore.SchemaError{Found: found, Known: known, Reason: "it was written by a newer version; use that version"}
		}
		return nil
	}
	if found == known && !dirty {
		return nil
	}
	if d.cfg.NoMigrate {
		return &sqlstore.SchemaError{Found: found, Known: known, Reason: "it must be migrated first"}
	}
	return d.migrateUp()
}

// migrateUp runs what is missing; golang-migrate takes an advisory lock, so that
// servers that start together do not do it twice.
func (d *Driver) migrateUp() error {
	db := stdlib.OpenDB(*d.connect)
	defer db.Close()
	drv, err := migratepgx.WithInstance(db, &migratepgx.Config{})
	if err != nil {
		return translate(err)
	}
	if err := migrations.Up("postgres", drv); err != nil {
		return translate(err)
	}
	return nil
}

func (d *Driver) schema(ctx context.Context) (version uint, dirty bool, err error) {
	var there bool
	if err := d.pool.QueryRow(ctx, qTable).Scan(&there); err != nil {
		return 0, false, translate(err)
	}
	if !there {
		return 0, false, nil
	}
	var n int64
	err = d.pool.QueryRow(ctx, qSchema).Scan(&n, &dirty)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, false, nil
	}
	return uint(max(n, 0)), dirty, translate(err)
}

// Exclusive implements sqlstore.Driver: other servers may always write.
func (d *Driver) Exclusive() uint64 { return 0 }

// Close waits for everything the driver started, and for calls under way. The
// marker of the last batch is taken away, as nobody will ask for it.
func (d *Driver) Close() error {
	d.once.Do(func() {
		close(d.closing)
		d.loops.Wait()
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.seq > 0 {
			_, _ = d.pool.Exec(ctx, qDropMarker, d.marker()) // one short row more does no harm
		}
		d.pool.Close()
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

// Pool tells how the connections are used, for metrics.
func (d *Driver) Pool() (total, idle, acquired, most int32) {
	s := d.pool.Stat()
	return s.TotalConns(), s.IdleConns(), s.AcquiredConns(), s.MaxConns()
}
