package objects

import (
	"cmp"
	"context"
	"strconv"
	"time"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/integrity"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/permits"
	"github.com/rowlock/rowlock/sqlstore"
)

// restorePage is the number of objects that are read at once, unless they are large.
const restorePage = 20

// Restored is the result of rewriting a page of objects.
type Restored struct {
	Last    sqlstore.Key // of the page; the next one begins after it
	More    bool         // there may be a next one
	Looked  int
	Written int
	Raced   int // changed or deleted by others in the meantime
}

// Restore reads a page of the objects of a resource from the table, after a key, and rewrites each object
// that would be stored in another form today: in another version, with other defaults, or with another key.
// The meaning does not change, so neither admission nor validation sees it. The resource is that of the
// stored version. It rewrites one object at a time; the first that cannot be read or written ends the page
// with an error.
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

// Form returns the value that would be stored today for the decrypted value of a row. It needs no permit,
// because the caller has the row. Errors contain nothing of the value.
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
	return s.Encode(ctx, r, now[0], len(value))
}

// restore rewrites a row, if it has not changed since it was read.
func (s *Store) restore(ctx context.Context, p permits.Permit, r *kinds.Resource, row *sqlstore.Row, value []byte) (raced bool, err error) {
	at := Place{Resource: r, Namespace: row.Key.Namespace, Name: row.Key.Name}
	_, err = s.Commit(ctx, p, at, sqlstore.Op{Verb: sqlstore.Update, Expect: row.Revision, Value: value, ExpiresAt: row.ExpiresAt}, nil)
	if _, raced = sqlstore.Unmet(err); raced {
		return true, nil
	}
	return false, err
}

// Readers take a custom object that was stored after a change of its definition for one in the present form. The functions below see
// to it that a write which began before the change does not store another one.

var forRenewal = permits.OfServer("objects whose definition has changed")

// renewFor is how long renewed tries, whether or not its client still waits.
const renewFor = 10 * time.Second

// redefined returns the present resource of the stored version if the definition that r was made of has changed; nil: it has not, or
// there is none any more.
func (s *Store) redefined(r *kinds.Resource) *kinds.Resource {
	if r.HasGoType() || s.follow == nil || cache.Try(s.follow) != nil || !s.Outdated(r) {
		return nil
	}
	return s.Home(r.Storage)
}

// presentForm returns the value to store for one that was encoded for r.
func (s *Store) presentForm(ctx context.Context, r *kinds.Resource, key sqlstore.Key, value []byte) []byte {
	if home := s.redefined(r); home != nil {
		if now, err := s.Form(ctx, home, &sqlstore.Row{Key: key, Value: value}); err == nil {
			return now
		}
	}
	return value
}

// renewed returns the item that op has stored, as its writer, who has sent a value, sees it. If the definition has changed after
// presentForm, and before the object was stored, as another server may have changed it, renewed stores the object once more. If that
// fails, another write has come first, or the next one corrects the form, as a storage migration does.
func (s *Store) renewed(ctx context.Context, at Place, op *sqlstore.Op, sent []byte, item *cache.Item) *cache.Item {
	home := s.redefined(at.Resource)
	if home == nil {
		return item
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), renewFor)
	defer cancel()
	stored := &sqlstore.Row{Key: op.Key, Revision: item.Revision, Created: item.Created(), Value: op.Value}
	if now, err := s.Form(ctx, home, stored); err == nil && string(now) != string(op.Value) {
		last, err := s.Commit(ctx, forRenewal, Place{Resource: home, Namespace: at.Namespace, Name: at.Name}, sqlstore.Op{
			Verb: sqlstore.Update, Expect: item.Revision, Value: now, ExpiresAt: op.ExpiresAt,
		}, nil)
		if err == nil {
			stored.Revision = last.Revision
		}
	}
	stored.Value = sent
	return cache.NewUnstoredItem(stored, strconv.FormatInt(stored.Revision, 10), at.Resource.Storage)
}
