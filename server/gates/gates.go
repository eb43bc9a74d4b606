// Package gates knows the feature gates of the release, their stages and defaults,
// and which are on.
//
// It promises: an unknown gate, or one that is locked, is refused with the words
// of a stock server.
package gates

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Stage is how mature a feature is.
type Stage string

// The stages.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
)

// Gate is one feature gate.
type Gate struct {
	Name    string
	Stage   Stage
	Default bool
	Locked  bool // to Default
	// Older: locked, but suites that were written for older releases switch it; see ParseOlder.
	Older bool
	Needs string // another gate that must be on
	// Switches: the gate changes what this server does. Others are taken, so that the
	// command lines of stock servers work.
	Switches bool
}

// Gates are the gates of one server.
type Gates struct {
	gates   map[string]Gate
	on      map[string]bool
	older   bool // gates that are Older may be switched
	remarks []string
}

// New are all gates at their defaults.
func New() *Gates {
	g := &Gates{gates: make(map[string]Gate, len(known)), on: make(map[string]bool, len(known))}
	for _, k := range known {
		g.gates[k.Name] = k
		g.on[k.Name] = k.Default
	}
	return g
}

// Parse reads the NAME=BOOL pairs of --feature-gates.
func Parse(pairs []string) (*Gates, error) { return New().parse(pairs) }

// ParseOlder is Parse for those who start this server in the place of an older release:
// what is locked in this one, and was not then, may be switched where the table says so.
func ParseOlder(pairs []string) (*Gates, error) {
	g := New()
	g.older = true
	return g.parse(pairs)
}

func (g *Gates) parse(pairs []string) (*Gates, error) {
	switches := make(map[string]bool, len(pairs))
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

// Set switches gates. AllAlpha and AllBeta switch all of a stage but those that are
// named themselves.
func (g *Gates) Set(switches map[string]bool) error {
	for _, name := range slices.Sorted(maps.Keys(switches)) {
		on := switches[name]
		if stage, ok := stages[name]; ok {
			g.setStage(stage, on, switches)
			continue
		}
		k, ok := g.gates[name]
		if !ok {
			return fmt.Errorf("unrecognized feature gate: %s", name)
		}
		if k.Locked && on != k.Default && !(k.Older && g.older) {
			return fmt.Errorf("cannot set feature gate %s to %t, feature is locked to %t", name, on, k.Default)
		}
		g.on[name] = on
		g.remark(k, on)
	}
	return nil
}

// stages are the names that stand for all gates of a stage.
var stages = map[string]Stage{"AllAlpha": Alpha, "AllBeta": Beta}

func (g *Gates) setStage(stage Stage, on bool, but map[string]bool) {
	for name, k := range g.gates {
		if _, named := but[name]; k.Stage == stage && !k.Locked && !named {
			g.on[name] = on
		}
	}
}

func (g *Gates) remark(k Gate, on bool) {
	switch {
	case k.Stage == GA || k.Stage == Deprecated:
		stage := "GA"
		if k.Stage == Deprecated {
			stage = "deprecated"
		}
		g.remarks = append(g.remarks, fmt.Sprintf("Setting %s feature gate %s=%t. It will be removed in a future release.", stage, k.Name, on))
	case on != k.Default && !k.Switches:
		g.remarks = append(g.remarks, fmt.Sprintf("Feature gate %s=%t has no effect on this server.", k.Name, on))
	}
}

// Remarks are what whoever has set gates should know.
func (g *Gates) Remarks() []string { return g.remarks }

// Help lists the gates that may be switched, with stage and default.
func Help() []string {
	lines := []string{"AllAlpha=true|false (ALPHA - default=false)", "AllBeta=true|false (BETA - default=false)"}
	for _, k := range known {
		if k.Stage == Alpha || k.Stage == Beta {
			lines = append(lines, fmt.Sprintf("%s=true|false (%s - default=%t)", k.Name, k.Stage, k.Default))
		}
	}
	slices.Sort(lines)
	return lines
}

// Check says whether every gate that is on has what it needs.
func (g *Gates) Check() error {
	for _, k := range known {
		if k.Needs != "" && g.on[k.Name] && !g.on[k.Needs] {
			return fmt.Errorf("%s feature requires %s feature to be enabled", k.Name, k.Needs)
		}
	}
	return nil
}

// Enabled says whether a gate is on; unknown ones are not.
func (g *Gates) Enabled(name string) bool { return g.on[name] }

// All lists every gate and whether it is on, for metrics.
func (g *Gates) All(fn func(Gate, bool)) {
	for _, k := range known {
		fn(k, g.on[k.Name])
	}
}
