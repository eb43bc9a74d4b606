package discovery

import (
	"cmp"
	"crypto/sha256"
	"encoding/base64"
	"slices"
	"time"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	codecjson "github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/release"
)

// documents describe one state of the catalogue.
type documents struct {
	generation, serviceGeneration uint64

	at   time.Time     // when they were made
	took time.Duration // to make them

	groups   map[string]*document // "apps"
	versions map[schema.GroupVersion]*document
	list     *document // /apis
	custom   map[string]bool

	legacy, named *aggregated // the core group, and all others

	parts map[schema.GroupVersion]*part // of which all of this is made
}

// describe makes the documents of resources, which are in discovery order, and of APIServices. Without
// APIServices, all groups are those of resources. It takes the documents of versions that have not changed
// from last.
func describe(resources []*kinds.Resource, services []Service, hashes bool, last *documents) (*documents, error) {
	d := &documents{
		groups:   make(map[string]*document),
		versions: make(map[schema.GroupVersion]*document),
		custom:   make(map[string]bool),
		parts:    make(map[schema.GroupVersion]*part),
	}
	var v release.Version
	if len(resources) > 0 {
		v = resources[0].Release
	}
	codec := codecjson.New(codecjson.Settings{View: v.View()})
	core, named := groupsOf(resources)
	for _, g := range slices.Concat(core, named) {
		for _, v := range g.versions {
			gv := schema.GroupVersion{Group: g.name, Version: v.name}
			p := last.part(gv)
			if p == nil || !slices.Equal(p.resources, v.resources) {
				p = newPart(gv, v.resources, hashes)
			}
			d.parts[gv], d.versions[gv] = p, p.list
			d.custom[g.name] = v.custom()
		}
	}
	// A version without an APIService is served nevertheless, and so is its document.
	for _, g := range ordered(served(named), byService) {
		d.add(group(g))
	}
	var groups []metav1.APIGroup
	for _, g := range ordered(registered(named, services), byService) {
		if g[0].Group != "" {
			groups = append(groups, group(g))
			d.add(group(g))
		}
	}
	d.list = newDocument(&metav1.APIGroupList{
		TypeMeta: metav1.TypeMeta{Kind: "APIGroupList", APIVersion: "v1"},
		Groups:   groups,
	})
	var legacy, others *aggregated
	if last != nil {
		legacy, others = last.legacy, last.named
	}
	var err error
	if d.legacy, err = newAggregated(d.aggregatedGroups(core, nil), codec, legacy); err != nil {
		return nil, err
	}
	if d.named, err = newAggregated(d.aggregatedGroups(named, services), codec, others); err != nil {
		return nil, err
	}
	return d, nil
}

// finish makes the documents that were requested of the previous state, so that requests need not make them.
func (d *documents) finish(last *documents) error {
	if err := d.named.ready(); err != nil || last == nil || !last.named.is.Load() {
		return err
	}
	return d.named.v2.asZipped(last.named.v2)
}

// part finds the documents of a version, or nil.
func (d *documents) part(gv schema.GroupVersion) *part {
	if d == nil {
		return nil
	}
	return d.parts[gv]
}

// add makes a group's document.
func (d *documents) add(g metav1.APIGroup) {
	g.TypeMeta = metav1.TypeMeta{Kind: "APIGroup", APIVersion: "v1"}
	d.groups[g.Name] = newDocument(&g)
}

// group lists the versions of a group, the preferred one first.
func group(versions []place) metav1.APIGroup {
	g := metav1.APIGroup{Name: versions[0].Group}
	for _, v := range versions {
		g.Versions = append(g.Versions, metav1.GroupVersionForDiscovery{GroupVersion: v.String(), Version: v.Version})
	}
	g.PreferredVersion = g.Versions[0]
	return g
}

type groupRows struct {
	name     string
	versions []versionRows
}

type versionRows struct {
	name      string
	resources []*kinds.Resource
}

