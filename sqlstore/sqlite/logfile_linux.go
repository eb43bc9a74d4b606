package sqlite

import (
	"sync"
	"syscall"
	"unsafe"

	"modernc.org/libc"
	sqlite3 "modernc.org/sqlite/lib"
)

// SQLite writes each page of a commit into its write-ahead log by two system calls, one for 24 bytes that
// describe it and one for the page. Here what it writes is gathered while a transaction is
// open, and written at once: by a virtual file system (VFS) of SQLite's that is its own for Unix but for some functions of
// two files, the log and the database.
//
// Nobody but the transaction itself may miss what is gathered, and that has to be so whatever becomes of it:
//
//   - Gathered is between the lock that SQLite takes for a write transaction, which no two connections of whatever
//     process have at a time, and its release. Outside of it, and where that lock is not seen (locking_mode=EXCLUSIVE
//     takes none), writes go through.
//   - The page of the frame that commits is written with all before it when SQLite writes it. Others look for it
//     only later, when SQLite says in the shared memory that it is there; a sync comes later too. From there on writes
//     go through: where a page went into the log twice, checksums of frames are written anew, that of the commit last.
//   - Before a read, a sync, a change of the size, and a write elsewhere, what is gathered is written. So the log
//     has all writes in the order in which SQLite made them.
//   - What is left when the lock is released belongs to a transaction that was given up, and is dropped before the lock is
//     let go: written later, it would lie over what another connection commits there.
//   - SQLite takes a write that was gathered for done. Where it then fails, nothing of the
//     transaction is written any more, nor read from there on, until it is given up.
//
// The log is synced by fdatasync, as its times are of no use; its size, where that has changed, is synced with it.

// logVFS is the name that SQLite knows this by.
const logVFS = "rowlock-log"

const (
	gatheredMost = 0x1ffff // bytes: SQLite writes a length modulo 128 KiB at once
	frameHeader  = 24      // bytes before each page; no page is as small
	commitSize   = 4       // where in them the size of the database is, if the frame commits; else 0
	writeLock    = 0       // the lock of write transactions, among those in the shared memory
)

// gathersLog says that connections can be opened by way of logVFS.
var gathersLog = sync.OnceValue(registerLogVFS)

// These are known to SQLite by their addresses, so they are variables of the package, which stay where they are.
var (
	unixVFS    uintptr // SQLite's own
	gathering  sqlite3.Tsqlite3_vfs
	behind     uintptr // where SQLite's memory for an open file has ours
	logMethods methods
	dbMethods  methods
)

// A C function is what a Go variable that has it points to, so it must be a function of the package. These are SQLite's by name.
type (
	openFunc  = func(tls *libc.TLS, vfs, name, file uintptr, flags int32, outFlags uintptr) int32
	closeFunc = func(tls *libc.TLS, file uintptr) int32
	moveFunc  = func(tls *libc.TLS, file, data uintptr, n int32, at int64) int32 // to read or write
	truncFunc = func(tls *libc.TLS, file uintptr, size int64) int32
	syncFunc  = func(tls *libc.TLS, file uintptr, flags int32) int32
	sizeFunc  = func(tls *libc.TLS, file, size uintptr) int32
	lockFunc  = func(tls *libc.TLS, file uintptr, first, n, flags int32) int32
)

func pointerTo[F any](f F) uintptr { return *(*uintptr)(unsafe.Pointer(&f)) }

// at is what lies at an address of SQLite's memory; called, the function that it is.
func at[T any](address uintptr) *T    { return *(**T)(unsafe.Pointer(&address)) }
func called[F any](pointer uintptr) F { return *(*F)(unsafe.Pointer(&pointer)) }

func registerLogVFS() bool {
	tls := libc.NewTLS()
	defer tls.Close()
	name, err := libc.CString("unix")
	if err != nil {
		return false
	}
	defer libc.Xfree(tls, name)
	if unixVFS = sqlite3.Xsqlite3_vfs_find(tls, name); unixVFS == 0 {
		return false
	}
	gathering = *at[sqlite3.Tsqlite3_vfs](unixVFS)
	if gathering.FzName, err = libc.CString(logVFS); err != nil {
		return false
	}
	behind = (uintptr(gathering.FszOsFile) + 7) &^ 7
	gathering.FszOsFile = int32(behind + max(unsafe.Sizeof(logFile{}), unsafe.Sizeof(dbFile{})))
	gathering.FxOpen = pointerTo[openFunc](xOpen)
	return sqlite3.Xsqlite3_vfs_register(tls, uintptr(unsafe.Pointer(&gathering)), 0) == sqlite3.SQLITE_OK
}

