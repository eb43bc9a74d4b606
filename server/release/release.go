// Package release has the table of releases: the additions and removals in the API of each Kubernetes
// release, as data.
//
// The configuration of a server has the emulated release, a Version; the rest of the server looks up the
// release in the table, and never compares version numbers (docs/design/releases.md).
package release

import (
	"fmt"
	"strconv"
	"strings"
)

//go:generate go run ./gen .

// Version is a minor release of Kubernetes. Versions are ordered by <; the zero value is Default.
type Version int

// The releases that a server can be.
const (
	V132 Version = iota
	V133
	V134
	V135
	V136
)

const (
	// Default is the release of a server unless its flags choose another.
	Default = V132
	// Oldest and Newest are the first and the last release of the table.
	Oldest = V132
	Newest = V136
)

const (
	major      = 1
	firstMinor = 32 // for the zero value
)

// All returns all releases that a server can be, the oldest first.
func All() []Version {
	var all []Version
	for v := Oldest; v <= Newest; v++ {
		all = append(all, v)
	}
	return all
}

// Of returns the release 1.MINOR, which the server need not be able to emulate.
func Of(minor int) Version { return Version(minor - firstMinor) }

// Parse parses a release as "1.33" or "v1.33". The server need not be able to emulate it; see Known.
func Parse(text string) (Version, error) {
	first, second, ok := strings.Cut(strings.TrimPrefix(text, "v"), ".")
	minor, err := strconv.ParseUint(second, 10, 16)
	if !ok || err != nil || first != strconv.Itoa(major) {
		return Default, unknown(text)
	}
	return Of(int(minor)), nil
}

func unknown(text string) error { return fmt.Errorf("release %q: want one of %s", text, Names()) }

// Known reports whether a server can be this release.
func (v Version) Known() bool { return v >= Oldest && v <= Newest }

// Names lists the releases that a server can be, for messages.
func Names() string {
	var names []string
	for _, v := range All() {
		names = append(names, v.String())
	}
	return strings.Join(names, ", ")
}

// Major returns the first number of the release.
func (Version) Major() int { return major }

// Minor returns the second number of the release.
func (v Version) Minor() int { return firstMinor + int(v) }

// String returns the release as "1.33".
func (v Version) String() string { return fmt.Sprintf("%d.%d", major, v.Minor()) }

// span is a range of minor releases: from since, or from before the oldest release, to the one before gone, or without an
// end.
type span struct{ since, gone uint8 }

// has reports whether a feature with the span exists in a release.
func (s span) has(v Version) bool {
	minor := v.Minor()
	return int(s.since) <= minor && (s.gone == 0 || minor < int(s.gone))
}

// Emulated reports whether a server of the release describes itself as the newest binary that emulates the release, as all but
// the oldest do.
func (v Version) Emulated() bool { return v > Oldest }

// Binary returns the release of the binary that a server reports.
func (v Version) Binary() Version {
	if v.Emulated() {
		return Newest
	}
	return v
}

// MinCompatibility returns the release that the other servers of a cluster must at least be, if
// --min-compatibility-version is not set: the one before, if the binary can be that.
func (v Version) MinCompatibility() Version { return max(v-1, v.Floor()) }

// Floor returns the oldest release that the binary of a release can emulate, and be compatible with.
func (v Version) Floor() Version { return v.Binary() - 3 }
