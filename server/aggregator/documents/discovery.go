package documents

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	discoveryv2 "k8s.io/api/apidiscovery/v2"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/codecs/json"
	"github.com/rowlock/rowlock/server/aggregator"
)

// discoveryResult has the resources of a server from its last discovery documents.
type discoveryResult struct {
	versions map[schema.GroupVersion]*discoveryv2.APIVersionDiscovery
	etag     string
	lists    bool // it knows nothing but a list for each version

	err    error // nothing could be fetched
	failed map[schema.GroupVersion]error
}

// bad returns the reason why the server's documents could not be fetched, or nil. The same reasons have the same text, which is logged once.
func (s *discoveryResult) bad() error {
	named := make(map[string]error, len(s.failed))
	for gv, err := range s.failed {
		named[gv.String()] = err
	}
	errs := []error{s.err}
	for _, gv := range slices.Sorted(maps.Keys(named)) {
		errs = append(errs, fmt.Errorf("%s: %w", gv, named[gv]))
	}
	return errors.Join(errs...)
}

// everything fetches all groups in one document, in whichever form the server supports.
const everything = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList"

// resources asks a server for its resources, version by version if it has no document of all.
func (d *Documents) resources(ctx context.Context, services []*apiregistrationv1.APIService, last *discoveryResult) *discoveryResult {
	q := serverQuery{who: discoverer, path: "/apis", accept: everything, timeout: discoveryTimeout, most: maxDiscovery}
	if last != nil && last.err == nil && !last.lists {
		q.etag = last.etag
	}
	a, err := d.ask(ctx, services[0], q)
	switch {
	case err != nil:
		return &discoveryResult{err: err}
	case a.code == http.StatusNotModified && q.etag != "":
		return last
	case a.code == http.StatusOK && isAggregated(a.contentType):
		versions, err := readAggregated(a.body)
		return &discoveryResult{versions: versions, etag: a.etag, err: err}
	}
	s := &discoveryResult{lists: true, versions: map[schema.GroupVersion]*discoveryv2.APIVersionDiscovery{}, failed: map[schema.GroupVersion]error{}}
	for _, service := range services {
		gv := aggregator.GroupVersion(service)
		v, err := d.list(ctx, service, gv)
		if errors.Is(err, errUnreachable) {
			return &discoveryResult{err: err} // the others would only take as long
		}
		if err != nil {
			s.failed[gv] = err
		} else {
			s.versions[gv] = v
		}
	}
	return s
}

// list fetches the resources of one version.
func (d *Documents) list(ctx context.Context, service *apiregistrationv1.APIService, gv schema.GroupVersion) (*discoveryv2.APIVersionDiscovery, error) {
	path := "/apis/" + gv.Group + "/" + gv.Version
	a, err := d.ask(ctx, service, serverQuery{who: discoverer, path: path, accept: codecs.JSON, timeout: discoveryTimeout, most: maxDiscovery})
	if err != nil {
		return nil, err
	}
	if a.code != http.StatusOK {
		return nil, fmt.Errorf("%s was answered with %d", path, a.code)
	}
	list := &metav1.APIResourceList{}
	if err := decode(a.body, "APIResourceList", list); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	resources, err := fromList(list.APIResources)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return &discoveryv2.APIVersionDiscovery{Version: gv.Version, Resources: resources, Freshness: discoveryv2.DiscoveryFreshnessCurrent}, nil
}

// decode reads a document of another server: it is weighed before it becomes objects.
func decode(body []byte, kind string, into runtime.Object) error {
	if err := sound(body); err != nil {
		return err
	}
	codec := json.Codec{}
	weight, err := codec.Weigh(body, into)
	if err != nil {
		return err
	}
	if weight > maxWeight {
		return fmt.Errorf("the answer is too large: it would become %d bytes", weight)
	}
	if gvk, err := codec.Kind(body); err != nil || gvk.Kind != kind {
		return fmt.Errorf("the answer is no %s", kind)
	}
	_, err = codec.Unmarshal(body, into, codecs.Ignore)
	return err
}

