package objects

import (
	"cmp"
	"context"
	"errors"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// restorePage is how many objects are read at once to be stored again, unless they are large.
const restorePage = 20

// Restored is what came of a page of objects that were to be stored again.
type Restored struct {
	Last    sqlstore.Key // of the page; the next one begins behind it
	More    bool         // there may be a next one
	Looked  int
	Written int
	Raced   int // somebody else wrote or deleted them meanwhile
}

// Restore looks at a page of the objects of a resource, behind a key, as they lie in the
// table, and stores each again that a write would store differently now: in another version,
// with other defaults, by another key. What it means does not change, so nobody is asked
// about it: neither admission nor the rules of its kind. The resource is that of the stored
// version. One object is in work at a time; the first that cannot be read or written ends the
// page with an error.
func (s *Store) Restore(ctx context.Context, p permits.Permit, r *kinds.Resource, after sqlstore.Key) (done Restored, err error) {
	at := Place{Resource: r}
	if err := at.check(&p, permits.List); err != nil {
		return done, err
	}
	req := sqlstore.ScanRequest{Resource: r.Storage.Key, After: after, Limit: restorePage, Bytes: sqlstore.ChangesBytes}
	rows, err := s.store.Scan(ctx, req)
	if err != nil {
		return done, err
	}
	for i := range rows {
		row := &rows[i]
		done.Looked++
		value, err := s.Form(ctx, r, row)
		if err != nil {
			return done, err
		}
		if !row.Stale && string(value) == string(row.Value) {
			continue
		}
		switch raced, err := s.restore(ctx, p, r, row, value); {
		case err != nil:
			return done, err
		case raced:
			done.Raced++
		default:
			done.Written++
		}
	}
	if done.More = !req.Ends(rows); done.More {
		done.Last = rows[len(rows)-1].Key
	}
	return done, nil
}

// Form is the value of a row, which was decrypted, as it would be stored now. It asks for no
// permit: who calls has the row. Errors tell nothing of the value.
func (s *Store) Form(ctx context.Context, r *kinds.Resource, row *sqlstore.Row) ([]byte, error) {
	if err := cmp.Or(row.Damaged, row.Unopened); err != nil {
		return nil, err
	}
	value, err := integrity.Read(s.Codec(), r, row)
	if err != nil || r.HasGoType() {
		return value, err
	}
	obj := r.NewStored()
	if _, err := s.Codec().Decode(value, obj, codecs.Ignore); err != nil {
		return nil, err
	}
	now, err := r.Load(ctx, obj)
	if err != nil {
		return nil, err
	}
	return s.Encode(ctx, r, now[0])
}

// restore writes a row, if it is still what was read.
func (s *Store) restore(ctx context.Context, p permits.Permit, r *kinds.Resource, row *sqlstore.Row, value []byte) (raced bool, err error) {
	at := Place{Resource: r, Namespace: row.Key.Namespace, Name: row.Key.Name}
	_, err = s.Commit(ctx, p, at, sqlstore.Op{Verb: sqlstore.Update, Expect: row.Revision, Value: value, ExpiresAt: row.ExpiresAt}, nil)
	var conflict *sqlstore.ConflictError
	var gone *sqlstore.NotFoundError
	if errors.As(err, &conflict) || errors.As(err, &gone) {
		return true, nil
	}
	return false, err
}
