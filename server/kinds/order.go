package kinds

import (
	"maps"
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
	var defined []placed
	sorted := make([]*Resource, 0, len(resources))
	versions := make(map[string]int)
	for _, r := range resources {
		switch r.rank() {
		case builtIn:
			sorted = append(sorted, r)
		case ofDefinitions:
			defined = append(defined, placed{resource: r})
			versions[r.Version] = 0
		}
	}
	groups, names := rankedBy(first), VersionRanks(slices.Collect(maps.Keys(versions)))
	for i := range defined {
		d := &defined[i]
		d.group, d.version = groups[d.resource.Group], names[d.resource.Version]
	}
	slices.SortStableFunc(defined, func(a, b placed) int {
		switch {
		case a.resource.Group != b.resource.Group:
			return a.group - b.group
		case a.resource.Version != b.resource.Version:
			return b.version - a.version
		}
		return strings.Compare(a.resource.Plural, b.resource.Plural)
	})
	for _, d := range defined {
		sorted = append(sorted, d.resource)
	}
	for _, r := range resources {
		if r.rank() == reserved {
			sorted = append(sorted, r)
		}
	}
	return sorted
}

// placed is a custom resource with the ranks of its group and its version: thousands are put in order
// whenever a definition changes, and each is compared with a dozen others.
type placed struct {
	resource       *Resource
	group, version int
}

// rankedBy numbers keys in the order of their values, with equal numbers for equal values.
func rankedBy(values map[string]string) map[string]int {
	order := slices.SortedFunc(maps.Keys(values), func(a, b string) int { return strings.Compare(values[a], values[b]) })
	ranks := make(map[string]int, len(order))
	for i, key := range order {
		if i > 0 && values[key] == values[order[i-1]] {
			ranks[key] = ranks[order[i-1]]
			continue
		}
		ranks[key] = i
	}
	return ranks
}

// VersionRanks numbers versions from the least to the most stable, with equal numbers for equally stable
// ones: parsing a name takes a regular expression, so it is for callers that compare the same few repeatedly.
func VersionRanks(names []string) map[string]int {
	order := slices.Clone(names)
	slices.SortFunc(order, version.CompareKubeAwareVersionStrings)
	ranks := make(map[string]int, len(order))
	for i, name := range order {
		if i > 0 && version.CompareKubeAwareVersionStrings(name, order[i-1]) == 0 {
			ranks[name] = ranks[order[i-1]]
			continue
		}
		ranks[name] = i
	}
	return ranks
}

// The order of resources: built-in ones, those of definitions, reserved ones.
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
