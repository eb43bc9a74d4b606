// Package definitions serves CustomResourceDefinitions: it accepts their names and establishes them, keeps the
// APIServices of what they define, and removes the objects of those that are being deleted.
package definitions

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"strings"
	"time"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
	"github.com/rowlock/rowlock/server/definitions"
)

const (
	agent = "kube-apiserver" // field manager of what Controller writes
	// Storage is where CustomResourceDefinitions are.
	Storage         = "customresourcedefinitions.apiextensions.k8s.io"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"

	// pollEvery is how often definitions that wait for their objects' end are looked at.
	pollEvery = 500 * time.Millisecond
)

// Controller says of each CustomResourceDefinition whether its names are accepted and it is established, keeps the
// APIServices of what they define, and removes the objects of those that are being deleted.
type Controller struct {
	reconcile.Base
	// Own says that a resource is built in: no definition has its name, or the objects that are stored by it. nil: none is.
	Own    func(group, plural string) bool
	Reader *definitions.Reader // shared with others who follow definitions; nil: nobody else does

	known map[string]*definition // by name
}

// definition is one that was decoded.
type definition struct {
	crd     *apiextensionsv1.CustomResourceDefinition // without schemas; not to be changed
	created int64                                     // revision
}

// Run works until ctx ends.
func (d *Controller) Run(ctx context.Context) error {
	var tidying reconcile.Key // others are groups
	l := &reconcile.Loop{Base: d.Base, Keys: []reconcile.Key{tidying}, Longest: time.Second, Failure: "cannot keep the definitions of a group"}
	l.Begin = func(context.Context) error {
		d.known = map[string]*definition{}
		return nil
	}
	touch := func(group string) {
		if group != "" {
			l.Queue.Touch(reconcile.Key{Name: group}, 0)
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
		Changed: func(delivery cache.Delivery) { // somebody may have changed what definitions serve
			if _, group, _ := strings.Cut(delivery.Item().Name, "."); len(d.of(group)) > 0 {
				touch(group)
			}
		},
	}}
	l.Reconcile = func(ctx context.Context, key reconcile.Key) (r reconcile.Result, err error) {
		if key == tidying {
			return r, d.tidy(ctx)
		}
		return d.reconcile(ctx, key.Name)
	}
	return l.Run(ctx)
}

// groupOf is the group of a definition that is known; "": none of that name is.
func (d *Controller) groupOf(name string) string {
	if one := d.known[name]; one != nil {
		return one.crd.Spec.Group
	}
	return ""
}

// take takes a definition as it is now. One that cannot be read is none, though its bytes may decode: as that of another
// name, whose objects would be deleted.
func (d *Controller) take(item *cache.Item) {
	var crd *apiextensionsv1.CustomResourceDefinition
	err := item.Corrupt
	if err == nil {
		crd, _, err = d.Reader.Read(d.Cache.JSON(), item)
	}
	if err != nil {
		d.Log.Warn("a definition cannot be read", "name", item.Name, "error", err)
		delete(d.known, item.Name)
		return
	}
	d.known[item.Name] = &definition{crd, item.Created}
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

// reconcile does what there is to do for the definitions of a group.
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
	return r, errors.Join(append(failed, d.services(ctx, group, list))...)
}

// shadows says that a definition asks for the name of a built-in resource, or was given
// it by whoever wrote its status.
func (d *Controller) shadows(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Own != nil && (d.Own(crd.Spec.Group, crd.Spec.Names.Plural) || d.Own(crd.Spec.Group, crd.Status.AcceptedNames.Plural))
}

// settle writes down what is to be said of a definition now; list is all of its group.
func (d *Controller) settle(ctx context.Context, one *definition, list []*definition) error {
	crd := one.crd.DeepCopy()
	if crd.DeletionTimestamp != nil && len(crd.Finalizers) == 0 {
		return d.remove(ctx, crd)
	}
	if d.shadows(crd) {
		refuseNames(crd)
	} else {
		acceptNames(crd, list)
	}
	approve(crd)
	if crd.DeletionTimestamp != nil && apihelpers.CRDHasFinalizer(crd, apiextensionsv1.CustomResourceCleanupFinalizer) {
		return d.end(ctx, one, crd)
	}
	return d.write(ctx, one, crd)
}

// write stores the status of crd, a changed copy of one, if it differs.
func (d *Controller) write(ctx context.Context, one *definition, crd *apiextensionsv1.CustomResourceDefinition) error {
	if equality.Semantic.DeepEqual(one.crd.Status, crd.Status) {
		return nil
	}
	change, err := statusChange(&one.crd.Status, &crd.Status)
	if err != nil {
		return err
	}
	// Nothing but what differs is sent, which takes the schemas along as they are, and nothing but
	// metadata is read: schemas are large.
	written := &metav1.PartialObjectMetadata{}
	err = d.API.Call(ctx, agent, http.MethodPatch, definitionsPath+crd.Name+"/status", reconcile.MergePatch, map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   change,
	}, written)
	if err == nil {
		crd.ObjectMeta = written.ObjectMeta
		one.crd = crd // others of its group must know before it comes back
	}
	return reconcile.Current(err) // what it is now is on its way here
}

// statusChange is the merge patch between two states of a status.
func statusChange(was, now *apiextensionsv1.CustomResourceDefinitionStatus) (map[string]any, error) {
	var trees [2]map[string]any
	for i, status := range []*apiextensionsv1.CustomResourceDefinitionStatus{was, now} {
		text, err := json.Marshal(status)
		if err == nil {
			err = json.Unmarshal(text, &trees[i])
		}
		if err != nil {
			return nil, err
		}
	}
	return mergeBetween(trees[0], trees[1]), nil
}

// mergeBetween is what a merge patch has to say to make a tree another one.
func mergeBetween(was, now map[string]any) map[string]any {
	patch := map[string]any{}
	for name := range was {
		if _, still := now[name]; !still {
			patch[name] = nil
		}
	}
	for name, value := range now {
		before, had := was[name]
		inner, tree := value.(map[string]any)
		if wasTree, both := before.(map[string]any); tree && both {
			value = mergeBetween(wasTree, inner)
		}
		if !had || !reflect.DeepEqual(before, now[name]) {
			patch[name] = value
		}
	}
	return patch
}
