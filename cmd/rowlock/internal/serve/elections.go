package serve

import (
	"os"

	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server/controllers/elections"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// electionOptions are the flags of the Lease of the server that chooses leaders for other components.
type electionOptions struct{ times reconcile.LeaseTimes }

// The names of these flags.
const (
	leadDuration = "coordinated-leadership-lease-duration"
	leadDeadline = "coordinated-leadership-renew-deadline"
	leadRetry    = "coordinated-leadership-retry-period"
)

func (o *electionOptions) addTo(f *pflag.FlagSet) {
	standard := reconcile.StandardLeaseTimes()
	f.DurationVar(&o.times.Duration, leadDuration, standard.Duration,
		"how long other servers wait for the one that chooses leaders by LeaseCandidates and no longer renews its Lease, before one of them does so")
	f.DurationVar(&o.times.Deadline, leadDeadline, standard.Deadline, "time after which that server stops if it cannot renew its Lease")
	f.DurationVar(&o.times.Retry, leadRetry, standard.Retry, "how long servers wait between two tries to take or renew that Lease")
}

// build returns what the flags configure; nil if the feature is off.
func (o *electionOptions) build(feature func(gate string) bool) (*elections.Config, error) {
	if err := o.times.Validate("--"+leadDuration, "--"+leadDeadline, "--"+leadRetry); err != nil || !feature("CoordinatedLeaderElection") {
		return nil, err
	}
	return &elections.Config{Times: o.times}, nil
}

// electionIdentity returns the identity of a server in that Lease. It stays the same after a restart, so that the
// server continues at once.
func electionIdentity(address string) (string, error) {
	host, err := os.Hostname()
	return host + "_" + address, err
}
