package sqlite

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite's Go driver makes new memory for each value that it hands out. Who reads everything is done with a value a
// moment later, so here SQLite lends its own, by statements beside the driver's on the driver's
// connection: they see what its transaction sees, and what was set for it holds.
//
// The driver does not say which connection of SQLite's it has. SQLite says it: it calls a function of ours for each
// one that is opened, and ours are known by a number among the parameters of their names.
//
// Addresses are used for this alone:
//
//   - What a column has, from the step to its row until the next step. SQLite keeps it where it is for as long. The
//     memory is not Go's: nothing moves it, and the collector does not look at it.
//   - A query's text and the place for what is made of it, which lie in SQLite's memory.
//   - The function, which is one of the package and stays where it is.

// rawConn is a connection as SQLite knows it. The goroutine that uses the connection uses it.
type rawConn struct {
	db    uintptr
	tls   *libc.TLS // its own: the driver does not show the one that it has
	stmts map[string]uintptr
	row   rawRow
}

// rawParam is the parameter with the number.
const rawParam = "rowlock"

var (
	rawOpened sync.Map // by number: what was opened, until openRaw takes it
	rawParamC uintptr  // rawParam as C has it
)

// rawTold says that SQLite tells of what is opened, from the first time on for the life of the process.
var rawTold = sync.OnceValue(func() bool {
	tls := libc.NewTLS()
	defer tls.Close()
	var err error
	if rawParamC, err = libc.CString(rawParam); err != nil {
		return false
	}
	tell := rawTell // a C function is what a Go variable that has it points to
	return sqlite3.Xsqlite3_auto_extension(tls, *(*uintptr)(unsafe.Pointer(&tell))) == sqlite3.SQLITE_OK
})

// rawTell is what SQLite calls. With connections of others it does nothing.
func rawTell(tls *libc.TLS, db, _, _ uintptr) int32 {
	if n := sqlite3.Xsqlite3_uri_int64(tls, sqlite3.Xsqlite3_db_filename(tls, db, 0), rawParamC, 0); n != 0 {
		rawOpened.Store(n, db)
	}
	return sqlite3.SQLITE_OK
}

// openRaw has open open a connection with a value for rawParam. nil: SQLite did not tell of it.
func openRaw(open func(value string) error) (*rawConn, error) {
	told := rawTold()
	n := 1 + rand.Int64N(1<<62) // so that nobody else's parameter of this name is taken for it
	err := open(strconv.FormatInt(n, 10))
	db, ok := rawOpened.LoadAndDelete(n)
	if err != nil || !told || !ok {
		return nil, err
	}
	return &rawConn{db: db.(uintptr), tls: libc.NewTLS(), stmts: make(map[string]uintptr)}, nil
}

// close comes before that of the connection.
func (r *rawConn) close() {
	for _, s := range r.stmts {
		sqlite3.Xsqlite3_finalize(r.tls, s) // says once more what came of its last step
	}
	r.tls.Close()
}

// address is what is at an address of SQLite's memory.
func address[T any](of uintptr) *T { return *(**T)(unsafe.Pointer(&of)) }

func (r *rawConn) prepare(query string) (uintptr, error) {
	if s := r.stmts[query]; s != 0 {
		return s, nil
	}
	text, err := libc.CString(query)
	if err != nil {
		return 0, err
	}
	defer libc.Xfree(r.tls, text)
	const size = int(unsafe.Sizeof(uintptr(0)))
	made := r.tls.Alloc(size)
	defer r.tls.Free(size)
	if rc := sqlite3.Xsqlite3_prepare_v3(r.tls, r.db, text, -1, sqlite3.SQLITE_PREPARE_PERSISTENT, made, 0); rc != sqlite3.SQLITE_OK {
		return 0, r.failed(rc)
	}
	r.stmts[query] = *address[uintptr](made)
	return r.stmts[query], nil
}

