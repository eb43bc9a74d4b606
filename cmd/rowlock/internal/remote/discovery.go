package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Resource is a resource of a server in one of its versions.
type Resource struct {
	Group, Version string
	Name           string // plural: "deployments"
	Kind           string
	Namespaced     bool
	Verbs          []string
	Status         bool     // there is a subresource for the status
	Served         []string // all versions, the preferred one first
}

// String returns the name of the resource: "pods", "deployments.apps".
func (r Resource) String() string { return ResourceName(r.Group, r.Name) }

// ResourceName returns the name of a resource: "pods", "deployments.apps".
func ResourceName(group, name string) string {
	if group == "" {
		return name
	}
	return name + "." + group
}

// APIVersion returns the apiVersion of its objects.
func (r Resource) APIVersion() string {
	if r.Group == "" {
		return r.Version
	}
	return r.Group + "/" + r.Version
}

// Path returns the path of all objects, of those of a namespace, or of one object.
func (r Resource) Path(namespace string, name ...string) string {
	p := "/apis/" + r.APIVersion()
	if r.Group == "" {
		p = "/api/" + r.Version
	}
	if namespace != "" {
		p += "/namespaces/" + url.PathEscape(namespace)
	}
	p += "/" + r.Name
	for _, n := range name {
		p += "/" + url.PathEscape(n)
	}
	return p
}

// Can reports whether the server supports a verb for it.
func (r Resource) Can(verb string) bool { return slices.Contains(r.Verbs, verb) }

// Discovered is the result of discovery.
type Discovered struct {
	Resources []Resource // in the server's order, each once, in the version that the server prefers
	// Stale are groups and versions, "metrics.k8s.io/v1beta1", with unknown resources, because their server
	// does not answer.
	Stale []string

	places map[[2]string]int // in Resources, by group and name
	left   int64             // bytes of documents that are still read
}

// Find returns the resource of a group and a name; ok is false if it is not served.
func (d *Discovered) Find(group, name string) (Resource, bool) {
	i, ok := d.places[[2]string{group, name}]
	if !ok {
		return Resource{}, false
	}
	return d.Resources[i], true
}

const (
	// maxDiscovery limits the total bytes of discovery documents.
	maxDiscovery = 64 << 20
	// maxResources bounds the resources of a server, and its groups and versions with unknown resources.
	maxResources = 50_000
	// maxServed is in how many versions a resource may be served.
	maxServed = 100
	// maxName limits the length of a group, a version, a resource or a kind.
	maxName    = 253
	aggregated = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList,application/json"
)

// Discover reads the resources of a server: by aggregated discovery, or before release 1.27 by a request for
// each group and version.
func (c *Client) Discover(ctx context.Context) (*Discovered, error) {
	d := &Discovered{places: map[[2]string]int{}, left: maxDiscovery}
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
	data, header, err := c.document(ctx, path, aggregated, d)
	if err != nil {
		return err
	}
	_, params, _ := mime.ParseMediaType(header.Get("Content-Type"))
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
				if err := d.stale(path, Resource{Group: group.Name, Version: v.Version}); err != nil {
					return err
				}
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

// document reads one discovery document. The size of all of them together is bounded.
func (c *Client) document(ctx context.Context, path, accept string, d *Discovered) ([]byte, http.Header, error) {
	a, err := c.open(ctx, Request{Method: http.MethodGet, Path: path, Accept: accept})
	if err != nil {
		return nil, nil, err
	}
	defer a.Close()
	a.left = d.left
	data, err := a.all()
	d.left -= int64(len(data))
	return data, a.Header, err
}

// plainly reads the answers of servers without aggregated discovery.
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
	if len(all) > maxResources {
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

// version reads one document of unaggregated discovery.
func (c *Client) version(ctx context.Context, gv Resource, d *Discovered) error {
	path := "/apis/" + gv.APIVersion()
	if gv.Group == "" {
		path = "/api/" + gv.Version
	}
	data, _, err := c.document(ctx, path, "", d)
	if Is(err, http.StatusServiceUnavailable) || Is(err, http.StatusNotFound) {
		return d.stale(path, gv)
	}
	if err != nil {
		return err
	}
	var list metav1.APIResourceList
	if err := json.Unmarshal(data, &list); err != nil {
		return &MalformedError{Path: path, What: "resources", Err: err}
	}
	has := map[string]bool{}
	for _, r := range list.APIResources {
		has[r.Name] = true
	}
	for _, r := range list.APIResources {
		if strings.Contains(r.Name, "/") {
			continue // a subresource
		}
		one := Resource{Group: gv.Group, Version: gv.Version, Name: r.Name, Kind: r.Kind, Namespaced: r.Namespaced, Verbs: r.Verbs, Status: has[r.Name+"/status"]}
		if err := d.add(path, one); err != nil {
			return err
		}
	}
	return nil
}

// add adds a resource, or another version of it.
func (d *Discovered) add(path string, r Resource) error {
	if err := checkName(path, r.Group, r.Version, r.Name, r.Kind); err != nil {
		return err
	}
	if r.Name == "" || r.Version == "" {
		return &MalformedError{Path: path, What: "a resource without a name or a version"}
	}
	if i, ok := d.places[[2]string{r.Group, r.Name}]; ok {
		first := &d.Resources[i]
		if slices.Contains(first.Served, r.Version) {
			return nil
		}
		if first.Served = append(first.Served, r.Version); len(first.Served) > maxServed {
			return &BoundError{Path: path, Bound: fmt.Sprintf("%s is served in more than %d versions", r, maxServed)}
		}
		return nil
	}
	if len(d.Resources) >= maxResources {
		return &BoundError{Path: path, Bound: "it serves too many resources"}
	}
	r.Served = []string{r.Version}
	d.places[[2]string{r.Group, r.Name}] = len(d.Resources)
	d.Resources = append(d.Resources, r)
	return nil
}

// stale adds a group and version whose resources are unknown.
func (d *Discovered) stale(path string, gv Resource) error {
	if err := checkName(path, gv.Group, gv.Version); err != nil {
		return err
	}
	if len(d.Stale) >= maxResources {
		return &BoundError{Path: path, Bound: "it serves too many groups and versions"}
	}
	d.Stale = append(d.Stale, gv.APIVersion())
	return nil
}

// checkName refuses names that would change a path.
func checkName(path string, names ...string) error {
	for _, name := range names {
		for _, r := range name {
			if r != '-' && r != '.' && (r < '0' || r > '9') && (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') {
				return &MalformedError{Path: path, What: "the name " + Printable(name)}
			}
		}
		if name == "." || name == ".." || len(name) > maxName {
			return &MalformedError{Path: path, What: "the name " + Printable(name)}
		}
	}
	return nil
}
