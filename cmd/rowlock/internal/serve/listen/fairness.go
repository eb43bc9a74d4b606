package listen

import (
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
)

// FairnessFlags enable API Priority and Fairness.
type FairnessFlags struct{ On bool }

func (o *FairnessFlags) AddTo(f *pflag.FlagSet) {
	f.BoolVar(&o.On, "enable-priority-and-fairness", true,
		"have flow schemas and priority levels share out --max-requests-inflight and --max-mutating-requests-inflight together; without, these limit reading and writing requests by number")
}

func (o *FairnessFlags) Apply(cfg *server.Config) { cfg.PlainLimits = !o.On }
