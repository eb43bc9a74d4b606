package main

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/metrics"
)

// showGates shows the gates as metrics.
func showGates(g *gates.Gates) prometheus.Collector {
	return metrics.Features(func(show func(name, stage string, on bool)) {
		g.All(func(gate gates.Gate, on bool) { show(gate.Name, string(gate.Stage), on) })
	})
}
