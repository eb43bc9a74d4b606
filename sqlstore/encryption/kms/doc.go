// Package kms encrypts values with data keys that a key management service guards: a plugin on a unix socket, by
// version 2 or version 1 of its protocol.
//
// A data key is stored only as the plugin encrypted it, and its plain text is only in this process's memory.
// Answers of a plugin are checked, and bounded in bytes and time. A plugin that hangs costs its callers its
// timeout, and nothing once it is known to be silent.
//
// Calls: each provider has at most 32 in flight. Version 2 requests the status once a minute, or every ten seconds
// while it fails, and a new data key when the plugin names another key; a read causes a request if its data key is
// not in memory, one for all concurrent readers. Version 1 causes a request for each write, and for each data key
// that is not in memory. Health checks cause one at most every 20 seconds, or 3 while they fail.
//
// Goroutines: those of the connection, which Close ends. V2.Run is called in one of its caller's.
package kms

import (
	"log/slog"
	"time"
)

// Config is one provider.
type Config struct {
	Name      string
	Endpoint  string // unix:///path
	Timeout   time.Duration
	CacheSize int // data keys of version 1 that are kept in memory; negative: none
	Metrics   *Metrics
	Log       *slog.Logger
}
