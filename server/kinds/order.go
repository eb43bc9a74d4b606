package kinds

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/version"
)

// inDiscoveryOrder puts custom resources behind the built-in ones, which keep
// their order. Groups of custom resources are in order of their first
// "version.group", versions from most to least stable, resources by name.
func inDiscoveryOrder(resources []*Resource) []*Resource {
	first := make(map[string]string)
	for _, r := range resources {
		name := r.Version + "." + r.Group
		if old, ok := first[r.Group]; r.custom() && (!ok || name < old) {
			first[r.Group] = name
		}
	}
	if len(first) == 0 {
		return resources
	}
	sorted := slices.Clone(resources)
	slices.SortStableFunc(sorted, func(a, b *Resource) int {
		switch {
		case !a.custom() && !b.custom():
			return 0
		case a.custom() != b.custom() && a.custom():
			return 1
		case a.custom() != b.custom():
			return -1
		case a.Group != b.Group:
			return strings.Compare(first[a.Group], first[b.Group])
		case a.Version != b.Version:
			return -version.CompareKubeAwareVersionStrings(a.Version, b.Version)
		}
		return strings.Compare(a.Plural, b.Plural)
	})
	return sorted
}