func isAggregated(contentType string) bool {
	_, p, err := mime.ParseMediaType(contentType)
	return err == nil && p["g"] == "apidiscovery.k8s.io" && p["as"] == "APIGroupDiscoveryList" && (p["v"] == "v2" || p["v"] == "v2beta1")
}

// readAggregated reads the document of all groups. Its two versions have the same fields.
func readAggregated(body []byte) (map[schema.GroupVersion]*discoveryv2.APIVersionDiscovery, error) {
	list := &discoveryv2.APIGroupDiscoveryList{}
	if err := decode(body, "APIGroupDiscoveryList", list); err != nil {
		return nil, err
	}
	versions := make(map[schema.GroupVersion]*discoveryv2.APIVersionDiscovery)
	for i := range list.Items {
		g := &list.Items[i]
		for j := range g.Versions {
			v := &g.Versions[j]
			if err := complete(v); err != nil {
				return nil, fmt.Errorf("%s/%s: %w", g.Name, v.Version, err)
			}
			versions[schema.GroupVersion{Group: g.Name, Version: v.Version}] = v
		}
	}
	return versions, nil
}

// complete counts the resources of a version, and gives each a kind, which some clients expect. The version
// is current because the server answered.
func complete(v *discoveryv2.APIVersionDiscovery) error {
	count := len(v.Resources)
	for i := range v.Resources {
		r := &v.Resources[i]
		if r.ResponseKind == nil {
			r.ResponseKind = &metav1.GroupVersionKind{}
		}
		count += len(r.Subresources)
		for j := range r.Subresources {
			if s := &r.Subresources[j]; s.ResponseKind == nil {
				s.ResponseKind = &metav1.GroupVersionKind{}
			}
		}
	}
	v.Freshness = discoveryv2.DiscoveryFreshnessCurrent
	return few(count)
}

func few(resources int) error {
	if resources > maxResources {
		return fmt.Errorf("there are more than %d resources", maxResources)
	}
	return nil
}

// fromList makes entries of the aggregated document of a version's list of resources.
func fromList(list []metav1.APIResource) ([]discoveryv2.APIResourceDiscovery, error) {
	if err := few(len(list)); err != nil {
		return nil, err
	}
	var out []discoveryv2.APIResourceDiscovery
	at := map[string]int{}
	for i := range list {
		r := &list[i]
		if strings.Contains(r.Name, "/") {
			continue
		}
		at[r.Name] = len(out)
		out = append(out, discoveryv2.APIResourceDiscovery{
			Resource: r.Name, SingularResource: r.SingularName, ResponseKind: kindOf(r), Scope: scopeOf(r),
			Verbs: r.Verbs, ShortNames: r.ShortNames, Categories: r.Categories,
		})
	}
	for i := range list {
		r := &list[i]
		parent, name, sub := strings.Cut(r.Name, "/")
		if !sub {
			continue
		}
		n, ok := at[parent]
		if !ok {
			n, at[parent] = len(out), len(out)
			out = append(out, discoveryv2.APIResourceDiscovery{Resource: parent, ResponseKind: &metav1.GroupVersionKind{}, Scope: scopeOf(r)})
		}
		if out[n].Scope != scopeOf(r) {
			return nil, fmt.Errorf("%s is not of the scope of %s", r.Name, parent)
		}
		out[n].Subresources = append(out[n].Subresources, discoveryv2.APISubresourceDiscovery{Subresource: name, ResponseKind: kindOf(r), Verbs: r.Verbs})
	}
	return out, nil
}

func kindOf(r *metav1.APIResource) *metav1.GroupVersionKind {
	if r.Kind == "" && strings.Contains(r.Name, "/") {
		return &metav1.GroupVersionKind{}
	}
	return &metav1.GroupVersionKind{Group: r.Group, Version: r.Version, Kind: r.Kind}
}

func scopeOf(r *metav1.APIResource) discoveryv2.ResourceScope {
	if r.Namespaced {
		return discoveryv2.ScopeNamespace
	}
	return discoveryv2.ScopeCluster
}
