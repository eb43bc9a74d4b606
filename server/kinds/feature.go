package kinds

import (
	"strconv"

	"github.com/rowlock/rowlock/server/release"
)

// Feature reports whether a feature gate is on, by its name. Kinds whose rules depend on
// gates are functions of it: a server's gates are settled before it has any kinds.
type Feature func(gate string) bool

// Has reports whether the release of the gates has a change.
func (f Feature) Has(c release.Change) bool { return f(changeName(c)) }

// In adds the changes of a release to its gates, for Has.
func (f Feature) In(v release.Version) Feature {
	changes := make(map[string]bool)
	for _, c := range release.Changes() {
		changes[changeName(c)] = v.Has(c)
	}
	return func(name string) bool {
		if has, ok := changes[name]; ok {
			return has
		}
		return f(name)
	}
}

// changeName is looked up like the name of a gate; no gate has it.
func changeName(c release.Change) string { return "rowlock/change/" + strconv.Itoa(int(c)) }
