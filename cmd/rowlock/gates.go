package main

import (
	"github.com/prometheus/client_golang/prometheus"
	genericfeatures "k8s.io/apiserver/pkg/features"
	utilfeature "k8s.io/apiserver/pkg/util/feature"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/metrics"
)

// tellLibrary turns off in the libraries of expressions what is off here. They read their own
// gates when the first expression is compiled.
func tellLibrary(g *gates.Gates) error {
	if g.Enabled("AuthorizeWithSelectors") {
		return nil
	}
	return utilfeature.DefaultMutableFeatureGate.SetFromMap(map[string]bool{
		string(genericfeatures.AuthorizeWithSelectors): false,
	})
}

// showGates shows the gates as metrics.
func showGates(g *gates.Gates) prometheus.Collector {
	return metrics.Features(func(show func(name, stage string, on bool)) {
		g.All(func(gate gates.Gate, on bool) { show(gate.Name, string(gate.Stage), on) })
	})
}
