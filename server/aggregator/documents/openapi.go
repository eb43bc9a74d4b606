package documents

import (
	"context"
	stdjson "encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/schema"
)

// descriptions are the last OpenAPI documents of a server. They do not
// change.
type descriptions struct {
	about []*apiregistrationv1.APIService // that they were fetched for

	index     map[string]string // the hash of each document of version 3, by "apis/GROUP/VERSION"
	indexETag string
	converted map[string]*schema.Converted // those that this server makes of version 2; nil: the other has its own

	swagger     *schema.Swagger // nil: it has none
	swaggerETag string
}

// covers reports whether the documents have all versions that APIServices delegate to the server.
func (o *descriptions) covers(services []*apiregistrationv1.APIService) bool {
	have := map[string]bool{}
	for _, s := range o.about {
		have[s.Spec.Group+"/"+s.Spec.Version] = true
	}
	return !slices.ContainsFunc(services, func(s *apiregistrationv1.APIService) bool { return !have[s.Spec.Group+"/"+s.Spec.Version] })
}

// describe fetches the OpenAPI documents of a server: the list of those of version 3, and the whole document
// of version 2. If one cannot be fetched, the last one stays. It returns last itself if nothing has changed.
func (d *Documents) describe(ctx context.Context, services []*apiregistrationv1.APIService, last *descriptions) (*descriptions, error) {
	now := &descriptions{about: services}
	if last != nil {
		kept := *last
		kept.about = services
		now = &kept
		if !last.covers(services) || !now.covers(last.about) { // the tags of omitted parts
			now.indexETag, now.swaggerETag = "", ""
		}
	}
	changedSwagger, err2 := d.askSwagger(ctx, now)
	if errors.Is(err2, errUnreachable) {
		return last, err2
	}
	changedIndex, err3 := d.askIndex(ctx, now, changedSwagger)
	if last != nil && !changedSwagger && !changedIndex && last.covers(services) && now.covers(last.about) {
		return last, errors.Join(err2, err3)
	}
	return now, errors.Join(err2, err3)
}

// askSwagger brings the document of version 2.
func (d *Documents) askSwagger(ctx context.Context, o *descriptions) (changed bool, err error) {
	a, err := d.ask(ctx, o.about[0], serverQuery{who: describer, path: "/openapi/v2", accept: codecs.JSON, etag: o.swaggerETag, timeout: openAPITimeout, most: maxSwagger})
	switch {
	case err != nil:
		return false, err
	case a.code == http.StatusNotModified && o.swaggerETag != "", a.code == http.StatusNotFound:
		return false, nil
	case a.code != http.StatusOK:
		return false, fmt.Errorf("/openapi/v2 was answered with %d", a.code)
	}
	s, err := readSwagger(a.body, o.about)
	if err != nil {
		return false, fmt.Errorf("/openapi/v2: %w", err)
	}
	o.swagger, o.swaggerETag = s, a.etag
	return true, nil
}

// askIndex brings the list of documents of version 3, or makes the documents of version 2
// where the server has no such list.
func (d *Documents) askIndex(ctx context.Context, o *descriptions, changedSwagger bool) (changed bool, err error) {
	a, err := d.ask(ctx, o.about[0], serverQuery{who: describer, path: "/openapi/v3", accept: codecs.JSON, etag: o.indexETag, timeout: openAPITimeout, most: maxIndex})
	switch {
	case err != nil:
		return false, err
	case a.code == http.StatusNotModified && o.indexETag != "":
		return false, nil
	case a.code == http.StatusNotFound:
		if o.swagger == nil || o.converted != nil && !changedSwagger {
			return false, nil
		}
		o.indexETag = ""
		o.index, o.converted, err = convert(o.swagger, o.about, d.cfg.Clock)
		return err == nil, err
	case a.code != http.StatusOK:
		return false, fmt.Errorf("/openapi/v3 was answered with %d", a.code)
	}
	index, err := readIndex(a.body, o.about)
	if err != nil {
		return false, fmt.Errorf("/openapi/v3: %w", err)
	}
	o.index, o.indexETag, o.converted = index, a.etag, nil
	return true, nil
}

