//go:build !linux

package main

import (
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// taps need epoll.
type taps struct{}

func openTaps(*harness.Server, string, int, int, bool) (*taps, error) { return nil, errNoTaps }

func (*taps) read(int) ([]time.Duration, error) { return nil, errNoTaps }

func (*taps) close() {}
