package main

import (
	"github.com/spf13/pflag"

	"github.com/rowlock/rowlock/server"
)

// fairnessOptions say whether priority levels decide which requests run.
type fairnessOptions struct{ on bool }

func (o *fairnessOptions) addTo(f *pflag.FlagSet) {
	f.BoolVar(&o.on, "enable-priority-and-fairness", true,
		"have flow schemas and priority levels share out --max-requests-inflight and --max-mutating-requests-inflight together; without, these limit reading and writing requests by number")
}

func (o *fairnessOptions) addFairness(cfg *server.Config) { cfg.PlainLimits = !o.on }
