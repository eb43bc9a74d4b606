// Package definitions serves CustomResourceDefinitions: it accepts their names and establishes them, keeps
// their APIServices, and removes the objects of those that are being deleted.
package definitions

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
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

	known    map[string]*definition            // by name
	groups   map[string]map[string]*definition // the same, by group and name
	services services
	write    writer
}

// Run works until ctx ends.
func (d *Controller) Run(ctx context.Context) error {
	d.write = writer{d.Base}
	l := &reconcile.Loop{Base: d.Base, Longest: time.Second, Failure: "cannot keep the definitions of a group"}
	l.Begin = func(context.Context) error {
		d.known, d.groups = map[string]*definition{}, map[string]map[string]*definition{}
		d.services = services{d.Base, map[string]map[string]bool{}}
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
			d.put(item.Name, nil)
		},
	}, {
		Storage: servicesStorage, // another client may have changed the APIService of a definition, or its group has none any more
		Seen:    func(item *cache.Item) { touch(d.services.seen(item.Name)) },
		Gone:    func(item *cache.Item) { touch(d.services.gone(item.Name)) },
	}}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (reconcile.Result, error) {
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
		d.put(item.Name, nil)
		return
	}
	d.put(item.Name, &definition{crd, item.Created()})
}

// put replaces the known state of a definition; nil: none is known.
func (d *Controller) put(name string, next *definition) {
	if old := d.known[name]; old != nil {
		group := old.crd.Spec.Group
		if delete(d.groups[group], name); len(d.groups[group]) == 0 {
			delete(d.groups, group)
		}
	}
	if next == nil {
		delete(d.known, name)
		return
	}
	d.known[name] = next
	group := d.groups[next.crd.Spec.Group]
	if group == nil {
		group = map[string]*definition{}
		d.groups[next.crd.Spec.Group] = group
	}
	group[name] = next
}

// of lists the definitions of a group, oldest first.
func (d *Controller) of(group string) []*definition {
	return slices.SortedFunc(maps.Values(d.groups[group]), func(a, b *definition) int {
		return cmp.Or(cmp.Compare(a.created, b.created), strings.Compare(a.crd.Name, b.crd.Name))
	})
}

// reconcile does the work for the definitions of a group. Clients determine their number: all are compared with the accepted names,
// which are collected once.
func (d *Controller) reconcile(ctx context.Context, group string) (r reconcile.Result, err error) {
	list := d.of(group)
	all := acceptedNames(list)
	var failed []error
	for _, one := range list {
		if one.crd.DeletionTimestamp != nil {
			r.After = pollEvery
		}
		before := one.crd
		if err := d.settle(ctx, one, all); err != nil {
			failed = append(failed, fmt.Errorf("%s: %w", one.crd.Name, err))
		}
		all.add(before, -1)
		all.add(one.crd, 1)
	}
	return r, errors.Join(append(failed, d.services.keep(ctx, group, list))...)
}

// shadows reports whether a definition requests the name of a built-in resource, or has it in its
// status.
func (d *Controller) shadows(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Own != nil && (d.Own(crd.Spec.Group, crd.Spec.Names.Plural) || d.Own(crd.Spec.Group, crd.Status.AcceptedNames.Plural))
}

// settle updates a definition's status, or continues its deletion; all are the accepted names of its group.
func (d *Controller) settle(ctx context.Context, one *definition, all names) error {
	crd := one.crd.DeepCopy()
	if crd.DeletionTimestamp != nil && len(crd.Finalizers) == 0 {
		return d.write.remove(ctx, crd)
	}
	if d.shadows(crd) {
		refuseNames(crd)
	} else {
		acceptNames(crd, all)
	}
	approve(crd)
	if crd.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return d.write.end(ctx, one, crd)
	}
	return d.write.status(ctx, one, crd)
}
