//go:build unix && !linux

package pgtest

import "syscall"

// endWithTest needs Linux: elsewhere the server of a test binary that is killed stays.
func endWithTest(*syscall.SysProcAttr) {}
