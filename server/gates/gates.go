// Package gates has the feature gates of each release, their stages and defaults, and which are on. An
// unknown or locked gate is refused with the error of a stock server.
package gates

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	utilerrors "k8s.io/apimachinery/pkg/util/errors"

	"github.com/rowlock/rowlock/server/release"
)

//go:generate go run ./gen .

// Stage is the maturity of a feature.
type Stage string

// The stages.
const (
	Alpha      Stage = "ALPHA"
	Beta       Stage = "BETA"
	GA         Stage = "GA"
	Deprecated Stage = "DEPRECATED"
)

// gone is the stage of a gate that was removed.
const gone Stage = ""

// row is a gate over all releases.
type row struct {
	name    string
	history []spec
	needs   []string // other gates that must be on
}

// spec is a gate from a release on.
type spec struct {
	minor      uint8
	stage      Stage
	on, locked bool
}

// spec returns the state of a gate in a release.
func (k row) spec(v release.Version) (now spec) {
	for _, s := range k.history {
		if int(s.minor) <= v.Minor() {
			now = s
		}
	}
	return now
}

// at returns a gate as a release has it; false: the release has none of this name, or its binary no longer has it.
func (k row) at(v release.Version) (Gate, bool) {
	now := k.spec(v)
	_, switched := slices.BinarySearch(switches, k.name)
	return Gate{
		Name: k.name, Stage: now.stage, Default: now.on, Locked: now.locked, Older: slices.Contains(older, k.name), Switches: switched,
		needs: k.needs,
	}, now.stage != gone && k.spec(v.Binary()).stage != gone
}

// later reports whether a release after v introduces a gate, which its binary has.
func later(name string, v release.Version) bool {
	i, ok := slices.BinarySearchFunc(known, name, func(k row, name string) int { return strings.Compare(k.name, name) })
	return ok && int(known[i].history[0].minor) > v.Minor() && known[i].spec(v.Binary()).stage != gone
}

// Gate is one feature gate.
type Gate struct {
	Name    string
	Stage   Stage
	Default bool
	Locked  bool // to Default
	// Older: locked, but suites that were written for older releases switch it; see ParseOlder.
	Older bool
	// Switches: the gate changes this server's behaviour. Others are accepted, so that the command lines of
	// stock servers work.
	Switches bool

	needs []string
}

// Gates are the gates of one server.
type Gates struct {
	release release.Version
	all     []Gate
	gates   map[string]Gate
	on      map[string]bool
	older   bool // gates that are Older may be switched
	remarks []string
}

// stages are the gates that switch all gates of a stage.
var stages = []Gate{{Name: "AllAlpha", Stage: Alpha}, {Name: "AllBeta", Stage: Beta}}

// isStage reports whether a gate switches all gates of its stage.
func (k Gate) isStage() bool {
	return slices.ContainsFunc(stages, func(s Gate) bool { return s.Name == k.Name })
}

// of returns the gates of a release, sorted by name.
func of(v release.Version) []Gate {
	all := slices.Clone(stages)
	for _, k := range known {
		if gate, ok := k.at(v); ok {
			all = append(all, gate)
		}
	}
	sort.Slice(all, func(i, j int) bool { return all[i].Name < all[j].Name })
	return all
}

// New returns all gates of a release at their defaults.
func New(v release.Version) *Gates {
	g := &Gates{release: v, all: of(v)}
	g.gates, g.on = make(map[string]Gate, len(g.all)), make(map[string]bool, len(g.all))
	for _, k := range g.all {
		g.gates[k.Name] = k
		g.on[k.Name] = k.Default
	}
	for _, k := range known {
		if _, has := k.at(v); !has {
			g.on[k.name] = k.left(v)
		}
	}
	return g
}

// left returns the state of a gate that a release no longer has: a feature that is always on, or none.
func (k row) left(v release.Version) (on bool) {
	for _, s := range k.history {
		if int(s.minor) <= v.Minor() && s.stage != gone {
			on = s.on
		}
	}
	return on
}

// Parse reads the NAME=BOOL or kube:NAME=BOOL pairs of --feature-gates.
func Parse(v release.Version, pairs []string) (*Gates, error) { return New(v).parse(pairs) }

// ParseOlder is Parse for command lines of an older release: a gate that is locked in this release, and was
// not then, can be set if the table allows that.
func ParseOlder(v release.Version, pairs []string) (*Gates, error) {
	g := New(v)
	g.older = true
	return g.parse(pairs)
}

