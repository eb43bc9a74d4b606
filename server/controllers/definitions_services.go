package controllers

import (
	"context"
	"net/http"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/kinds/apiregistration"
)

const (
	apiServices     = "apiservices.apiregistration.k8s.io"
	apiServicesPath = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// services keeps the APIServices of what the definitions of a group serve.
func (d *Definitions) services(ctx context.Context, group string, list []*definition) bool {
	wanted := map[string]*apiregistrationv1.APIService{}
	for _, one := range list {
		for i := range one.crd.Spec.Versions {
			if v := &one.crd.Spec.Versions[i]; v.Served {
				service := apiregistration.OfDefinition(schema.GroupVersion{Group: group, Version: v.Name})
				wanted[service.Name] = service
			}
		}
	}
	ok := true
	for _, service := range wanted {
		ok = d.serve(ctx, service) && ok
	}
	of := func(of string) bool { return of == group }
	for _, name := range d.kept(of, func(s *apiregistrationv1.APIService) bool { return s.Spec.Group == group && wanted[s.Name] == nil }) {
		ok = d.note(d.API.Call(ctx, definitionsAgent, http.MethodDelete, apiServicesPath+"/"+name, "", nil, nil), name) && ok
	}
	return ok
}

// serve makes the APIService of a version, or makes it again what it was made as. One that
// somebody took the label off is left alone.
func (d *Definitions) serve(ctx context.Context, wanted *apiregistrationv1.APIService) bool {
	item := d.Cache.Get(apiServices, "", wanted.Name)
	if item == nil {
		return d.note(d.API.Call(ctx, definitionsAgent, http.MethodPost, apiServicesPath, "application/json", wanted, nil), wanted.Name)
	}
	if item.Corrupt != nil || item.Meta().Labels[apiregistration.AutoManaged] != apiregistration.Always {
		return true
	}
	have := &apiregistrationv1.APIService{}
	if _, err := d.Cache.JSON().Decode(item.JSON(), have, codecs.Ignore); err != nil || equality.Semantic.DeepEqual(have.Spec, wanted.Spec) {
		return true
	}
	have.Spec = wanted.Spec
	err := d.API.Call(ctx, definitionsAgent, http.MethodPut, apiServicesPath+"/"+wanted.Name, "application/json", have, nil)
	return ignoreGone(err) == nil || d.note(err, wanted.Name)
}

// restore looks again at the APIServices of a group with definitions, after somebody
// changed one.
func (d *Definitions) restore(ctx context.Context, batch []cache.Delivery) bool {
	groups := map[string]bool{}
	for _, delivery := range batch {
		_, group, _ := strings.Cut(delivery.Item().Name, ".")
		groups[group] = true
	}
	ok := true
	for group := range groups {
		if list := d.of(group); len(list) > 0 {
			d.Queue.Add(1)
			ok = d.Queue.Work(func() bool { return d.services(ctx, group, list) }) && ok
		}
	}
	return ok
}

// tidy removes the APIServices of groups that no definition has any more.
func (d *Definitions) tidy(ctx context.Context) bool {
	groups := map[string]bool{}
	for _, one := range d.known {
		groups[one.crd.Spec.Group] = true
	}
	ok := true
	all := func(string) bool { return true }
	for _, name := range d.kept(all, func(s *apiregistrationv1.APIService) bool { return !groups[s.Spec.Group] }) {
		ok = d.note(d.API.Call(ctx, definitionsAgent, http.MethodDelete, apiServicesPath+"/"+name, "", nil, nil), name) && ok
	}
	return ok
}

// kept names those of the APIServices of definitions that which says yes to. Only those are read
// that are named for a group that is one of those asked for: there can be thousands.
func (d *Definitions) kept(of func(group string) bool, which func(*apiregistrationv1.APIService) bool) (out []string) {
	d.Cache.Snapshot(apiServices).Ascend("", "", "", func(item *cache.Item) bool {
		if _, group, _ := strings.Cut(item.Name, "."); !of(group) {
			return true
		}
		if item.Corrupt != nil || item.Meta().Labels[apiregistration.AutoManaged] != apiregistration.Always {
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

func (d *Definitions) note(err error, name string) bool {
	if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsNotFound(err) {
		return true
	}
	d.Log.Warn("keeping the APIService of a definition", "name", name, "error", err)
	return false
}
