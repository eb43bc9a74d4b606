package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/rowlock/rowlock/server/gates"
	"github.com/rowlock/rowlock/server/metrics"
)

// parseGates reads --feature-gates.
func parseGates(pairs []string) (*gates.Gates, error) {
	g, switches := gates.New(), make(map[string]bool, len(pairs))
	for _, pair := range pairs {
		name, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return nil, fmt.Errorf("missing bool value for %s", name)
		}
		on, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("invalid value of %s=%s, err: %w", name, text, err)
		}
		switches[name] = on
	}
	if err := g.Set(switches); err != nil {
		return nil, err
	}
	return g, g.Check()
}

// showGates shows the gates as metrics.
func showGates(g *gates.Gates) prometheus.Collector {
	return metrics.Features(func(show func(name, stage string, on bool)) {
		g.All(func(gate gates.Gate, on bool) { show(gate.Name, string(gate.Stage), on) })
	})
}
