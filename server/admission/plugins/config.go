package plugins

import (
	"fmt"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/admission/pods"
	"github.com/rowlock/rowlock/server/release"
)

// Config selects and configures the admission plugins.
type Config struct {
	// Enable and Disable name plugins that run, or do not, in spite of their default.
	Enable, Disable []string
	// Configs are the parts of the admission configuration file, by plugin.
	Configs map[string][]byte
	// Tolerations configures DefaultTolerationSeconds; nil: five minutes each.
	Tolerations *pods.Tolerations
	// DirectServices leads calls of webhooks to endpoints of their Services, and not to
	// the Services' addresses, which may not be reachable from here.
	DirectServices bool
}

// Names returns the sorted names of the plugins of a release; on holds those that run by default, in the order in which
// they run.
func Names(v release.Version) (known, on []string) {
	for _, p := range all {
		if !p.of(v) {
			continue
		}
		known = append(known, p.name)
		if p.on && p.build != nil {
			on = append(on, p.name)
		}
	}
	slices.Sort(known)
	return known, on
}

// of reports whether stock servers of a release have a plugin of the name.
func (p entry) of(v release.Version) bool { return !p.later || v.Has(release.KindRules133) }

// Validate refuses unknown plugins, plugins that are both enabled and disabled, and enabling a plugin that
// this server does not have: an administrator who requires a rule must not run without it.
func (a *Config) Validate(v release.Version) error {
	known := func(flag string, names []string) error {
		for _, name := range names {
			if !slices.ContainsFunc(all, func(p entry) bool { return p.name == name && p.of(v) }) {
				return fmt.Errorf("%s plugin %q is unknown", flag, name)
			}
		}
		return nil
	}
	if err := known("enable-admission-plugins", a.Enable); err != nil {
		return err
	}
	if err := known("disable-admission-plugins", a.Disable); err != nil {
		return err
	}
	var both []string
	for _, p := range all {
		enabled := slices.Contains(a.Enable, p.name)
		if enabled && slices.Contains(a.Disable, p.name) {
			both = append(both, p.name)
		}
		if enabled && p.build == nil {
			return fmt.Errorf("enable-admission-plugins plugin %q is not part of this server", p.name)
		}
	}
	if len(both) > 0 {
		slices.Sort(both)
		return fmt.Errorf("[%s] in enable-admission-plugins and disable-admission-plugins overlapped", strings.Join(both, " "))
	}
	return nil
}

// runs reports whether a plugin is enabled.
func (a *Config) runs(name string, feature func(string) bool) bool {
	return slices.ContainsFunc(all, func(p entry) bool {
		switch {
		case p.name != name || p.build == nil || p.gate != "" && !feature(p.gate) || slices.Contains(a.Disable, p.name):
			return false
		}
		return p.on || slices.Contains(a.Enable, p.name)
	})
}
