package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// inDiscoveryOrder puts custom resources behind the built-in ones, which keep
// their order, and reserved ones behind those. Groups of custom resources are in order of their first
// "version.group", versions from most to least stable, resources by name.
func inDiscoveryOrder(resources []*Resource) []*Resource {
	first := make(map[string]string)
	for _, r := range resources {
		name := r.Version + "." + r.Group
		if old, ok := first[r.Group]; r.defined() && (!ok || name < old) {
			first[r.Group] = name
		}
	}
	if !slices.ContainsFunc(resources, (*Resource).custom) {
		return resources
	}
	sorted := slices.Clone(resources)
	slices.SortStableFunc(sorted, func(a, b *Resource) int {
		rank := a.rank()
		switch {
		case rank != b.rank():
			return rank - b.rank()
		case rank != ofDefinitions:
			return 0
		case a.Group != b.Group:
			return strings.Compare(first[a.Group], first[b.Group])
		case a.Version != b.Version:
			return -version.CompareKubeAwareVersionStrings(a.Version, b.Version)
		}
		return strings.Compare(a.Plural, b.Plural)
	})
	return sorted
}

// Where resources stand: built-in ones, those of definitions, reserved ones.
const (
	builtIn = iota
	ofDefinitions
	reserved
)

func (r *Resource) rank() int {
	switch {
	case r.Reserved:
		return reserved
	case r.custom():
		return ofDefinitions
	}
	return builtIn
}