// query calls each for every row. It holds SQLite's lock on the connection, which nobody else uses meanwhile: values may
// be looked at, and what locks again has less to do.
func (r *rawConn) query(each func(cells) error, query string, args []int64) error {
	s, err := r.prepare(query)
	if err != nil {
		return err
	}
	lock := sqlite3.Xsqlite3_db_mutex(r.tls, r.db)
	sqlite3.Xsqlite3_mutex_enter(r.tls, lock)
	defer sqlite3.Xsqlite3_mutex_leave(r.tls, lock)
	defer sqlite3.Xsqlite3_reset(r.tls, s) // as finalize
	for i, a := range args {
		if rc := sqlite3.Xsqlite3_bind_int64(r.tls, s, int32(i+1), a); rc != sqlite3.SQLITE_OK {
			return r.failed(rc)
		}
	}
	for {
		switch rc := sqlite3.Xsqlite3_step(r.tls, s); rc {
		case sqlite3.SQLITE_ROW:
			r.row = rawRow{tls: r.tls, stmt: s}
			if err := each(&r.row); err != nil {
				return err
			}
		case sqlite3.SQLITE_DONE:
			return nil
		default:
			return r.failed(rc)
		}
	}
}

// failed is the error of a result, worded as SQLite's Go driver does.
func (r *rawConn) failed(rc int32) error {
	e := &resultError{code: int(rc), text: libc.GoString(sqlite3.Xsqlite3_errstr(r.tls, rc))}
	if more := libc.GoString(sqlite3.Xsqlite3_errmsg(r.tls, r.db)); more != e.text {
		e.text += ": " + more
	}
	return translate(e)
}

// rawRow is the row that a statement is at.
type rawRow struct {
	tls    *libc.TLS
	stmt   uintptr
	values [lentMost]uintptr // columns that were asked for
}

// lentMost is how many columns a row has at most.
const lentMost = 10

// at is a column's value. SQLite locks the connection for each question to the statement, but not for those to a value,
// which query holds the lock for: with a question for each part locks would be a quarter of what reading a row costs.
func (r *rawRow) at(i int) uintptr {
	if r.values[i] == 0 {
		r.values[i] = sqlite3.Xsqlite3_column_value(r.tls, r.stmt, int32(i))
	}
	return r.values[i]
}

func (r *rawRow) kind(i int) int32 { return sqlite3.Xsqlite3_value_type(r.tls, r.at(i)) }

func (r *rawRow) number(i int) (int64, bool) {
	if r.kind(i) != sqlite3.SQLITE_INTEGER {
		return 0, false
	}
	return sqlite3.Xsqlite3_value_int64(r.tls, r.at(i)), true
}

func (r *rawRow) isText(i int) bool { return r.kind(i) == sqlite3.SQLITE_TEXT }

func (r *rawRow) isNull(i int) bool { return r.kind(i) == sqlite3.SQLITE_NULL }

func (r *rawRow) text(i int) []byte {
	switch kind := r.kind(i); kind {
	case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB:
		return r.bytes(i, kind)
	}
	return nil
}

func (r *rawRow) value(i int) []byte {
	switch kind := r.kind(i); kind {
	case sqlite3.SQLITE_INTEGER:
		return fmt.Append(nil, sqlite3.Xsqlite3_value_int64(r.tls, r.at(i)))
	case sqlite3.SQLITE_FLOAT:
		return fmt.Append(nil, sqlite3.Xsqlite3_value_double(r.tls, r.at(i)))
	case sqlite3.SQLITE_TEXT, sqlite3.SQLITE_BLOB:
		return r.bytes(i, kind)
	}
	return nil
}

// bytes are those of a text, which the file may have as UTF-16, or of a blob.
func (r *rawRow) bytes(i int, kind int32) []byte {
	value := sqlite3.Xsqlite3_value_blob
	if kind == sqlite3.SQLITE_TEXT {
		value = sqlite3.Xsqlite3_value_text
	}
	at := value(r.tls, r.at(i))
	n := sqlite3.Xsqlite3_value_bytes(r.tls, r.at(i)) // after value, which may convert
	if at == 0 || n <= 0 {
		return nil
	}
	return unsafe.Slice(address[byte](at), n)
}
