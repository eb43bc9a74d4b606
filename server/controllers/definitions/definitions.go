// Package definitions serves CustomResourceDefinitions: it accepts their names and establishes them, keeps
// their APIServices, and removes the objects of those that are being deleted.
package definitions

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/definitions"
)

// pollEvery is the interval of checking definitions that wait for the deletion of their objects.
const pollEvery = 500 * time.Millisecond

// Controller accepts the names of CustomResourceDefinitions and establishes them, keeps their APIServices,
// and removes the objects of those that are being deleted.
type Controller struct {
	reconcile.Base
	// Own reports whether a resource is built in: no definition has its name, or the objects that are stored by it. nil: none is.
	Own    func(group, plural string) bool
	Reader *definitions.Reader // shared with other readers of definitions; nil: the controller decodes them itself

	known    map[string]*definition // by name
	services services
	write    writer
}

// Run works until ctx ends.
func (d *Controller) Run(ctx context.Context) error {
	d.services, d.write = services{d.Base}, writer{d.Base}
	var tidying reconcile.Key // others are groups
	l := &reconcile.Loop{Base: d.Base, Keys: []reconcile.Key{tidying}, Longest: time.Second, Failure: "cannot keep the definitions of a group"}
	l.Begin = func(context.Context) error {
		d.known = map[string]*definition{}
		return nil
	}
	touch := func(group string) {
		if group != "" {
			l.Queue.Add(reconcile.Key{Name: group}, 0)
		}
	}
	l.Sources = []reconcile.Source{{
		Storage: Storage,
		Seen: func(item *cache.Item) {
			touch(d.groupOf(item.Name))
			d.take(item)
			touch(d.groupOf(item.Name))
		},
		Gone: func(item *cache.Item) {
			touch(d.groupOf(item.Name))
			delete(d.known, item.Name)
		},
	}, {
		Storage: servicesStorage,
		Changed: func(delivery cache.Delivery) { // another client may have changed the APIService of a definition
			if _, group, _ := strings.Cut(delivery.Item().Name, "."); len(d.of(group)) > 0 {
				touch(group)
			}
		},
	}}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key == tidying {
			groups := map[string]bool{}
			for _, one := range d.known {
				groups[one.crd.Spec.Group] = true
			}
			return r, d.services.tidy(ctx, groups)
		}
		return d.reconcile(ctx, key.Name)
	}
	return l.Run(ctx)
}

// groupOf returns the group of a definition that is known; "": none of that name is.
func (d *Controller) groupOf(name string) string {
	if one := d.known[name]; one != nil {
		return one.crd.Spec.Group
	}
	return ""
}

// take takes the present state of a definition. It ignores an unreadable one, even if its bytes can be
// decoded: they might have another name, whose objects would be deleted.
func (d *Controller) take(item *cache.Item) {
	var crd *apiextensionsv1.CustomResourceDefinition
	err := item.Err()
	if err == nil {
		crd, _, err = d.Reader.Read(d.Cache.JSON(), item)
	}
	if err != nil {
		d.Log.Warn("a definition cannot be read", "name", item.Name, "error", err)
		delete(d.known, item.Name)
		return
	}
	d.known[item.Name] = &definition{crd, item.Created()}
}

// of lists the definitions of a group, oldest first.
func (d *Controller) of(group string) []*definition {
	var out []*definition
	for _, one := range d.known {
		if one.crd.Spec.Group == group {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b *definition) int {
		if a.created != b.created {
			return int(min(max(a.created-b.created, -1), 1))
		}
		return strings.Compare(a.crd.Name, b.crd.Name)
	})
	return out
}

// reconcile does the work for the definitions of a group.
func (d *Controller) reconcile(ctx context.Context, group string) (r reconcile.Result, err error) {
	list := d.of(group)
	var failed []error
	for _, one := range list {
		if one.crd.DeletionTimestamp != nil {
			r.After = pollEvery
		}
		if err := d.settle(ctx, one, list); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.crd.Name, err))
		}
	}
	return r, errors.Join(append(failed, d.services.keep(ctx, group, list))...)
}

// shadows reports whether a definition requests the name of a built-in resource, or has it in its
// status.
func (d *Controller) shadows(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Own != nil && (d.Own(crd.Spec.Group, crd.Spec.Names.Plural) || d.Own(crd.Spec.Group, crd.Status.AcceptedNames.Plural))
}

// settle updates a definition's status, or continues its deletion; list is all definitions of its group.
func (d *Controller) settle(ctx context.Context, one *definition, list []*definition) error {
	crd := one.crd.DeepCopy()
	if crd.DeletionTimestamp != nil && len(crd.Finalizers) == 0 {
		return d.write.remove(ctx, crd)
	}
	if d.shadows(crd) {
		refuseNames(crd)
	} else {
		acceptNames(crd, list)
	}
	approve(crd)
	if crd.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return d.write.end(ctx, one, crd)
	}
	return d.write.status(ctx, one, crd)
}
