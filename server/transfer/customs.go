package transfer

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/sqlstore"
)

// maxCustoms bounds how many custom resources, and versions of one, are kept in mind: more
// than any cluster has.
const (
	maxCustoms  = 20_000
	maxVersions = 100
)

// customs are the custom resources of a source. The order of keys may put definitions after their objects, so both are
// compared at the end.
type customs struct {
	definitions map[string]*apiextensionsv1.CustomResourceDefinition // by resource; only the needed part of the spec
	objects     map[string]*metCustom
}

// metCustom is the record of the objects of one resource.
type metCustom struct {
	namespaced, cluster int64
	versions            map[string]int64
}

func (c *customs) defined(d *apiextensionsv1.CustomResourceDefinition) {
	if len(c.definitions) >= maxCustoms {
		return
	}
	known := &apiextensionsv1.CustomResourceDefinition{}
	known.Spec.Scope = d.Spec.Scope
	for _, v := range d.Spec.Versions {
		known.Spec.Versions = append(known.Spec.Versions, apiextensionsv1.CustomResourceDefinitionVersion{Name: v.Name})
	}
	c.definitions[d.Spec.Names.Plural+"."+d.Spec.Group] = known
}

func (c *customs) met(key sqlstore.Key, version string) error {
	m := c.objects[key.Resource]
	if m == nil {
		if len(c.objects) >= maxCustoms {
			return fmt.Errorf("it is of one more custom resource than the %d that are read", maxCustoms)
		}
		m = &metCustom{versions: map[string]int64{}}
		c.objects[key.Resource] = m
	}
	if key.Namespace != "" {
		m.namespaced++
	} else {
		m.cluster++
	}
	if _, known := m.versions[version]; !known && len(m.versions) >= maxVersions {
		return fmt.Errorf("it is of one more version than the %d that are read", maxVersions)
	}
	m.versions[version]++
	return nil
}

// warnings name custom resources that do not fit their definitions. They are transferred all the same: the
// definition may be corrected.
func (c *customs) warnings() (list []string) {
	warn := func(format string, args ...any) { list = append(list, fmt.Sprintf(format, args...)) }
	for _, resource := range slices.Sorted(maps.Keys(c.objects)) {
		m, d := c.objects[resource], c.definitions[resource]
		if d == nil {
			warn("%s: %d objects have no definition in the source: they are not served before there is one", resource, m.namespaced+m.cluster)
			continue
		}
		namespaced := d.Spec.Scope == apiextensionsv1.NamespaceScoped
		if wrong := m.cluster; namespaced && wrong > 0 {
			warn("%s: %d objects are in no namespace, unlike the definition", resource, wrong)
		}
		if wrong := m.namespaced; !namespaced && wrong > 0 {
			warn("%s: %d objects are in a namespace, unlike the definition", resource, wrong)
		}
		for _, version := range slices.Sorted(maps.Keys(m.versions)) {
			if !slices.ContainsFunc(d.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == version }) {
				warn("%s: %d objects are of version %s, which the definition does not have (%s)", resource, m.versions[version], version, names(d))
			}
		}
	}
	return list
}

func names(d *apiextensionsv1.CustomResourceDefinition) string {
	var all []string
	for _, v := range d.Spec.Versions {
		all = append(all, v.Name)
	}
	return strings.Join(all, ", ")
}
