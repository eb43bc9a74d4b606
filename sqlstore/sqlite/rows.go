package sqlite

import (
	"database/sql/driver"
	"fmt"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// decoder makes Rows from result columns. It shares the strings that rows in
// key order repeat.
type decoder struct {
	resource, namespace string
	sums                sqlstore.Checksummer
	c                   *conn // reads values that are stored in pieces; nil: they are left out, and nil
}

func (d *decoder) row(v []driver.Value) (sqlstore.Row, error) {
	var r sqlstore.Row
	var ok1, ok2, ok3 bool
	r.Revision, ok1 = v[0].(int64)
	r.Created, ok2 = v[4].(int64)
	r.Superseded, _ = v[5].(int64)
	deleted, _ := v[6].(int64)
	r.Deleted = deleted != 0
	var missing error
	id, apart := v[7].(int64)
	switch {
	case !apart:
		r.Value = blob(v[7])
	case d.c != nil:
		var err error
		if r.Value, missing, err = d.c.large(id); err != nil {
			return r, err
		}
	}
	if expires, ok := v[8].(int64); ok {
		r.ExpiresAt = fromMicros(expires)
	}
	written, ok3 := v[9].(int64)
	r.WrittenAt = fromMicros(written)
	r.Key = d.key(v[1], v[2], v[3])
	switch {
	case !ok1: // without a revision nothing identifies the row
		return r, &sqlstore.CorruptError{Key: r.Key, Reason: "the revision of a row is not a number"}
	case !ok2 || !ok3:
		r.Damaged = &sqlstore.DamageError{Reason: "its created_revision or written_at is not a number"}
	case missing != nil:
		r.Damaged = missing
	case r.Value == nil: // nothing is known of it
	default:
		r.Damaged = d.damage(&r, v)
	}
	return r, nil
}

// damage holds a row to its checksum, where it has one.
func (d *decoder) damage(r *sqlstore.Row, v []driver.Value) error {
	var stored int64
	switch sum := v[10].(type) {
	case nil:
		return nil
	case int64:
		stored = sum
	default:
		return &sqlstore.DamageError{Reason: "its checksum is not a number"}
	}
	for _, name := range v[1:4] {
		if _, ok := name.(string); !ok {
			return &sqlstore.DamageError{Reason: "its key is not text"}
		}
	}
	if computed := d.sums.Row(r); computed != stored {
		return sqlstore.ChecksumError(stored, computed)
	}
	return nil
}

func (d *decoder) key(resource, namespace, name driver.Value) sqlstore.Key {
	return sqlstore.Key{Resource: share(&d.resource, text(resource)), Namespace: share(&d.namespace, text(namespace)), Name: text(name)}
}

func share(last *string, s string) string {
	if s != *last {
		*last = s
	}
	return *last
}

func text(v driver.Value) string {
	switch s := v.(type) {
	case string:
		return s
	case []byte:
		return string(s)
	}
	return ""
}

// blob also accepts text: a value that an administrator has written by hand must stay readable. It never returns nil.
func blob(v driver.Value) []byte {
	switch b := v.(type) {
	case []byte:
		if b != nil {
			return b
		}
		return []byte{}
	case string:
		return []byte(b)
	case nil:
		return []byte{}
	}
	return fmt.Append(nil, v)
}

func fromMicros(us int64) time.Time { return time.UnixMicro(us).UTC() }
