package quota

import (
	"errors"
	"fmt"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/status"
)

// Limited names resources that clients may use only under a quota that covers them.
type Limited struct {
	APIGroup string `json:"apiGroup"`
	Resource string `json:"resource"`
	// MatchContains are parts of the names of the used resources.
	MatchContains []string `json:"matchContains"`
	// MatchScopes are scopes that need a separate quota.
	MatchScopes []corev1.ScopedResourceSelectorRequirement `json:"matchScopes"`
}

// ParseLimited reads the plugin's part of an admission configuration file; nil data
// limits nothing.
func ParseLimited(data []byte) ([]Limited, error) {
	if data == nil {
		return nil, nil
	}
	var c struct {
		APIVersion       string    `json:"apiVersion"`
		Kind             string    `json:"kind"`
		LimitedResources []Limited `json:"limitedResources"`
	}
	if err := yaml.UnmarshalStrict(data, &c); err != nil {
		return nil, err
	}
	switch (schema.GroupVersionKind{Version: c.APIVersion, Kind: c.Kind}) {
	case schema.GroupVersionKind{Version: "apiserver.config.k8s.io/v1", Kind: "ResourceQuotaConfiguration"},
		schema.GroupVersionKind{Version: "resourcequota.admission.k8s.io/v1beta1", Kind: "Configuration"},
		schema.GroupVersionKind{Version: "resourcequota.admission.k8s.io/v1alpha1", Kind: "Configuration"}:
	default:
		return nil, fmt.Errorf("%s %s is not ResourceQuotaConfiguration of apiserver.config.k8s.io/v1", c.APIVersion, c.Kind)
	}
	for i, l := range c.LimitedResources {
		if l.Resource == "" {
			return nil, fmt.Errorf("limitedResources[%d].resource: %w", i, errors.New("must be set"))
		}
	}
	return c.LimitedResources, nil
}

// limits are the limited resources that one resource is among.
type limits []Limited

func limitedOf(all []Limited, r schema.GroupResource) limits {
	var of limits
	for _, l := range all {
		if l.APIGroup == r.Group && l.Resource == r.Resource {
			of = append(of, l)
		}
	}
	return of
}

// check refuses the use of limited resources without a quota for them.
func (l limits) check(a *admission.Attributes, m *meter, counts map[corev1.ResourceName]bool, scopes map[corev1.ResourceQuotaScope]bool, all []Limited) error {
	var bare []corev1.ResourceName
	if len(l) > 0 {
		for name, q := range m.use(a.Object) {
			if q.Sign() > 0 && l.contain(string(name)) && !counts[name] {
				bare = append(bare, name)
			}
		}
	}
	if len(bare) > 0 {
		return refuse(a, "insufficient quota to consume: %s", joined(bare))
	}
	var outside []corev1.ScopedResourceSelectorRequirement
	for _, lim := range all {
		in, err := m.within(lim.MatchScopes, a.Object)
		if err != nil {
			return nil // a scope that cannot be understood limits nothing
		}
		for _, s := range in {
			if !scopes[s.ScopeName] {
				outside = append(outside, s)
			}
		}
	}
	if len(outside) > 0 {
		return status.Plain(fmt.Sprintf("insufficient quota to match these scopes: %v", outside))
	}
	return nil
}

func (l limits) contain(name string) bool {
	for _, lim := range l {
		for _, part := range lim.MatchContains {
			if strings.Contains(name, part) {
				return true
			}
		}
	}
	return false
}
