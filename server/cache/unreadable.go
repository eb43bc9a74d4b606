package cache

import (
	"fmt"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// Unreadable is the error of an item whose value can be read neither from memory or the cache file nor from its row.
//
// Methods of Item that need the value panic with it. A request recovers and is answered with an internal error. A goroutine that
// does not recover calls them in Try. Meta, Owners of an item with few of them, OwnerInfo and Size need no value.
type Unreadable struct {
	key sqlstore.Key // without Resource while the storage is not in the catalogue
	err error
}

func (u *Unreadable) Error() string {
	return fmt.Sprintf("the packed value of %s cannot be read, and neither can its row: %v", u.key, u.err)
}

func (u *Unreadable) Unwrap() error { return u.err }

// Try calls fn, and returns the Unreadable with which it panics, or nil. Other panics go on.
func Try(fn func()) (err error) {
	defer func() {
		switch p := recover().(type) {
		case nil:
		case *Unreadable:
			err = p
		default:
			panic(p)
		}
	}()
	fn()
	return nil
}

// line appends the JSON of a packed body, and its newline. A body that cannot be unpacked is read again from its row.
func (it *Item) line(b *body, dst []byte) []byte {
	dst, err := it.tryLine(b, dst)
	if err != nil {
		panic(err)
	}
	return dst
}

// tryLine is line that returns the Unreadable.
func (it *Item) tryLine(b *body, dst []byte) ([]byte, error) {
	dst, err := b.unpack(dst)
	if err == nil {
		return dst, nil
	}
	if again := b.with().info.again; again != nil {
		if made := again(it, b); made != nil {
			return append(dst, made.plain()...), nil
		}
	}
	key := sqlstore.Key{Namespace: it.Namespace, Name: it.Name}
	if st := b.with().info.storage.Load(); st != nil {
		key.Resource = st.Key
	}
	return dst, &Unreadable{key, err}
}

// noFields returns the fields of an object that has none of a storage's.
func noFields(st *kinds.Storage) []string {
	if st == nil {
		return nil
	}
	return make([]string, len(st.Fields))
}