// methods are the functions of one kind of file. Those of SQLite are the same for all files of a kind. There is
// no pointer in it: Go's checks of pointers take what C code is shown for a mistake where it has some.
type methods struct {
	mu    sync.Mutex
	its   uintptr // SQLite's; set before any file has table
	table sqlite3.Tsqlite3_io_methods
}

func (m *methods) of() *sqlite3.Tsqlite3_io_methods { return at[sqlite3.Tsqlite3_io_methods](m.its) }

// give has a file that SQLite has opened use these. false: it is of another kind than was thought.
func (m *methods) give(file uintptr, change func(*sqlite3.Tsqlite3_io_methods)) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	has := &at[sqlite3.Tsqlite3_file](file).FpMethods
	if m.its == 0 {
		m.its = *has
		m.table = *m.of()
		change(&m.table)
	}
	if *has != m.its || m.table.FiVersion < 2 {
		return false
	}
	*has = uintptr(unsafe.Pointer(&m.table))
	return true
}

func xOpen(tls *libc.TLS, _, name, file uintptr, flags int32, outFlags uintptr) int32 {
	rc := called[openFunc](at[sqlite3.Tsqlite3_vfs](unixVFS).FxOpen)(tls, unixVFS, name, file, flags, outFlags)
	switch {
	case rc != sqlite3.SQLITE_OK:
	case flags&sqlite3.SQLITE_OPEN_MAIN_DB != 0:
		if dbMethods.give(file, changeDB) {
			*at[dbFile](file + behind) = dbFile{}
		}
	case flags&sqlite3.SQLITE_OPEN_WAL != 0:
		db := sqlite3.Xsqlite3_database_file_object(tls, name)
		if at[sqlite3.Tsqlite3_file](db).FpMethods == uintptr(unsafe.Pointer(&dbMethods.table)) && logMethods.give(file, changeLog) {
			*at[logFile](file + behind) = logFile{file: file, db: db}
			at[dbFile](db + behind).log = file + behind
		}
	}
	return rc
}

// dbFile is what is known of a database.
type dbFile struct {
	log uintptr // its logFile, while that is open; else 0
}

func changeDB(t *sqlite3.Tsqlite3_io_methods) { t.FxShmLock = pointerTo[lockFunc](xShmLock) }

// xShmLock takes and releases the locks that connections have for the log.
func xShmLock(tls *libc.TLS, file uintptr, first, n, flags int32) int32 {
	log := at[dbFile](file + behind).log
	if first != writeLock || flags&sqlite3.SQLITE_SHM_EXCLUSIVE == 0 || log == 0 {
		return called[lockFunc](dbMethods.of().FxShmLock)(tls, file, first, n, flags)
	}
	l := at[logFile](log)
	l.drop() // before another one may write
	rc := called[lockFunc](dbMethods.of().FxShmLock)(tls, file, first, n, flags)
	l.gathers = flags&sqlite3.SQLITE_SHM_LOCK != 0 && rc == sqlite3.SQLITE_OK
	return rc
}

// logFile is what is known of a log. The goroutine that uses the connection uses it. It lies in SQLite's memory.
type logFile struct {
	file, db uintptr
	buffer   uintptr // of gatheredMost bytes; 0 before the first
	begin    int64   // where in the log what is gathered goes
	n        int32   // how much is gathered
	failed   int32   // what came of a write of this transaction
	lost     int64   // if it failed: from where on the log is not what SQLite takes it for
	gathers  bool    // there is a write transaction
	commits  bool    // and its last frame has come
	synced   bool    // once, which brings the name of the file to the disk too
}

func changeLog(t *sqlite3.Tsqlite3_io_methods) {
	t.FxClose = pointerTo[closeFunc](xClose)
	t.FxRead = pointerTo[moveFunc](xRead)
	t.FxWrite = pointerTo[moveFunc](xWrite)
	t.FxTruncate = pointerTo[truncFunc](xTruncate)
	t.FxSync = pointerTo[syncFunc](xSync)
	t.FxFileSize = pointerTo[sizeFunc](xFileSize)
}