// readIndex selects the documents of the group versions that APIServices delegate to a server, and of their
// groups.
func readIndex(body []byte, services []*apiregistrationv1.APIService) (map[string]string, error) {
	if err := sound(body); err != nil {
		return nil, err
	}
	var list struct {
		Paths map[string]struct {
			URL string `json:"serverRelativeURL"`
		} `json:"paths"`
	}
	if err := stdjson.Unmarshal(body, &list); err != nil {
		return nil, err
	}
	index := map[string]string{}
	for _, s := range services {
		for _, key := range []string{"apis/" + s.Spec.Group, "apis/" + s.Spec.Group + "/" + s.Spec.Version} {
			if entry, ok := list.Paths[key]; ok {
				index[key] = hashIn(entry.URL)
			}
		}
	}
	return index, nil
}

// hashIn returns the hash in the URL of a document; "" where there is none.
func hashIn(text string) string {
	u, err := url.Parse(text)
	if err != nil {
		return ""
	}
	hash := u.Query().Get("hash")
	if len(hash) > maxETag {
		return ""
	}
	return hash
}

// OpenAPI3 returns the hashes of the documents of version 3 that other servers have, by their
// paths below /openapi/v3, and a number that rises when they change.
func (d *Documents) OpenAPI3() (map[string]string, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	all := map[string]string{}
	for _, s := range d.servers {
		if s.opened != nil {
			for key, hash := range s.opened.index {
				all[key] = hash
			}
		}
	}
	return all, d.openAPI
}

// OpenAPI2 returns the documents of version 2 that other servers have, in the order of the
// groups that they serve, with the same number as OpenAPI3.
func (d *Documents) OpenAPI2() ([]*schema.Swagger, uint64) {
	d.mu.Lock()
	defer d.mu.Unlock()
	// The number must not be newer than the documents: otherwise an incomplete result would count as complete
	// until another one changes.
	services := d.cfg.Services()
	var list []*schema.Swagger
	seen, kept := map[*server]bool{}, 0
	for _, g := range services.Groups() {
		for _, one := range g.Versions {
			if one.Spec.Service == nil {
				continue
			}
			s := d.servers[originOf(one)]
			if s == nil || seen[s] || s.opened == nil || s.opened.swagger == nil {
				continue
			}
			seen[s] = true
			if kept += s.opened.swagger.Size; kept <= maxKept {
				list = append(list, s.opened.swagger)
			}
		}
	}
	return list, d.openAPI
}

// ServeOpenAPI3 answers with a document of version 3 that OpenAPI3 names. The other server serves it to the
// client, and authorizes the client itself.
func (d *Documents) ServeOpenAPI3(w http.ResponseWriter, r *http.Request, key string) {
	s, made := d.describedBy(key)
	switch {
	case made != nil:
		made.ServeHTTP(w, r)
	case s != nil:
		d.cfg.Proxy(w, r, s)
	default:
		w.WriteHeader(http.StatusNotFound)
	}
}

// describedBy finds whose document it is, and the document if this server made it.
func (d *Documents) describedBy(key string) (*apiregistrationv1.APIService, *schema.Converted) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, s := range d.servers {
		if s.opened == nil {
			continue
		}
		if _, ok := s.opened.index[key]; !ok {
			continue
		}
		for _, one := range s.services {
			if name := "apis/" + one.Spec.Group; key == name || key == name+"/"+one.Spec.Version {
				return one, s.opened.converted[key]
			}
		}
	}
	return nil, nil
}

// readSwagger selects the paths of the group versions that APIServices delegate to a server, and the
// definitions and parameters to which they refer.
func readSwagger(body []byte, services []*apiregistrationv1.APIService) (*schema.Swagger, error) {
	if err := sound(body); err != nil {
		return nil, err
	}
	var prefixes []string
	for _, s := range services {
		prefixes = append(prefixes, "/apis/"+s.Spec.Group+"/"+s.Spec.Version+"/")
	}
	return schema.ReadSwagger(body, schema.SwaggerLimits{Values: maxValues, Paths: maxPaths}, func(path string) bool {
		return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(path+"/", prefix) })
	})
}
