package main

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepUntil waits for a time, to a tenth of a millisecond. The runtime's own timers are late by up to a millisecond
// where nothing else happens, which is as long as the answers take that are waited for.
func sleepUntil(at time.Time) {
	for left := time.Until(at); left > 0; left = time.Until(at) {
		ts := unix.NsecToTimespec(int64(left))
		if unix.Nanosleep(&ts, nil) == nil {
			return
		}
	}
}
