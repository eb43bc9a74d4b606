// Package database opens the database that --store names: for a server, and for the commands of an operator, whose
// common flags it declares.
package database

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/flagfile"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

// Mode decides whether opening a database may change its schema.
type Mode int

const (
	Migrate Mode = iota // create it, or bring its schema up to date, as needed
	AsIs                // the database must exist, with a schema that this binary supports
)

// opener opens the database of a --store URL; rest is the URL without its scheme.
type opener func(ctx context.Context, url, rest string, how Mode, o DriverFlags) (sqlstore.Driver, error)

// DriverFlags are the flags of serve that only one driver uses.
type DriverFlags struct {
	maxBytes         int64
	checkpoint       string // "" as auto
	maxMemory        int64
	feed             string
	maxConns         int32
	pollInterval     time.Duration
	statementTimeout time.Duration
	lockTimeout      time.Duration
	relaxed          []string
	Unsynced         bool // --unsafe-no-fsync of the etcd that names the database
	Reconnected      func()
	Log              *slog.Logger
}

func (o *DriverFlags) AddTo(f *pflag.FlagSet) {
	f.Int64Var(&o.maxBytes, "sqlite-max-bytes", 0, "size limit of the SQLite file: at the limit the server refuses writes and serves reads (0: no limit but the disk)")
	f.StringVar(&o.checkpoint, "sqlite-checkpoint", "auto", "which program checkpoints SQLite's write-ahead log: auto (this server) or off (another program, such as Litestream; without one the log grows without bound)")
	f.Int64Var(&o.maxMemory, "in-memory-max-bytes", 1<<30, "size limit of --store=memory:, including past versions of objects: at the limit the server refuses writes other than deletes, and serves reads (0: no limit)")
	f.StringSliceVar(&o.relaxed, "relaxed-durability", nil, "leases, events or both: the server acknowledges writes of only these before they are on disk. A power loss may lose those of the last 100ms, a crash of this process none (default: none)")
	f.StringVar(&o.feed, "postgres-feed", "notify", "how to receive other servers' writes: notify (LISTEN) or poll (for poolers in transaction mode)")
	f.DurationVar(&o.pollInterval, "postgres-poll-interval", 0, "how often to look for other servers' writes (default 50ms with --postgres-feed=poll, else 5s)")
	f.Int32Var(&o.maxConns, "postgres-max-connections", 0, "maximum connections in the pool of this server, without the one for LISTEN (default: pool_max_conns of the URL, at least 8)")
	f.DurationVar(&o.statementTimeout, "postgres-statement-timeout", 30*time.Second, "how long a statement may take")
	f.DurationVar(&o.lockTimeout, "postgres-lock-timeout", 5*time.Second, "how long a commit waits for those of other servers")
}

// flagError is an error about another flag than --store.
type flagError struct {
	flag string
	err  error
}

func newFlagError(flag string, err error) error { return &flagError{flag, err} }

func (e *flagError) Error() string { return "--" + e.flag + ": " + e.err.Error() }

func (e *flagError) Unwrap() error { return e.err }

// relaxedResources returns the resources of --relaxed-durability.
func (o *DriverFlags) relaxedResources() ([]string, error) {
	resources, err := sqlstore.ParseRelaxed(o.relaxed)
	if err != nil {
		return nil, newFlagError("relaxed-durability", err)
	}
	return resources, nil
}

func (o *DriverFlags) postgres() (cfg postgres.Config, err error) {
	switch o.feed {
	case "": // no server: nothing is listened for
		cfg.AnyPooler = true
	case "notify":
	case "poll":
		cfg.Poll = true
	default:
		return cfg, newFlagError("postgres-feed", fmt.Errorf("%q is neither notify nor poll", o.feed))
	}
	if o.maxConns < 0 || o.maxConns == 1 {
		return cfg, newFlagError("postgres-max-connections", fmt.Errorf("%d: at least 2 are needed", o.maxConns))
	}
	cfg.MaxConns, cfg.PollInterval, cfg.StatementTimeout, cfg.LockTimeout = o.maxConns, o.pollInterval, o.statementTimeout, o.lockTimeout
	cfg.Reconnected, cfg.Log = o.Reconnected, o.Log
	cfg.Relaxed, err = o.relaxedResources()
	return cfg, err
}

// drivers are all stores there are, by URL scheme.
var drivers = map[string]opener{
	"sqlite":     openSQLite,
	"postgres":   openPostgres,
	"postgresql": openPostgres,
	"memory":     openMemory,
}

// InMemoryURL is a database in memory: an empty one for each process.
const InMemoryURL = "memory:"

func IsInMemory(url string) bool { return strings.HasPrefix(url, InMemoryURL) }

