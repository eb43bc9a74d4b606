//go:build !linux

package main

import "time"

// sleepUntil waits for a time.
func sleepUntil(at time.Time) { time.Sleep(time.Until(at)) }
