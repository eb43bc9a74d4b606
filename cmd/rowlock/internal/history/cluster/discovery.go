package cluster

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	apidiscoveryv2 "k8s.io/api/apidiscovery/v2"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/remote"
)

// acceptDiscovery is the Accept header of aggregated discovery.
const acceptDiscovery = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"

// Resource is a resource as discovery shows it, with the names by which people may call it.
type Resource struct {
	remote.Resource
	Singular string
	Short    []string
}

// Shown returns the type as kubectl writes it before a slash: deployment.apps.
func (r *Resource) Shown() string {
	return remote.ResourceName(r.Group, cmp.Or(r.Singular, strings.ToLower(r.Kind)))
}

// Path returns the path of a collection, or of an object, or of a subresource.
func (r *Resource) Path(namespace, name string, sub ...string) string {
	if !r.Namespaced {
		namespace = ""
	}
	if name == "" {
		return r.Resource.Path(namespace)
	}
	return r.Resource.Path(namespace, append([]string{name}, sub...)...)
}

// Resources are the resources of a server, each in its preferred version, in the order of discovery.
type Resources struct {
	preferred []*Resource
	all       []*Resource
	// Stale are the groups whose aggregated server does not answer.
	Stale []string
}

// Discover reads all resources in two requests.
func (c *Client) Discover(ctx context.Context) (*Resources, error) {
	all := &Resources{}
	for _, path := range []string{"/api", "/apis"} {
		var groups apidiscoveryv2.APIGroupDiscoveryList
		if err := c.Do(ctx, Request{Path: path, Accept: acceptDiscovery}, &groups); err != nil {
			return nil, fmt.Errorf("discovery: %w", err)
		}
		if groups.Kind != "APIGroupDiscoveryList" {
			return nil, fmt.Errorf("discovery: the server answers %s with a %q, not with the aggregated document", path, groups.Kind)
		}
		for i := range groups.Items {
			all.add(&groups.Items[i])
		}
	}
	return all, nil
}

// areNames reports whether all names are valid names of resources, and so safe in paths and on a terminal. Other
// resources are ignored: no argument can name them.
func areNames(names ...string) bool {
	for _, name := range names {
		other := func(r rune) bool {
			return r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z')
		}
		if len(name) > 253 || name == "." || name == ".." || strings.ContainsFunc(name, other) {
			return false
		}
	}
	return true
}

func (all *Resources) add(group *apidiscoveryv2.APIGroupDiscovery) {
	seen := map[string]bool{}
	for _, version := range group.Versions {
		if version.Freshness == apidiscoveryv2.DiscoveryFreshnessStale {
			all.Stale = append(all.Stale, group.Name+"/"+version.Version)
		}
		for _, found := range version.Resources {
			r := &Resource{Singular: found.SingularResource, Short: found.ShortNames, Resource: remote.Resource{
				Group: group.Name, Version: version.Version, Name: found.Resource,
				Namespaced: found.Scope == apidiscoveryv2.ScopeNamespace, Verbs: found.Verbs,
			}}
			if found.ResponseKind != nil {
				r.Kind = found.ResponseKind.Kind
			}
			if !areNames(r.Group, r.Version, r.Name, r.Singular, r.Kind) {
				continue
			}
			for _, sub := range found.Subresources {
				r.Status = r.Status || sub.Subresource == "status"
			}
			all.all = append(all.all, r)
			if !seen[r.Name] {
				seen[r.Name] = true
				all.preferred = append(all.preferred, r)
			}
		}
	}
}

// Preferred returns all resources, each once.
func (all *Resources) Preferred() []*Resource { return all.preferred }

// Find resolves a word: a plural, singular, kind or short name, optionally followed by .GROUP or .VERSION.GROUP.
// Full names win over short names; groups are searched in the order of discovery.
func (all *Resources) Find(word string) (*Resource, error) {
	name, rest, qualified := strings.Cut(word, ".")
	if qualified {
		version, group, _ := strings.Cut(rest, ".")
		for _, r := range all.all {
			if r.Version == version && r.Group == group && r.named(name) {
				return r, nil
			}
		}
	} else {
		rest = ""
	}
	for _, match := range []func(*Resource) bool{
		func(r *Resource) bool { return r.named(name) },
		func(r *Resource) bool { return slices.Contains(r.Short, name) },
	} {
		for _, r := range all.preferred {
			if (!qualified || r.Group == rest) && match(r) {
				return r, nil
			}
		}
	}
	return nil, fmt.Errorf("the server does not have a resource type %q", word)
}

// Kind returns the resource of a kind, as in an owner reference, or nil.
func (all *Resources) Kind(group, kind string) *Resource {
	for _, r := range all.preferred {
		if r.Group == group && r.Kind == kind && r.Can("get") {
			return r
		}
	}
	return nil
}

// named compares a word with the full names. Kinds match in any case.
func (r *Resource) named(name string) bool {
	lower := strings.ToLower(name)
	return lower == r.Name || lower == r.Singular || lower == strings.ToLower(r.Kind)
}
