package serve

import (
	"cmp"
	"log/slog"
	"maps"
	"slices"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/sqlstore"
)

// retention is the flag --history-retention.
type retention struct{ sqlstore.Retention }

// Set implements pflag.Value.
func (r *retention) Set(text string) error {
	rest := r.Default // if the flag names other resources only
	read, err := sqlstore.ParseRetention(text)
	read.Default = cmp.Or(read.Default, rest)
	if err == nil {
		r.Retention = read
	}
	return err
}

// Type implements pflag.Value.
func (r *retention) Type() string { return "retention" }

// warnUnknown warns about names of resources that are not built in. They may be custom resources, whose definitions the
// server has not loaded yet.
func (r *retention) warnUnknown(built []*kinds.Resource, log *slog.Logger) {
	known := make(map[string]bool)
	for _, b := range built {
		if b.Storage != nil { // otherwise none of it is stored
			known[b.Plural], known[b.Storage.Key] = true, true
		}
	}
	for _, name := range slices.Sorted(maps.Keys(r.ByResource)) {
		if !known[name] {
			log.Warn("--history-retention names no built-in resource; for a custom one it takes effect", "resource", name)
		}
	}
}
