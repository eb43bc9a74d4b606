package discovery

import (
	"cmp"
	"maps"
	"slices"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

// Service is the group version of an APIService.
type Service struct {
	Group, Version                 string
	GroupPriority, VersionPriority int32
	// Remote: another server serves it.
	Remote bool
	// Discovery is the last discovery document of that server; nil before the first fetch.
	Discovery *discoveryv2.APIVersionDiscovery
}

// ownPriority is the priority of the group of APIServices, which has no APIService: higher than any APIService may have.
const ownPriority = 20001

// lastPriority is the priority of reserved groups, which have no APIService: lower than any APIService may have.
const lastPriority = 0

// place is the position of a group version among others.
type place struct {
	schema.GroupVersion
	group, version int32 // priorities
}

// placeOf returns the default position of a group version of this server, unless its APIService has another.
// registered means that there should be one.
func placeOf(gv schema.GroupVersion, v *versionRows) (p place, registered bool) {
	local := apiregistration.Local(gv)
	switch {
	case v.resources[0].Reserved:
		return place{gv, lastPriority, 1}, false
	case v.custom():
		local = apiregistration.OfDefinition(gv)
	case local == nil:
		return place{gv, ownPriority, 1}, false
	}
	return place{gv, local.Spec.GroupPriorityMinimum, local.Spec.VersionPriority}, true
}

// registered returns the group versions of APIServices, and those without one: the group of APIServices, and custom
// resources whose APIService does not exist yet.
func registered(groups []groupRows, services []Service) []place {
	if len(services) == 0 {
		return served(groups)
	}
	list, named := make([]place, 0, len(services)+1), make(map[schema.GroupVersion]bool, len(services))
	for _, s := range services {
		gv := schema.GroupVersion{Group: s.Group, Version: s.Version}
		named[gv] = true
		list = append(list, place{gv, s.GroupPriority, s.VersionPriority})
	}
	for _, g := range groups {
		for _, v := range g.versions {
			gv := schema.GroupVersion{Group: g.name, Version: v.name}
			p, has := placeOf(gv, &v)
			if !named[gv] && (!has || v.custom()) {
				list = append(list, p)
			}
		}
	}
	return list
}

// served returns the group versions of the catalogue.
func served(groups []groupRows) (list []place) {
	for _, g := range groups {
		for _, v := range g.versions {
			p, _ := placeOf(schema.GroupVersion{Group: g.name, Version: v.name}, &v)
			list = append(list, p)
		}
	}
	return list
}

// custom reports whether a version has custom resources.
func (v *versionRows) custom() bool { return !v.resources[0].FixedRoutes() }

// ordered sorts group versions into groups: the group with the highest priority of any of its versions first,
// in it the version with the highest priority, then the most mature one. Groups of the same priority are in
// the order of name, applied to their places.
func ordered(list []place, name func(place) string) [][]place {
	type named struct {
		place
		name string
	}
	all := make([]*named, len(list))
	for i, p := range list {
		all[i] = &named{p, name(p)}
	}
	slices.SortStableFunc(all, func(a, b *named) int {
		return cmp.Or(cmp.Compare(b.group, a.group), cmp.Compare(a.name, b.name))
	})
	var groups [][]place
	at := make(map[string]int)
	for _, p := range all {
		i, ok := at[p.Group]
		if !ok {
			i = len(groups)
			at[p.Group] = i
			groups = append(groups, nil)
		}
		groups[i] = append(groups[i], p.place)
	}
	versions := make(map[string]struct{})
	for _, p := range list {
		versions[p.Version] = struct{}{}
	}
	ranks := kinds.VersionRanks(slices.Collect(maps.Keys(versions)))
	for _, g := range groups {
		slices.SortStableFunc(g, func(a, b place) int {
			return cmp.Or(cmp.Compare(b.version, a.version), cmp.Compare(ranks[b.Version], ranks[a.Version]))
		})
	}
	return groups
}

// byService orders groups as the names of their APIServices, byGroup as their own.
func byService(p place) string { return p.Version + "." + p.Group }
func byGroup(p place) string   { return p.Group }

// aggregatedGroups returns the groups of the aggregated document: those of this server, at their default
// positions, and those of other servers at the positions in their APIServices.
func (d *documents) aggregatedGroups(groups []groupRows, services []Service) (all []aggregatedGroup) {
	partOf := make(map[schema.GroupVersion]*part)
	var list []place
	for _, s := range services {
		if s.Discovery == nil {
			continue
		}
		gv := schema.GroupVersion{Group: s.Group, Version: s.Version}
		partOf[gv] = elsewhere(*s.Discovery)
		list = append(list, place{gv, s.GroupPriority, s.VersionPriority})
	}
	for _, g := range groups {
		for _, v := range g.versions {
			gv := schema.GroupVersion{Group: g.name, Version: v.name}
			if _, elsewhere := partOf[gv]; elsewhere {
				continue
			}
			partOf[gv] = d.parts[gv]
			p, _ := placeOf(gv, &v)
			list = append(list, p)
		}
	}
	for _, g := range ordered(list, byGroup) {
		of := aggregatedGroup{name: g[0].Group}
		for _, p := range g {
			of.versions = append(of.versions, partOf[p.GroupVersion])
		}
		all = append(all, of)
	}
	return all
}

// groupsOf returns the core group, and all others.
func groupsOf(resources []*kinds.Resource) (core, named []groupRows) {
	for _, g := range grouped(resources) {
		if g.name == "" {
			core = append(core, g)
		} else {
			named = append(named, g)
		}
	}
	return core, named
}
