package main

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/rowlock/rowlock/server/gates"
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
