package remote

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// unknown returns an error if discovery lacks the resources of a group and version, unless an aggregated server
// serves it. Without access to APIServices it leaves out the groups in usuallyAggregated.
func (k *collector) unknown(elsewhere map[string]string) error {
	for _, gv := range k.out.Discovered.Stale {
		group, _, _ := strings.Cut(gv, "/")
		switch {
		case elsewhere[gv] != "":
		case k.blind && usuallyAggregated[group]:
			k.leave(gv, "does not answer just now, and is usually kept by another API server")
		default:
			return fmt.Errorf("the server does not know what %s serves just now", gv)
		}
	}
	return nil
}

// notServed reports custom resources that are defined and missing in discovery: they are new, or not served.
func (k *collector) notServed() {
	for _, name := range slices.Sorted(maps.Keys(k.storage)) {
		plural, group, _ := strings.Cut(name, ".")
		r := Resource{Group: group, Name: plural}
		if _, served := k.out.Discovered.Find(group, plural); !served && (k.o.Want == nil || k.o.Want(r)) {
			k.leave(Printable(name), "it has a definition, but was not served when reading began: nothing of it was read")
		}
	}
}

// elsewhere returns the groups and versions of aggregated servers, with the names of their APIServices.
func (k *collector) elsewhere(ctx context.Context) (map[string]string, error) {
	served := map[string]string{}
	r, ok := k.out.Discovered.Find(servicesGroup, "apiservices")
	if !ok {
		return served, nil
	}
	_, err := k.c.List(ctx, r, each(func(o Object) error {
		var s struct {
			Spec struct {
				Group   string          `json:"group"`
				Version string          `json:"version"`
				Service json.RawMessage `json:"service"`
			} `json:"spec"`
		}
		if err := json.Unmarshal(o.JSON, &s); err != nil {
			return &MalformedError{Path: r.Path(""), What: "an APIService", Err: err}
		}
		if err := checkName(r.Path(""), s.Spec.Group, s.Spec.Version); err != nil {
			return err
		}
		if len(s.Spec.Service) > 0 && string(s.Spec.Service) != "null" {
			served[Resource{Group: s.Spec.Group, Version: s.Spec.Version}.APIVersion()] = o.Name
		}
		return tooMany(r, len(served))
	}))
	if Is(err, http.StatusForbidden) && k.o.SkipForbidden {
		k.blind = true
		return served, nil // and resource will report it
	}
	return served, k.named(r, err)
}

// tooMany returns an error if the collector remembers n objects of a resource and n exceeds maxResources.
func tooMany(r Resource, n int) error {
	if n > maxResources {
		return &BoundError{Path: r.Path(""), Bound: fmt.Sprintf("there are more than %d of them", maxResources)}
	}
	return nil
}

// definitions collects the definitions of custom resources and remembers their storage versions.
func (k *collector) definitions(ctx context.Context, r Resource) error {
	learn := func(o Object) error {
		var d apiextensionsv1.CustomResourceDefinition
		if err := json.Unmarshal(o.JSON, &d); err != nil {
			return &MalformedError{Path: r.Path(""), What: "a definition", Err: err}
		}
		for _, v := range d.Spec.Versions {
			if !v.Storage {
				continue
			}
			if err := checkName(r.Path(""), d.Spec.Group, d.Spec.Names.Plural, v.Name); err != nil {
				return err
			}
			k.storage[ResourceName(d.Spec.Group, d.Spec.Names.Plural)] = v.Name
		}
		return tooMany(r, len(k.storage))
	}
	if k.o.Want != nil && !k.o.Want(r) {
		_, err := k.c.List(ctx, r, each(learn))
		return k.named(r, err)
	}
	r.Version = k.version(r)
	return k.resource(ctx, r, learn)
}

// gone reports whether a resource is no longer served because its definition was deleted during the collection.
func (k *collector) gone(ctx context.Context, r Resource) (bool, error) {
	now, err := k.c.Discover(ctx)
	if err != nil {
		return false, fmt.Errorf("discovering again what the server serves: %w", err)
	}
	if _, there := now.Find(r.Group, r.Name); there {
		return false, nil
	}
	k.leave(r.String(), "it was served when reading began, and is no longer: its definition was deleted meanwhile")
	return true, nil
}
