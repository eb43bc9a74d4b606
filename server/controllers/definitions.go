package controllers

import (
	"context"
	"encoding/json"
	"log/slog"
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
	following "github.com/rowlock/rowlock/server/definitions"
)

const (
	definitionsAgent = "kube-apiserver" // field manager of what this controller writes
	definitions      = "customresourcedefinitions.apiextensions.k8s.io"
	definitionsPath  = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/"
)

// Definitions says of each CustomResourceDefinition whether its names are accepted and
// it is established, keeps the APIServices of what they define, and removes the
// objects of those that are being deleted.
type Definitions struct {
	API   API
	Cache *cache.Cache
	// Own says that a resource is built in: no definition has its name, or the objects
	// that are stored by it. nil: none is.
	Own      func(group, plural string) bool
	Reader   *following.Reader // shared with others who follow definitions; nil: nobody else does
	Log      *slog.Logger
	Interval time.Duration // how often definitions that wait for their objects' end are looked at; 0: half a second
	Queue    *Queue        // nil: the work is not measured

	known map[string]*definition // by name
}

// definition is one that was decoded.
type definition struct {
	crd     *apiextensionsv1.CustomResourceDefinition // without schemas; not to be changed
	created int64                                     // revision
}

// Run works until ctx ends.
func (d *Definitions) Run(ctx context.Context) error {
	if d.Interval == 0 {
		d.Interval = 500 * time.Millisecond
	}
	return again(ctx, 0, func(ctx context.Context) bool {
		d.follow(ctx)
		return false
	})
}

// follow looks at all definitions, then at those that change. It returns when something
// failed, or the watcher was cut off, so that Run begins again.
func (d *Definitions) follow(ctx context.Context) {
	w, snapshot := d.Cache.WatchNow(definitions, cache.Scope{})
	defer w.Stop()
	services, _ := d.Cache.WatchNow(apiServices, cache.Scope{})
	defer services.Stop()
	d.known = map[string]*definition{}
	changed := map[string]bool{} // groups
	snapshot.Ascend("", "", "", func(item *cache.Item) bool {
		d.take(item, changed)
		return true
	})
	ok := d.tidy(ctx)
	var batch []cache.Delivery
	for {
		ok = d.work(ctx, changed) && ok
		if !ok || ctx.Err() != nil {
			return
		}
		clear(changed)
		select {
		case <-w.Ready():
		case <-services.Ready():
			var err error
			if batch, _, err = services.Take(ctx, batch); err != nil {
				return
			}
			awaitReaders(ctx, d.Cache, batch)
			ok = d.restore(ctx, batch)
			continue
		case <-d.later():
			for _, one := range d.known {
				if one.crd.DeletionTimestamp != nil {
					changed[one.crd.Spec.Group] = true
				}
			}
			continue
		case <-ctx.Done():
			return
		}
		var err error
		if batch, _, err = w.Take(ctx, batch); err != nil {
			return
		}
		for _, delivery := range batch {
			if delivery.Type == cache.Deleted {
				d.forget(delivery.Item().Name, changed)
			} else {
				d.take(delivery.Item(), changed)
			}
		}
	}
}

// later is when to look at definitions that are being deleted; nil where none is.
func (d *Definitions) later() <-chan time.Time {
	for _, one := range d.known {
		if one.crd.DeletionTimestamp != nil {
			return time.After(d.Interval)
		}
	}
	return nil
}

// take takes a definition as it is now. One that cannot be read is none, though its bytes
// may decode: as that of another name, whose objects would be deleted.
func (d *Definitions) take(item *cache.Item, changed map[string]bool) {
	var crd *apiextensionsv1.CustomResourceDefinition
	err := item.Corrupt
	if err == nil {
		crd, _, err = d.Reader.Read(d.Cache.JSON(), item)
	}
	if err != nil {
		d.Log.Warn("a definition cannot be read", "name", item.Name, "error", err)
		d.forget(item.Name, changed)
		return
	}
	d.known[item.Name] = &definition{crd, item.Created}
	changed[crd.Spec.Group] = true
}

func (d *Definitions) forget(name string, changed map[string]bool) {
	if old := d.known[name]; old != nil {
		changed[old.crd.Spec.Group] = true
		delete(d.known, name)
	}
}

// of lists the definitions of a group, oldest first.
func (d *Definitions) of(group string) []*definition {
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

// work does what there is to do for the definitions of groups.
func (d *Definitions) work(ctx context.Context, groups map[string]bool) bool {
	ok := true
	for group := range groups {
		list := d.of(group)
		d.Queue.Add(len(list) + 1)
		for _, one := range list {
			ok = d.Queue.Work(func() bool { return d.settle(ctx, one, list) }) && ok
		}
		ok = d.Queue.Work(func() bool { return d.services(ctx, group, list) }) && ok
	}
	d.Queue.Clear()
	return ok
}

// shadows says that a definition asks for the name of a built-in resource, or was given
// it by whoever wrote its status.
func (d *Definitions) shadows(crd *apiextensionsv1.CustomResourceDefinition) bool {
	return d.Own != nil && (d.Own(crd.Spec.Group, crd.Spec.Names.Plural) || d.Own(crd.Spec.Group, crd.Status.AcceptedNames.Plural))
}

// settle writes down what is to be said of a definition now; list is all of its group.
func (d *Definitions) settle(ctx context.Context, one *definition, list []*definition) bool {
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
func (d *Definitions) write(ctx context.Context, one *definition, crd *apiextensionsv1.CustomResourceDefinition) bool {
	if equality.Semantic.DeepEqual(one.crd.Status, crd.Status) {
		return true
	}
	change, err := statusChange(&one.crd.Status, &crd.Status)
	if err != nil {
		d.Log.Warn("writing the status of a definition", "name", crd.Name, "error", err)
		return false
	}
	// Nothing but what differs is sent, which takes the schemas along as they are, and nothing but
	// metadata is read: schemas are large.
	written := &metav1.PartialObjectMetadata{}
	err = d.API.Call(ctx, definitionsAgent, http.MethodPatch, definitionsPath+crd.Name+"/status", "application/merge-patch+json", map[string]any{
		"metadata": map[string]any{"resourceVersion": crd.ResourceVersion},
		"status":   change,
	}, written)
	if err == nil {
		crd.ObjectMeta = written.ObjectMeta
		one.crd = crd // others of its group must know before it comes back
		return true
	}
	if ignoreGone(err) == nil {
		return true // what it is now is on its way here
	}
	d.Log.Warn("writing the status of a definition", "name", crd.Name, "error", err)
	return false
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
