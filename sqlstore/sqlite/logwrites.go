package sqlite

import "net/url"

// LogWrites says how a commit goes into the write-ahead log.
type LogWrites string

const (
	GatheredLog LogWrites = "gathered" // by one system call, or one for each 128 KiB; where that cannot be done, as StandardLog
	StandardLog LogWrites = "standard" // by two for each page
)

// connectWriter opens a connection for writing. All others write into the log as SQLite does, if ever they do.
func (d *Driver) connectWriter() (*conn, error) {
	if d.cfg.LogWrites != StandardLog && gathersLog() {
		return connectBy(url.Values{"vfs": {logVFS}}, d.path, d.writerPragmas())
	}
	return connect(d.path, d.writerPragmas())
}
