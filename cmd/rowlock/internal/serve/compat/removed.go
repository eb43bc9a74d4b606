package compat

import (
	"log/slog"

	"github.com/spf13/pflag"
)

// removed are flags that earlier releases had. This release accepts them with a warning, and they have no
// effect; the next release refuses them.
var removed = []struct {
	name  string
	since string // the month of the removal
	why   string
}{
	{"strategic-merge", "2026-11", "there is one merge, whose work is proportional to the patch and the object"},
	{"sqlite-log-writes", "2026-11", "SQLite writes its log itself"},
	{"write-memory", "2026-11", "each written value has memory of its own"},
	{"sqlite-bulk-reads", "2026-11", "all rows are read by SQLite's Go driver"},
	{"short-requests", "2026-11", "see --http2"},
	{"rest-connections-from", "2026-11", "all idle connections are parked"},
}

// AddRemoved accepts the removed flags without listing them.
func AddRemoved(f *pflag.FlagSet) {
	for _, r := range removed {
		f.String(r.name, "", "removed: "+r.why)
		f.Lookup(r.name).Hidden = true
	}
}

// WarnRemoved logs the given flags that were removed.
func WarnRemoved(f *pflag.FlagSet, log *slog.Logger) {
	for _, r := range removed {
		if f.Changed(r.name) {
			log.Warn("a flag was removed and has no effect; the next release refuses it, so delete it from the command line",
				"flag", "--"+r.name, "removed", r.since, "reason", r.why)
		}
	}
}
