// Package kms seals values with data keys that a key management service guards: a plugin
// that is reached over a unix socket, in version 2 of its protocol or in version 1.
//
// It promises: a data key is stored only as the plugin encrypted it, and in memory only
// here; what a plugin answers is believed as far as it was looked at, and bounded in bytes
// and in time; a plugin that hangs costs those who use it its timeout, and while it is
// known to be silent not even that.
//
// Who causes calls, and how many: each provider has at most 32 under way. Version 2 asks
// for its status once a minute, or every ten seconds while it fails, and for a new data key
// when the plugin names another key; a read asks when its data key is not in memory, once
// for all who read at the time. Version 1 asks for each write, and for each data key
// that is not in memory. Checks of health ask at most every 20 seconds, or 3 while they fail.
//
// Goroutines: those of the connection, which Close ends; V2.Run is one, of who calls it.
package kms

import (
	"log/slog"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
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

// parts are what a value is bound to besides what is stored before it.
func parts(row sqlstore.Key) []string { return []string{row.Resource, row.Namespace, row.Name} }
