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
	g := gates.New()
	for _, pair := range pairs {
		name, text, ok := strings.Cut(strings.TrimSpace(pair), "=")
		if !ok {
			return nil, fmt.Errorf("missing bool value for %s", name)
		}
		on, err := strconv.ParseBool(text)
		if err != nil {
			return nil, fmt.Errorf("invalid value of %s=%s, err: %w", name, text, err)
		}
		if err := g.Set(name, on); err != nil {
			return nil, err
		}
	}
	return g, g.Check()
}

// features shows the gates as metrics.
func features(g *gates.Gates) prometheus.Collector {
	return metrics.Features(func(show func(name, stage string, on bool)) {
		g.All(func(gate gates.Gate, on bool) { show(gate.Name, string(gate.Stage), on) })
	})
}