// drop forgets what is gathered, at the end of a transaction.
func (l *logFile) drop() {
	l.n, l.failed, l.gathers, l.commits = 0, sqlite3.SQLITE_OK, false, false
}

// write writes what is gathered.
func (l *logFile) write(tls *libc.TLS) int32 {
	if l.n == 0 || l.failed != sqlite3.SQLITE_OK {
		return l.failed
	}
	l.failed = writeThrough(tls, l.file, l.buffer, l.n, l.begin)
	l.lost, l.n = l.begin, 0
	return l.failed
}

func xWrite(tls *libc.TLS, file, data uintptr, n int32, to int64) int32 {
	l := at[logFile](file + behind)
	if l.failed != sqlite3.SQLITE_OK {
		return l.failed
	}
	last := l.commits
	if n == frameHeader && *at[[4]byte](data + commitSize) != [4]byte{} {
		l.commits = true
	}
	if l.n > 0 && (to != l.begin+int64(l.n) || n > gatheredMost-l.n) {
		if rc := l.write(tls); rc != sqlite3.SQLITE_OK {
			return rc
		}
	}
	if l.n == 0 && (!l.gathers || last || n > gatheredMost || !l.allocate(tls)) {
		return writeThrough(tls, file, data, n, to)
	}
	if l.n == 0 {
		l.begin = to
	}
	copy(unsafe.Slice(at[byte](l.buffer+uintptr(l.n)), n), unsafe.Slice(at[byte](data), n))
	if l.n += n; last {
		return l.write(tls)
	}
	return sqlite3.SQLITE_OK
}

// writeThrough has SQLite write. A limit of the process or a quota is a full disk, which SQLite knows as such alone where
// the disk has no room: then nothing is there of the commit, and its outcome is not in doubt.
func writeThrough(tls *libc.TLS, file, data uintptr, n int32, to int64) int32 {
	rc := called[moveFunc](logMethods.of().FxWrite)(tls, file, data, n, to)
	if rc == sqlite3.SQLITE_IOERR_WRITE {
		switch syscall.Errno(at[sqlite3.TunixFile](file).FlastErrno) {
		case syscall.EFBIG, syscall.EDQUOT:
			return sqlite3.SQLITE_FULL
		}
	}
	return rc
}

func (l *logFile) allocate(tls *libc.TLS) bool {
	if l.buffer == 0 {
		l.buffer = libc.Xmalloc(tls, gatheredMost)
	}
	return l.buffer != 0
}

func xRead(tls *libc.TLS, file, data uintptr, n int32, from int64) int32 {
	l := at[logFile](file + behind)
	if rc := l.write(tls); rc != sqlite3.SQLITE_OK && from+int64(n) > l.lost {
		return rc
	}
	return called[moveFunc](logMethods.of().FxRead)(tls, file, data, n, from)
}

func xTruncate(tls *libc.TLS, file uintptr, size int64) int32 {
	if rc := at[logFile](file + behind).write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return called[truncFunc](logMethods.of().FxTruncate)(tls, file, size)
}

func xFileSize(tls *libc.TLS, file, size uintptr) int32 {
	if rc := at[logFile](file + behind).write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	return called[sizeFunc](logMethods.of().FxFileSize)(tls, file, size)
}

func xSync(tls *libc.TLS, file uintptr, flags int32) int32 {
	l := at[logFile](file + behind)
	if rc := l.write(tls); rc != sqlite3.SQLITE_OK {
		return rc
	}
	if !l.synced {
		rc := called[syncFunc](logMethods.of().FxSync)(tls, file, flags)
		l.synced = rc == sqlite3.SQLITE_OK
		return rc
	}
	if libc.Xfdatasync(tls, at[sqlite3.TunixFile](file).Fh) != 0 {
		return sqlite3.SQLITE_IOERR_FSYNC
	}
	return sqlite3.SQLITE_OK
}

func xClose(tls *libc.TLS, file uintptr) int32 {
	l := at[logFile](file + behind)
	l.drop()
	if l.buffer != 0 {
		libc.Xfree(tls, l.buffer)
	}
	at[dbFile](l.db + behind).log = 0
	return called[closeFunc](logMethods.of().FxClose)(tls, file)
}
