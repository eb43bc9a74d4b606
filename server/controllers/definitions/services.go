package definitions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

const (
	servicesStorage = "apiservices.apiregistration.k8s.io"
	servicesPath    = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// services are the APIServices of definitions.
type services struct {
	reconcile.Base
	names map[string]map[string]bool // of all APIServices, by group
}

// seen takes the name of an APIService that exists, and returns its group.
func (d *services) seen(name string) string {
	_, group, _ := strings.Cut(name, ".")
	if d.names[group] == nil {
		d.names[group] = map[string]bool{}
	}
	d.names[group][name] = true
	return group
}

// gone takes the name of an APIService that was deleted, and returns its group.
func (d *services) gone(name string) string {
	_, group, _ := strings.Cut(name, ".")
	if delete(d.names[group], name); len(d.names[group]) == 0 {
		delete(d.names, group)
	}
	return group
}

// keep keeps those of the definitions of a group, and removes those of versions that no definition serves.
func (d *services) keep(ctx context.Context, group string, list []*definition) error {
	wanted := map[string]*apiregistrationv1.APIService{}
	for _, one := range list {
		for i := range one.crd.Spec.Versions {
			if v := &one.crd.Spec.Versions[i]; v.Served {
				service := apiregistration.OfDefinition(schema.GroupVersion{Group: group, Version: v.Name})
				wanted[service.Name] = service
			}
		}
	}
	var failed []error
	for _, service := range wanted {
		failed = append(failed, d.serve(ctx, service))
	}
	for name := range d.names[group] {
		if wanted[name] == nil && managed(d.Cache.Get(servicesStorage, "", name)) {
			failed = append(failed, d.withdraw(ctx, name))
		}
	}
	return errors.Join(failed...)
}

// managed reports whether an APIService is one that follows definitions. nil is none.
func managed(item *cache.Item) bool {
	return item != nil && item.Err() == nil && item.Meta().Labels[apiregistration.AutoManaged] == apiregistration.Always
}

// serve creates the APIService of a version, or restores it. It does not change one whose management label a client has
// removed.
func (d *services) serve(ctx context.Context, wanted *apiregistrationv1.APIService) error {
	item := d.Cache.Get(servicesStorage, "", wanted.Name)
	if item == nil {
		return note(d.API.Call(ctx, agent, http.MethodPost, servicesPath, reconcile.JSON, wanted, nil), wanted.Name)
	}
	if !managed(item) {
		return nil
	}
	have := &apiregistrationv1.APIService{}
	if _, err := d.Cache.JSON().Decode(item.JSON(), have, codecs.Ignore); err != nil || equality.Semantic.DeepEqual(have.Spec, wanted.Spec) {
		return nil
	}
	have.Spec = wanted.Spec
	return note(d.API.Call(ctx, agent, http.MethodPut, servicesPath+"/"+wanted.Name, reconcile.JSON, have, nil), wanted.Name)
}

// withdraw deletes the APIService of a version that is not served any more.
func (d *services) withdraw(ctx context.Context, name string) error {
	return note(d.API.Call(ctx, agent, http.MethodDelete, servicesPath+"/"+name, "", nil, nil), name)
}

func note(err error, name string) error {
	if err == nil || reconcile.Superseded(err) {
		return nil
	}
	return fmt.Errorf("APIService %s: %w", name, err)
}