func (g *Gates) parse(pairs []string) (*Gates, error) {
	switches := make(map[string]bool, len(pairs))
	var plain, prefixed bool
	for _, pair := range pairs {
		if pair == "" {
			continue
		}
		component, rest, ok := strings.Cut(pair, ":")
		if !ok {
			component, rest = "", pair
		}
		switch strings.TrimSpace(component) {
		case "":
			plain = true
		case kube:
			prefixed = true
		default:
			return nil, fmt.Errorf("component not registered: %s", strings.TrimSpace(component))
		}
		if plain && prefixed {
			return nil, errors.New("set kube feature gates with default empty prefix or kube: prefix consistently, do not mix use")
		}
		name, text, ok := strings.Cut(rest, "=")
		name = strings.TrimSpace(name)
		if !ok {
			return nil, fmt.Errorf("missing bool value for %s", name)
		}
		on, err := strconv.ParseBool(strings.TrimSpace(text))
		if err != nil {
			return nil, fmt.Errorf("invalid value of %s=%s, err: %w", name, strings.TrimSpace(text), err)
		}
		switches[name] = on
	}
	if err := g.Set(switches); err != nil {
		return nil, err
	}
	return g, g.Check()
}

// kube is the component whose gates these are.
const kube = "kube"

// Name returns the name of the gate in a pair of --feature-gates.
func Name(pair string) string {
	name, _, _ := strings.Cut(pair, "=")
	if component, rest, ok := strings.Cut(name, ":"); ok && strings.TrimSpace(component) == kube {
		name = rest
	}
	return strings.TrimSpace(name)
}

// Set switches gates. AllAlpha and AllBeta switch all of a stage but those that are
// named themselves.
func (g *Gates) Set(switches map[string]bool) error {
	var errs []error
	for _, name := range slices.Sorted(maps.Keys(switches)) {
		on := switches[name]
		k, ok := g.gates[name]
		switch {
		case !ok && g.release.Emulated() && later(name, g.release):
			errs = append(errs, fmt.Errorf("cannot set feature gate %s to %t, feature is PreAlpha at emulated version %s, min compatibility version %s", name, on, g.release, g.release.MinCompatibility()))
			continue
		case !ok:
			return fmt.Errorf("unrecognized feature gate: %s", name)
		case k.Locked && on != k.Default && (!k.Older || !g.older):
			errs = append(errs, fmt.Errorf("cannot set feature gate %s to %t, feature is locked to %t", name, on, k.Default))
			continue
		}
		g.on[name] = on
		if k.isStage() {
			g.setStage(k.Stage, on, switches)
			continue
		}
		g.remark(k, on)
	}
	return utilerrors.NewAggregate(errs)
}

func (g *Gates) setStage(stage Stage, on bool, but map[string]bool) {
	for name, k := range g.gates {
		if _, named := but[name]; k.Stage == stage && !k.Locked && !named && !k.isStage() {
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

// Remarks returns notes for the user about the gates that are set.
func (g *Gates) Remarks() []string { return g.remarks }

// Help lists the gates of a release that may be switched, with stage and default.
func Help(v release.Version) []string {
	var lines []string
	for _, k := range of(v) {
		if k.Stage == Alpha || k.Stage == Beta {
			lines = append(lines, fmt.Sprintf("%s=true|false (%s - default=%t)", k.Name, k.Stage, k.Default))
		}
	}
	slices.Sort(lines)
	return lines
}

// Check returns an error if a gate is on without its dependencies.
func (g *Gates) Check() error {
	var errs []error
	for _, k := range g.all {
		if !g.on[k.Name] {
			continue
		}
		var off []string
		for _, need := range k.needs {
			if !g.on[need] {
				off = append(off, need)
			}
		}
		switch {
		case len(off) == 0:
		case g.release.Emulated():
			errs = append(errs, fmt.Errorf("%s is enabled, but depends on features that are disabled: %v", k.Name, off))
		case slices.Contains(checked, k.Name):
			errs = append(errs, fmt.Errorf("%s feature requires %s feature to be enabled", k.Name, off[0]))
		}
	}
	return utilerrors.NewAggregate(errs)
}

// Enabled reports whether a gate is on, or was when a release took it away; unknown ones are not.
func (g *Gates) Enabled(name string) bool { return g.on[name] }

// All lists every gate and whether it is on, for metrics.
func (g *Gates) All(fn func(Gate, bool)) {
	for _, k := range g.all {
		fn(k, g.on[k.Name])
	}
}
