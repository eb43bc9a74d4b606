package cache

import (
	"bytes"
	"context"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// A cache file is sealed, so its objects are as its writer had them in memory. No server has unpacked them since they were
// packed, perhaps weeks and several files before: bytes that memory has damaged meanwhile would end each start that
// meets them. So what cannot be unpacked is read from its row once more.

// restoreFor bounds how long who meets such an object waits for the database.
const restoreFor = 10 * time.Second

// restore reads an object from its row whose packed body does not come back, which is its body from then on. It
// is nil where that cannot be, or the row is another object's. Callers may hold the locks of the resource.
func (s *resource) restore(it *Item, b *body) (made *body) {
	from := s.cache.rows.Load()
	if from == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), restoreFor)
	defer cancel()
	err := (*from).ReadRows(ctx, []int64{it.Revision}, func(rows []sqlstore.Row) error {
		for i := range rows {
			if rows[i].Revision != it.Revision || rows[i].Key != s.keyOf(it) {
				continue
			}
			row := rows[i]
			row.Value = bytes.Clone(row.Value)
			if one := s.read(&row, nil); one.Corrupt == nil && one.head == it.head && one.Size() == int(b.size) {
				made = one.body.Load()
			}
		}
		return nil
	})
	if err != nil || made == nil || made.bare() {
		return nil
	}
	if it.body.CompareAndSwap(b, made) {
		it.home.plain.Grow(len(made.data))
	}
	return made
}
