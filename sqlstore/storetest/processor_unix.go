//go:build unix

package storetest

import (
	"syscall"
	"time"
)

// processor is the time that this process has used: steadier than a clock on a
// machine that does other things as well.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
