package postgres

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
)

// identity identifies a database. Parts that a service does not reveal are empty, and equal to any.
type identity struct {
	system   string // the number of the cluster
	timeline int64
	database string // the number of the database in it
	table    string // the number of kv
}

func (i identity) is(other identity) bool {
	same := func(a, b string) bool { return a == "" || b == "" || a == b }
	return same(i.system, other.system) && same(i.database, other.database) && same(i.table, other.table) &&
		(i.timeline == 0 || other.timeline == 0 || i.timeline == other.timeline)
}

// branchedBefore reports whether i is a state of the same cluster from before other was promoted.
func (i identity) branchedBefore(other identity) bool {
	return i.system != "" && i.system == other.system && i.timeline != 0 && i.timeline < other.timeline
}

func (i identity) String() string {
	return fmt.Sprintf("cluster %s timeline %d database %s table %s", cmp.Or(i.system, "?"), i.timeline, cmp.Or(i.database, "?"), cmp.Or(i.table, "?"))
}

// place is the identity of a database, and the content of its row in kv_meta.
type place struct {
	identity
	number   int64    // of the row; 0: there is none
	in       identity // that the row was written in
	from, to int64    // revisions that were left out then
}

// columnsOfPlace is the number of columns of qPlace.
const columnsOfPlace = 6

// parsePlace reads the columns of qPlace. A column that it cannot parse counts as missing.
func parsePlace(column [columnsOfPlace]string) (p place) {
	number := func(s string) int64 {
		n, _ := strconv.ParseInt(s, 10, 64)
		return n
	}
	p.identity = identity{column[0], number(column[1]), column[2], column[3]}
	if f := strings.Split(column[5], " "); len(f) == 6 {
		p.number = number(column[4])
		p.in = identity{f[0], number(f[1]), f[2], f[3]}
		p.from, p.to = number(f[4]), number(f[5])
	}
	return p
}

// word returns the text of a row that is written in this database.
func (p *place) word() string {
	return fmt.Sprintf("%s %d %s %s %d %d", p.system, p.timeline, p.database, p.table, p.from, p.to)
}

// own reports whether the row was written in this database.
func (p *place) own() bool { return p.number > 0 && p.in.is(p.identity) }

// placeOf reads the place of a database; not ok: it has no tables yet.
func (d *Driver) placeOf(ctx context.Context, c *pgconn.PgConn) (p place, ok bool, err error) {
	for _, bare := range []bool{false, true} {
		var column [columnsOfPlace]string
		results, err := c.Exec(ctx, placeQuery(bare)).ReadAll()
		var pg *pgconn.PgError
		switch {
		case err == nil && len(results) == 1 && len(results[0].Rows) == 1 && len(results[0].Rows[0]) == len(column):
			for i, text := range results[0].Rows[0] {
				column[i] = string(text)
			}
			d.lineage.bare.Store(bare)
			return parsePlace(column), true, nil
		case err == nil:
			return p, false, errors.New("the database does not say which one it is")
		case !errors.As(err, &pg) || c.IsClosed():
			return p, false, err
		case pg.Code == "42P01": // kv_meta is not there yet
			return p, false, d.findCluster(ctx, c)
		case bare || passing(pg):
			return p, false, fmt.Errorf("asking which database it is: %w", err)
		}
	}
	return p, false, nil
}

// findCluster finds out whether the service reveals cluster and timeline, for later queries once the tables exist.
func (d *Driver) findCluster(ctx context.Context, c *pgconn.PgConn) error {
	_, err := c.Exec(ctx, qCluster).ReadAll()
	var pg *pgconn.PgError
	bare := errors.As(err, &pg) && !passing(pg)
	if err != nil && !bare {
		return fmt.Errorf("asking which database it is: %w", err)
	}
	d.lineage.bare.Store(bare)
	return nil
}

// passing reports whether an error is about the server's state at the moment: a timeout, a shutdown, a lack of memory.
// It does not show that a service hides which cluster it is.
func passing(pg *pgconn.PgError) bool {
	return pg.Code == "55P03" || len(pg.Code) == 5 && slices.Contains([]string{"08", "40", "53", "57", "58", "XX"}, pg.Code[:2])
}

func placeQuery(bare bool) string {
	if bare {
		return qPlaceBare
	}
	return qPlace
}
