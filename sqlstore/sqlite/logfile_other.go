//go:build !linux

package sqlite

// Elsewhere SQLite writes its log itself.

const logVFS = ""

func gathersLog() bool { return false }
