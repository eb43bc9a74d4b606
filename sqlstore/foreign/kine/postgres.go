package kine

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// maxMessage is how many bytes the server may send as one row: the longest value, in hex
// where the URL asks for text (default_query_exec_mode=simple_protocol), and its name.
const maxMessage = 2*foreign.MaxValue + 1<<20

// openPostgres connects, and says for people which database it is.
func openPostgres(url string) (db *sql.DB, describe string, err error) {
	cfg, err := pgx.ParseConfig(url)
	if err != nil {
		return nil, "", fmt.Errorf("the URL of a PostgreSQL database of kine: %w", err) // without its password
	}
	cfg.MaxProtocolMessageBodyLen = maxMessage
	db = stdlib.OpenDB(*cfg)
	db.SetMaxOpenConns(1)
	return db, fmt.Sprintf("kine PostgreSQL database %s at %s:%d", cfg.Database, cfg.Host, cfg.Port), nil
}

// OpenPostgres reads the database of kine that a URL (postgres://USER@HOST/DATABASE) or
// keywords name, as libpq would: variables and password files count.
func OpenPostgres(ctx context.Context, url string) (*Source, error) {
	db, describe, err := openPostgres(url)
	if err != nil {
		return nil, err
	}
	if err := isKine(ctx, db, qPostgresTable, "it is none of kine"); err != nil {
		return nil, errors.Join(fmt.Errorf("reading %s: %w", describe, err), db.Close())
	}
	tx := &sql.TxOptions{Isolation: sql.LevelRepeatableRead, ReadOnly: true}
	return begin(ctx, db, dialect{describe: describe, head: qHead, live: qPostgresLive, limit: int64(foreign.MaxValue), tx: tx}, nil)
}

// CreatePostgres begins to fill a database that has no rows of kine. Everything is one
// transaction.
func CreatePostgres(ctx context.Context, url string) (*Sink, error) {
	db, describe, err := openPostgres(url)
	if err != nil {
		return nil, err
	}
	return create(ctx, db, writing{describe: describe, table: qPostgresTable, schema: postgresSchema, insert: qPostgresInsert, after: qPostgresSequence})
}
