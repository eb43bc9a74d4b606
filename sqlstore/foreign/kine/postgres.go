package kine

import (
	"database/sql"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/rowlock/rowlock/sqlstore/foreign"
)

// maxMessage bounds the bytes of a row from the server: the longest value, in hex if the URL
// requests text (default_query_exec_mode=simple_protocol), and its name.
const maxMessage = 2*foreign.MaxValue + 1<<20

// openPostgres connects, and describes the database for people.
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