func openMemory(_ context.Context, _, rest string, how Mode, o DriverFlags) (sqlstore.Driver, error) {
	switch {
	case rest != "":
		return nil, fmt.Errorf("a database in memory has no name: want %s, not %q behind it", InMemoryURL, rest)
	case how == AsIs:
		return nil, errors.New("only its own server can reach a database in memory")
	case o.maxMemory < 0:
		return nil, newFlagError("in-memory-max-bytes", fmt.Errorf("%d is negative", o.maxMemory))
	case len(o.relaxed) > 0:
		return nil, newFlagError("relaxed-durability", errors.New("a database in memory has no disk to wait for"))
	}
	return memory.New(memory.Config{MaxBytes: o.maxMemory}).Open(), nil
}

func openSQLite(ctx context.Context, _, rest string, how Mode, o DriverFlags) (sqlstore.Driver, error) {
	path := strings.TrimPrefix(rest, "//")
	if o.maxBytes < 0 {
		return nil, newFlagError("sqlite-max-bytes", fmt.Errorf("%d is negative", o.maxBytes))
	}
	if o.checkpoint != "" && o.checkpoint != "auto" && o.checkpoint != "off" {
		return nil, newFlagError("sqlite-checkpoint", fmt.Errorf("%q is neither auto nor off", o.checkpoint))
	}
	if how == AsIs {
		if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("the database file %s does not exist", path)
		}
	}
	relaxed, err := o.relaxedResources()
	if err != nil {
		return nil, err
	}
	cfg := sqlite.Config{Relaxed: relaxed, NoMigrate: how == AsIs, MaxBytes: o.maxBytes, NoCheckpoint: o.checkpoint == "off", Unsynced: o.Unsynced}
	if o.feed == "" { // a command, maybe next to a server with many writes
		cfg.Patience = 2 * time.Minute
	}
	return sqlite.Open(ctx, path, cfg)
}

// SQLitePath returns the path of the file that a --store URL names; false if the URL names no file.
func SQLitePath(url string) (string, bool) {
	rest, ok := strings.CutPrefix(url, "sqlite:")
	return strings.TrimPrefix(rest, "//"), ok
}

func openPostgres(ctx context.Context, url, rest string, how Mode, o DriverFlags) (sqlstore.Driver, error) {
	cfg, err := o.postgres()
	if err != nil {
		return nil, err
	}
	cfg.NoMigrate = how == AsIs
	return postgres.Open(ctx, connection(url, rest), cfg)
}

// connection returns the connection string for libpq: the URL, or the keywords after the scheme.
func connection(url, rest string) string {
	if strings.HasPrefix(rest, "//") {
		return url
	}
	return rest
}

// Open opens a database with the default settings of its driver.
func Open(ctx context.Context, url string, how Mode) (sqlstore.Driver, error) {
	return OpenWith(ctx, url, how, DriverFlags{})
}

func OpenWith(ctx context.Context, url string, how Mode, o DriverFlags) (sqlstore.Driver, error) {
	scheme, rest, ok := strings.Cut(url, ":")
	open := drivers[scheme]
	if !ok || open == nil {
		named := "it"
		if isScheme(scheme) { // else it may be anything, a password too
			named = strconv.Quote(scheme)
		}
		return nil, fmt.Errorf("--store: %s names no known store: want sqlite:FILE, postgres://USER@HOST/DATABASE, postgres:KEYWORD=VALUE... or memory:", named)
	}
	d, err := open(ctx, url, rest, how, o)
	if _, ok := errors.AsType[*flagError](err); ok {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("--store: %w", err)
	}
	return d, nil
}

func isScheme(text string) bool {
	return text != "" && strings.Trim(text, "abcdefghijklmnopqrstuvwxyz0123456789+.-") == ""
}

// PublicURL returns a store's URL without secrets, with the settings from environment variables and files.
func PublicURL(text string) string {
	scheme, rest, ok := strings.Cut(text, ":")
	switch scheme {
	case "sqlite", "memory":
		return text
	case "postgres", "postgresql":
		if seen, err := postgres.Describe(connection(text, rest)); ok && err == nil && !mayLeakPassword(text) {
			return seen
		}
		return scheme + ":..."
	}
	return "..."
}

// mayLeakPassword reports whether other parts of a URL may hold a piece of the password, because a character of it
// is not escaped.
func mayLeakPassword(text string) bool {
	_, rest, ok := strings.Cut(text, "://")
	if !ok {
		return false
	}
	authority, path, _ := strings.Cut(rest, "/")
	_, err := url.Parse(text)
	return err != nil || strings.Count(authority, "@") > 1 || strings.ContainsAny(path, "@#") || strings.Contains(authority, "#")
}

// Files returns the files of an embedded database. They hold Secrets in plain text unless encryption is configured.
func Files(flag, url string) []flagfile.File {
	path, ok := strings.CutPrefix(url, "sqlite:")
	if !ok {
		return nil
	}
	path = strings.TrimPrefix(path, "//")
	return []flagfile.File{flagfile.New(flag, path), flagfile.New(flag, path+"-wal")}
}

// CacheFileOf returns the default path of the cache file of an SQLite database.
func CacheFileOf(database string) string { return database + "-cache" }