// grouped sorts resources into groups and versions, each in the order of its
// first resource.
func grouped(resources []*kinds.Resource) []groupRows {
	var groups []groupRows
	groupAt := make(map[string]int)
	versionAt := make(map[schema.GroupVersion]int)
	for _, r := range resources {
		gi, ok := groupAt[r.Group]
		if !ok {
			gi = len(groups)
			groupAt[r.Group] = gi
			groups = append(groups, groupRows{name: r.Group})
		}
		g := &groups[gi]
		gv := schema.GroupVersion{Group: r.Group, Version: r.Version}
		vi, ok := versionAt[gv]
		if !ok {
			vi = len(g.versions)
			versionAt[gv] = vi
			g.versions = append(g.versions, versionRows{name: r.Version})
		}
		g.versions[vi].resources = append(g.versions[vi].resources, r)
	}
	return groups
}

// resourceList returns the document of one group version: each resource is followed by
// its subresources.
func resourceList(gv schema.GroupVersion, resources []*kinds.Resource, hashes bool) *metav1.APIResourceList {
	list := &metav1.APIResourceList{
		TypeMeta:     metav1.TypeMeta{Kind: "APIResourceList", APIVersion: "v1"},
		GroupVersion: gv.String(),
		APIResources: []metav1.APIResource{},
	}
	if gv.Group == "" {
		list.APIVersion = "" // the oldest clients take a document with one for another kind
	}
	for _, r := range resources {
		hash := ""
		if hashes {
			hash = storageVersionHash(r.Storage)
		}
		list.APIResources = append(list.APIResources, metav1.APIResource{
			Name: r.Plural, SingularName: r.Singular, Namespaced: r.Namespaced, Kind: r.Kind,
			Verbs: verbsOf(r), ShortNames: r.ShortNames, Categories: r.Categories,
			StorageVersionHash: hash,
		})
		for _, s := range r.Subresources {
			list.APIResources = append(list.APIResources, metav1.APIResource{
				Name: r.Plural + "/" + s.Name, Namespaced: r.Namespaced,
				Group: s.Group, Version: s.Version, Kind: s.Kind, Verbs: s.Verbs,
			})
		}
	}
	return list
}

// verbsOf returns the verbs in discovery. A resource that is being removed has no verbs that create objects, and
// a list that requires a selector is omitted.
func verbsOf(r *kinds.Resource) []string {
	if !r.Ending && !r.OfOne {
		return r.Verbs
	}
	return slices.DeleteFunc(slices.Clone(r.Verbs), func(verb string) bool {
		switch verb {
		case "create", "update", "patch":
			return r.Ending
		case "list":
			return r.OfOne
		}
		return false
	})
}

// storageVersionHash changes with the storage version of a resource, without revealing the version.
func storageVersionHash(s *kinds.Storage) string {
	if s == nil {
		return ""
	}
	version := cmp.Or(s.HashedVersion, s.GVK.Version)
	sum := sha256.Sum256([]byte(s.GVK.Group + "/" + version + "/" + s.GVK.Kind))
	return base64.StdEncoding.EncodeToString(sum[:8])
}

// entries returns the resources of one version as the aggregated document has them.
func entries(resources []*kinds.Resource) []discoveryv2.APIResourceDiscovery {
	list := make([]discoveryv2.APIResourceDiscovery, 0, len(resources))
	for _, r := range resources {
		e := discoveryv2.APIResourceDiscovery{
			Resource:         r.Plural,
			SingularResource: r.Singular,
			ResponseKind:     responseKind(r, "", "", r.Kind),
			Scope:            discoveryv2.ScopeCluster,
			Verbs:            verbsOf(r), ShortNames: r.ShortNames, Categories: r.Categories,
		}
		if r.Namespaced {
			e.Scope = discoveryv2.ScopeNamespace
		}
		for _, s := range r.Subresources {
			e.Subresources = append(e.Subresources, discoveryv2.APISubresourceDiscovery{
				Subresource: s.Name, ResponseKind: responseKind(r, s.Group, s.Version, s.Kind), Verbs: s.Verbs,
			})
		}
		list = append(list, e)
	}
	return list
}

// responseKind leaves group and version empty if they are those of the document; custom resources write them
// out.
func responseKind(r *kinds.Resource, group, version, kind string) *metav1.GroupVersionKind {
	if r.NamesVersions() && version == "" {
		group, version = r.Group, r.Version
	}
	return &metav1.GroupVersionKind{Group: group, Version: version, Kind: kind}
}
