package sqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"math"
	"sort"

	"github.com/rowlock/rowlock/sqlstore"
)

// Scan implements sqlstore.Driver.
func (d *Driver) Scan(ctx context.Context, req sqlstore.ScanRequest) (rows []sqlstore.Row, err error) {
	after, ok, err := req.Start()
	if err != nil || !ok && req.Revision == 0 {
		return nil, err
	}
	if req.After = after; !ok { // nothing can follow, but whether the snapshot is there has to be said
		return nil, d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
			_, err := check(c, b, req.Resource, req.Revision)
			return err
		})
	}
	if req.Revision == 0 {
		err = d.reader(ctx, func(c *conn) error {
			rows, err = scanLive(ctx, c, req)
			return err
		})
	} else {
		err = d.snapshot(ctx, func(c *conn, b sqlstore.Bounds) error {
			packed, err := check(c, b, req.Resource, req.Revision)
			if err != nil {
				return err
			}
			rows, err = scanSnapshot(ctx, c, req, packed || b.Head-req.Revision > d.far, packed)
			return err
		})
	}
	if err != nil {
		return nil, fmt.Errorf("scanning %q: %w", req.Resource, err)
	}
	return rows, nil
}

// shape returns the text for the parts of the key in a request.
func shape(req sqlstore.ScanRequest, all, resource, namespace string) string {
	switch {
	case req.Resource == "":
		return all
	case req.Namespace == "":
		return resource
	}
	return namespace
}

func scanArgs(req sqlstore.ScanRequest, revision int64) []any {
	resource, namespace := req.After.Resource, req.After.Namespace
	if req.Resource != "" {
		resource = req.Resource
		if req.Namespace != "" {
			namespace = req.Namespace
		}
	}
	return []any{revision, resource, namespace, req.After.Name, req.Namespace, int64(req.Limit)}
}

func scanLive(ctx context.Context, c *conn, req sqlstore.ScanRequest) ([]sqlstore.Row, error) {
	revision := req.Revision
	if revision == 0 {
		revision = math.MaxInt64
	}
	rows := make([]sqlstore.Row, 0, min(req.Limit, 512))
	dec := decoder{c: c}
	bytes := 0
	err := c.query(ctx, func(v []driver.Value) error {
		row, err := dec.row(v)
		if err != nil {
			return err
		}
		rows = append(rows, row)
		if bytes += len(row.Value); req.Full(len(rows), bytes) {
			return errEnough
		}
		return nil
	}, shape(req, qLiveAll, qLiveResource, qLiveNamespace), scanArgs(req, revision)...)
	if errors.Is(err, errEnough) {
		err = nil
	}
	return rows, err
}

// farBack is the number of revisions back from which a search for each key is faster than reading
// all rows that ended since.
const farBack = 1000

// scanSnapshot merges, in key order, the live rows that were there already with
// those that have ended since, found in the way that suits the snapshot's depth.
func scanSnapshot(ctx context.Context, c *conn, req sqlstore.ScanRequest, deep, packed bool) ([]sqlstore.Row, error) {
	alive, err := scanLive(ctx, c, req)
	if err != nil {
		return nil, err
	}
	gone, err := scanGone(ctx, c, req, alive, deep, packed)
	if err != nil || len(gone) == 0 {
		return alive, err
	}
	rows := make([]sqlstore.Row, 0, min(req.Limit, len(alive)+len(gone)))
	for bytes := 0; !req.Full(len(rows), bytes) && len(alive)+len(gone) > 0; bytes += len(rows[len(rows)-1].Value) {
		if len(gone) == 0 || len(alive) > 0 && alive[0].Key.Compare(gone[0].key) < 0 {
			rows, alive = append(rows, alive[0]), alive[1:]
			continue
		}
		row, err := gone[0].at(ctx, c, req.Revision)
		if err != nil {
			return nil, err
		}
		rows, gone = append(rows, row), gone[1:]
	}
	return rows, nil
}

// scanGone finds where the rows of a page lie that are not live, in key order.
func scanGone(ctx context.Context, c *conn, req sqlstore.ScanRequest, alive []sqlstore.Row, deep, packed bool) ([]place, error) {
	if !deep {
		return scanEnded(ctx, c, req)
	}
	var last *sqlstore.Key
	if len(alive) == req.Limit {
		last = &alive[len(alive)-1].Key
	}
	gone, err := scanPast(ctx, c, req, last)
	if err != nil || !packed {
		return gone, err
	}
	more, err := scanPacked(ctx, c, req, last)
	gone = append(gone, more...)
	sort.Slice(gone, func(i, j int) bool { return gone[i].key.Compare(gone[j].key) < 0 })
	return gone, err
}

// scanEnded finds the ended rows of a page among all that ended since its revision.
func scanEnded(ctx context.Context, c *conn, req sqlstore.ScanRequest) (gone []place, err error) {
	err = c.query(ctx, func(v []driver.Value) error {
		revision, _ := v[0].(int64)
		gone = append(gone, place{revision: revision, key: sqlstore.Key{Resource: text(v[1]), Namespace: text(v[2]), Name: text(v[3])}})
		return nil
	}, shape(req, qEndedAll, qEndedResource, qEndedNamespace), scanArgs(req, req.Revision)...)
	return gone, err
}

// scanPast finds them key by key, up to last if that is given.
func scanPast(ctx context.Context, c *conn, req sqlstore.ScanRequest, last *sqlstore.Key) (gone []place, err error) {
	query := shape(req, qNextPastAll, qNextPastResource, qNextPastNamespace)
	var v [4]driver.Value
	for len(gone) < req.Limit {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		found, err := c.one(v[:], query, scanArgs(req, req.Revision)[:5]...)
		if err != nil || !found {
			return gone, err
		}
		req.After = sqlstore.Key{Resource: text(v[0]), Namespace: text(v[1]), Name: text(v[2])}
		if last != nil && req.After.Compare(*last) > 0 {
			return gone, nil
		}
		if revision, ok := v[3].(int64); ok && revision <= req.Revision {
			gone = append(gone, place{key: req.After, revision: revision})
		}
	}
	return gone, nil
}
