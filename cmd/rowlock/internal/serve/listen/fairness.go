package listen

import (
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
)

// FairnessFlags enable API Priority and Fairness.
type FairnessFlags struct{ On bool }

func (o *FairnessFlags) AddTo(f *pflag.FlagSet) {
	f.BoolVar(&o.On, "enable-priority-and-fairness", true,
		"divide the sum of --max-requests-inflight and --max-mutating-requests-inflight by flow schemas and priority levels; otherwise they limit the numbers of read and write requests")
}

func (o *FairnessFlags) Apply(cfg *server.Config) { cfg.PlainLimits = !o.On }
