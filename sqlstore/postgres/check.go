package postgres

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// serverSettings are the administrator's settings on which a store depends.
type serverSettings struct {
	database, role     string
	encoding           string
	schema, path       string // where tables are made, "" for nowhere, and search_path
	idle               string // idle_session_timeout in ms, before a session changed it
	connections        int64  // max_connections without those that are kept for others
	ofRole, ofDatabase int64  // CONNECTION LIMIT, negative for none
	superuser          bool
	pid                int64 // of the session at the server
}

// errShared reports that sessions are not the driver's own.
var errShared = errors.New("a pooler in transaction mode (such as PgBouncer) is in front of PostgreSQL, and sessions are shared with other clients:" +
	" LISTEN and prepared statements do not work there; start with --postgres-feed=poll, or connect to a pool in session mode or to PostgreSQL itself")

// check refuses a database that cannot hold a store, and warns of settings that will be in the way later.
func (d *Driver) check(ctx context.Context) (err error) {
	ctx, done := d.call(ctx, d.answerTime())
	defer done(&err)
	var s serverSettings
	var clientPID uint32
	err = d.pool.AcquireFunc(ctx, func(c *pgxpool.Conn) error {
		clientPID = c.Conn().PgConn().PID()
		return c.QueryRow(ctx, qSurroundings, pgx.QueryExecModeSimpleProtocol).Scan(&s.database, &s.role, &s.encoding, &s.schema, &s.path, &s.idle, &s.connections, &s.ofRole, &s.ofDatabase, &s.superuser, &s.pid)
	})
	if err != nil {
		return unknownParameter(err)
	}
	if s.encoding != "UTF8" {
		return fmt.Errorf("the encoding of database %q is %s, and rowlock needs UTF8: make one with CREATE DATABASE ... ENCODING 'UTF8' TEMPLATE template0", s.database, s.encoding)
	}
	if s.schema == "" {
		return fmt.Errorf("search_path is '%s', which names no schema that exists, so there is no place for tables: name one in the connection string (search_path=public) or for the role (ALTER ROLE %s SET search_path = public)",
			s.path, pgx.Identifier{s.role}.Sanitize())
	}
	pooled := s.pid != int64(clientPID)
	if pooled && !d.cfg.Poll {
		if err := d.ownSessions(ctx); err != nil {
			return err
		}
	}
	if ms, err := strconv.ParseInt(s.idle, 10, 64); err == nil && ms > 0 {
		const what = "PostgreSQL ends sessions that are idle for idle_session_timeout"
		if d.cfg.Poll {
			d.cfg.Log.Warn(what+": turn that off for rowlock's role (ALTER ROLE ... SET idle_session_timeout = 0)", "role", s.role, "milliseconds", ms)
		} else {
			d.cfg.Log.Info(what+": rowlock turns it off for its own sessions", "role", s.role, "milliseconds", ms)
		}
	}
	if !pooled {
		d.countConnections(&s)
	}
	return nil
}

// countConnections warns where the connections of two servers are more than PostgreSQL allows.
func (d *Driver) countConnections(s *serverSettings) {
	most, limit := s.connections, "max_connections"
	if s.ofDatabase >= 0 && s.ofDatabase < most && !s.superuser {
		most, limit = s.ofDatabase, "CONNECTION LIMIT of database "+s.database
	}
	if s.ofRole >= 0 && s.ofRole < most && !s.superuser {
		most, limit = s.ofRole, "CONNECTION LIMIT of role "+s.role
	}
	one := int64(d.pool.Config().MaxConns) + 1
	if d.cfg.Poll {
		one--
	}
	if most >= 2*one {
		return
	}
	d.cfg.Log.Warn("PostgreSQL allows fewer connections than two servers may open, and refuses those beyond: raise the limit, or lower --postgres-max-connections",
		"limit", limit, "allowed", most, "one server", one, "two servers", 2*one, "fitting --postgres-max-connections", max(2, most/2-1))
}

// ownSessions reports whether settings of a client's session are private: another client must not find them
// in its own session.
func (d *Driver) ownSessions(ctx context.Context) error {
	first, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer first.Close(over)
	second, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer second.Close(over)
	// A pooler first uses the connection that was returned last, but other clients may come between.
	for range 3 {
		if _, err := first.Exec(ctx, "SELECT set_config('rowlock.session', '"+d.nonce+"', false)", pgx.QueryExecModeSimpleProtocol); err != nil {
			return err
		}
		var found string
		if err := second.QueryRow(ctx, "SELECT coalesce(current_setting('rowlock.session', true), '')", pgx.QueryExecModeSimpleProtocol).Scan(&found); err != nil {
			return err
		}
		if found == d.nonce {
			return errShared
		}
	}
	return nil
}

// unknownParameter returns where a setting comes from that a server does not know.
func unknownParameter(err error) error {
	if pg, ok := errors.AsType[*pgconn.PgError](err); ok && pg.Code == "42704" && isNoServer(err) {
		return fmt.Errorf("%s: a parameter of the connection string that is none of libpq's is a setting of PostgreSQL, and this server has no such setting: correct or remove it", pg.Message)
	}
	return err
}
