package definitions

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
type services struct{ reconcile.Base }

// keep keeps those of the definitions of a group.
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
	of := func(of string) bool { return of == group }
	for _, name := range d.kept(of, func(s *apiregistrationv1.APIService) bool { return s.Spec.Group == group && wanted[s.Name] == nil }) {
		failed = append(failed, d.withdraw(ctx, name))
	}
	return errors.Join(failed...)
}

// serve creates the APIService of a version, or restores it. It does not change one whose management label a client has
// removed.
func (d *services) serve(ctx context.Context, wanted *apiregistrationv1.APIService) error {
	item := d.Cache.Get(servicesStorage, "", wanted.Name)
	if item == nil {
		return note(d.API.Call(ctx, agent, http.MethodPost, servicesPath, reconcile.JSON, wanted, nil), wanted.Name)
	}
	if item.Err() != nil || item.Meta().Labels[apiregistration.AutoManaged] != apiregistration.Always {
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

// tidy removes the APIServices of groups that no definition has any more.
func (d *services) tidy(ctx context.Context, groups map[string]bool) error {
	var failed []error
	all := func(string) bool { return true }
	for _, name := range d.kept(all, func(s *apiregistrationv1.APIService) bool { return !groups[s.Spec.Group] }) {
		failed = append(failed, d.withdraw(ctx, name))
	}
	return errors.Join(failed...)
}

// kept returns the names of the APIServices of definitions that which selects. It reads only those of the groups: there
// can be thousands.
func (d *services) kept(of func(group string) bool, which func(*apiregistrationv1.APIService) bool) (out []string) {
	d.Cache.Snapshot(servicesStorage).Ascend("", "", "", func(item *cache.Item) bool {
		if _, group, _ := strings.Cut(item.Name, "."); !of(group) {
			return true
		}
		if item.Err() != nil || item.Meta().Labels[apiregistration.AutoManaged] != apiregistration.Always {
			return true
		}
		s := &apiregistrationv1.APIService{ObjectMeta: metav1.ObjectMeta{Name: item.Name}}
		if _, err := d.Cache.JSON().Decode(item.JSON(), s, codecs.Ignore); err == nil && which(s) {
			out = append(out, item.Name)
		}
		return true
	})
	return out
}

func note(err error, name string) error {
	if err == nil || reconcile.Superseded(err) {
		return nil
	}
	return fmt.Errorf("APIService %s: %w", name, err)
}
