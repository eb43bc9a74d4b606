//go:build unix

package storetest

import (
	"syscall"
	"time"
)

// processor returns the processor time of this process, which varies less than elapsed time
// on a busy machine.
func processor() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
