package remote

import (
	"context"
	"encoding/json"
	"errors"
	"mime"
	"net/http"
	"slices"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is something that a server serves, in one version of those that it is
// served in.
type Resource struct {
	Group, Version string
	Name           string // plural: "deployments"
	Kind           string
	Namespaced     bool
	Verbs          []string
	Status         bool     // there is a subresource for the status
	Served         []string // all versions, the preferred one first
}

// String is how people name it: "pods", "deployments.apps".
func (r Resource) String() string { return ResourceName(r.Group, r.Name) }

// ResourceName is how people name a resource: "pods", "deployments.apps".
func ResourceName(group, name string) string {
	if group == "" {
		return name
	}
	return name + "." + group
}

// APIVersion is what objects of it say.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Path is where it is served: all of it, or what is in a namespace.
func (r Resource) Path(namespace string) string {
	p := "/apis/" + r.APIVersion()
	if r.Group == "" {
		p = "/api/" + r.Version
	}
	if namespace != "" {
		p += "/namespaces/" + namespace
	}
	return p + "/" + r.Name
}

// Can says whether the server knows a verb for it.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Discovered is what a server says that it serves.
type Discovered struct {
	Resources []Resource // in the server's order, each once, in the version that the server prefers
	// Stale are groups and versions, "metrics.k8s.io/v1beta1", of which the server does
	// not know what they serve, because who serves them does not answer.
	Stale []string
}

// Find is the resource of a group and a name; ok is false if it is not served.
func (d *Discovered) Find(group, name string) (Resource, bool) {
	i := slices.IndexFunc(d.Resources, func(r Resource) bool { return r.Group == group && r.Name == name })
	if i < 0 {
		return Resource{}, false
	}
	return d.Resources[i], true
}

const (
	// mostDiscovery is how large a document of discovery may be.
	mostDiscovery = 64 << 20
	// mostResources is how many resources a server may have.
	mostResources = 50_000
	aggregated    = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)

// Discover asks a server what it serves: by aggregated discovery, or where it has none
// (before release 1.27) by a request for each group and version.
func (c *Client) Discover(ctx context.Context) (*Discovered, error) {
	d := &Discovered{}
	for _, root := range []string{"/api", "/apis"} {
		if err := c.root(ctx, root, d); err != nil {
			return nil, err
		}
	}
	if len(d.Resources) == 0 {
		return nil, &MalformedError{Path: "/apis", What: "it serves nothing"}
	}
	return d, nil
}

func (c *Client) root(ctx context.Context, path string, d *Discovered) error {
	a, err := c.open(ctx, Request{Method: http.MethodGet, Path: path, Accept: aggregated})
	if err != nil {
		return err
	}
	a.left = mostDiscovery
	data, err := a.all()
	a.Close()
	if err != nil {
		return err
	}
	_, params, _ := mime.ParseMediaType(a.Header.Get("Content-Type"))
	if params["as"] != "APIGroupDiscoveryList" {
		return c.plainly(ctx, path, data, d)
	}
	var list discoveryv2.APIGroupDiscoveryList // which v2beta1 looks like too
	if err := json.Unmarshal(data, &list); err != nil {
		return &MalformedError{Path: path, What: "discovery", Err: err}
	}
	for _, group := range list.Items {
		for _, v := range group.Versions {
			if v.Freshness == discoveryv2.DiscoveryFreshnessStale {
				d.Stale = append(d.Stale, Resource{Group: group.Name, Version: v.Version}.APIVersion())
			}
			for _, r := range v.Resources {
				one := Resource{
					Group: group.Name, Version: v.Version, Name: r.Resource, Namespaced: r.Scope == discoveryv2.ScopeNamespace, Verbs: r.Verbs,
					Status: slices.ContainsFunc(r.Subresources, func(s discoveryv2.APISubresourceDiscovery) bool { return s.Subresource == "status" }),
				}
				if r.ResponseKind != nil {
					one.Kind = r.ResponseKind.Kind
				}
				if err := d.add(path, one); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// plainly reads what servers without aggregated discovery answer.
func (c *Client) plainly(ctx context.Context, path string, data []byte, d *Discovered) error {
	type groupVersion struct{ group, version string }
	var all []groupVersion
	if path == "/api" {
		var core metav1.APIVersions
		if err := json.Unmarshal(data, &core); err != nil {
			return &MalformedError{Path: path, What: "versions", Err: err}
		}
		for _, v := range core.Versions {
			all = append(all, groupVersion{"", v})
		}
	} else {
		var groups metav1.APIGroupList
		if err := json.Unmarshal(data, &groups); err != nil {
			return &MalformedError{Path: path, What: "groups", Err: err}
		}
		for _, g := range groups.Groups {
			for _, v := range preferredFirst(g) {
				all = append(all, groupVersion{g.Name, v})
			}
		}
	}
	if len(all) > mostResources {
		return &BoundError{Path: path, Bound: "it serves too many groups and versions"}
	}
	for _, gv := range all {
		if err := checkName(path, gv.group, gv.version); err != nil {
			return err
		}
		if err := c.version(ctx, Resource{Group: gv.group, Version: gv.version}, d); err != nil {
			return err
		}
	}
	return nil
}

func preferredFirst(g metav1.APIGroup) []string {
	versions := []string{g.PreferredVersion.Version}
	for _, v := range g.Versions {
		if v.Version != g.PreferredVersion.Version {
			versions = append(versions, v.Version)
		}
	}
	if versions[0] == "" {
		return versions[1:]
	}
	return versions
}

// version reads one document of plain discovery.
func (c *Client) version(ctx context.Context, gv Resource, d *Discovered) error {
	path := "/apis/" + gv.APIVersion()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	data, err := c.read(ctx, Request{Method: http.MethodGet, Path: path}, mostDiscovery)
	var refused *StatusError
	if errors.As(err, &refused) && (refused.Code == http.StatusServiceUnavailable || refused.Code == http.StatusNotFound) {
		d.Stale = append(d.Stale, gv.APIVersion())
		return nil
	}
	if err != nil {
		return err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return &MalformedError{Path: path, What: "resources", Err: err}
	}
	has := func(name string) bool {
		return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == name })
	}
	for _, r := range list.APIResources {
		if slices.Contains([]byte(r.Name), '/') {
			continue // a subresource
		}
		one := Resource{Group: gv.Group, Version: gv.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced, Verbs: r.Verbs, Status: has(r.Name + "/status")}
		if err := d.add(path, one); err != nil {
			return err
		}
	}
	return nil
}

// add notes a resource, or one more version of it.
func (d *Discovered) add(path string, r Resource) error {
	if err := checkName(path, r.Group, r.Version, r.Name); err != nil {
		return err
	}
	if r.Name == "" || r.Version == "" {
		return &MalformedError{Path: path, What: "a resource without a name or a version"}
	}
	i := slices.IndexFunc(d.Resources, func(o Resource) bool { return o.Group == r.Group && o.Name == r.Name })
	if i >= 0 {
		if !slices.Contains(d.Resources[i].Served, r.Version) {
			d.Resources[i].Served = append(d.Resources[i].Served, r.Version)
		}
		return nil
	}
	if len(d.Resources) >= mostResources {
		return &BoundError{Path: path, Bound: "it serves too many resources"}
	}
	r.Served = []string{r.Version}
	d.Resources = append(d.Resources, r)
	return nil
}

// checkName refuses names that would be another path.
func checkName(path string, names ...string) error {
	for _, name := range names {
		for _, r := range name {
			if r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return &MalformedError{Path: path, What: "the name " + Printable(name)}
			}
		}
		if name == "." || name == ".." {
			return &MalformedError{Path: path, What: "the name " + name}
		}
	}
	return nil
}
