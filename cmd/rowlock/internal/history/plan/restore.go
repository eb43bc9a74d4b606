package plan

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// Restore plans the return of objects to their state at a revision.
type Restore struct {
	Finder
	At         int64
	Namespace  string // "": all
	Types      []*cluster.Resource
	Named      bool             // the user named Types, or Targets
	Targets    []cluster.Target // instead of Types
	Labels     labels.Selector  // of objects, then or now; nil: all
	Prune      bool             // delete objects that did not exist then
	Controlled bool             // restore objects of controllers, too
}

// passing are resources that the system writes all the time.
var passing = []string{"events", "events.events.k8s.io", "leases.coordination.k8s.io", "endpoints", "endpointslices.discovery.k8s.io"}

// Everything returns the types that a namespace's restore covers if the user names none.
func Everything(all *cluster.Resources) []*cluster.Resource {
	var types []*cluster.Resource
	for _, r := range all.Preferred() {
		if r.Namespaced && r.Can("list") && r.Can("create") && r.Can("update") && !slices.Contains(passing, r.String()) {
			types = append(types, r)
		}
	}
	return types
}

// Plan compares the past with the present.
func (r *Restore) Plan(ctx context.Context, p *Plan) error {
	if len(r.Targets) > 0 {
		for _, t := range r.Targets {
			if err := r.compare(ctx, p, t.Resource, revisions.Selection{Namespace: t.Namespace, Name: t.Name}); err != nil {
				return err
			}
		}
	} else if err := r.types(ctx, p); err != nil {
		return err
	}
	if err := r.namespaces(ctx, p, r.At); err != nil {
		return err
	}
	p.order()
	for _, s := range p.Steps {
		if s.Action == Create || s.Action == Change {
			if err := r.settle(ctx, p, s); err != nil {
				return err
			}
		}
	}
	return nil
}

// types plans each resource. Resources whose history is shorter are left out and named in the plan; it is an error
// if none reaches back far enough.
func (r *Restore) types(ctx context.Context, p *Plan) error {
	var expired error
	reached := false
	for _, resource := range r.Types {
		namespace := r.Namespace
		if !resource.Namespaced {
			namespace = ""
		}
		err := r.compare(ctx, p, resource, revisions.Selection{Namespace: namespace})
		switch {
		case err == nil:
			reached = true
			continue
		case r.Named || !revisions.IsSkipped(err):
			return err
		case apierrors.IsResourceExpired(err):
			expired = err
		}
		p.Notes = append(p.Notes, fmt.Sprintf("%s are left out: %v.", resource.String(), err))
	}
	if !reached {
		return expired
	}
	return nil
}

// compare plans the objects of one resource.
func (r *Restore) compare(ctx context.Context, p *Plan, resource *cluster.Resource, s revisions.Selection) error {
	then := map[cluster.Target]Object{}
	held, found := 0, false
	past := s
	past.At = r.At
	err := revisions.Each(ctx, r.Client, resource, past, func(obj Object) error {
		if held += size(obj); held > maxBytes {
			return fmt.Errorf("the %s of then are more than %d MiB: name objects or a selector", resource.String(), maxBytes>>20)
		}
		then[targetOf(resource, obj)], found = obj, true
		return nil
	})
	if err != nil {
		return err
	}
	err = revisions.Each(ctx, r.Client, resource, s, func(live Object) error {
		t := targetOf(resource, live)
		was := then[t]
		found = true
		delete(then, t)
		switch {
		case !r.selects(was) && !r.selects(live):
			return nil
		case was == nil:
			return r.since(p, t, live)
		}
		return r.both(p, t, was, live)
	})
	if err != nil {
		return err
	}
	if s.Name != "" && !found {
		p.Notes = append(p.Notes, fmt.Sprintf("%s/%s did not exist at that moment and does not exist now: there is nothing to restore.", resource.Shown(), s.Name))
	}
	for t, was := range then {
		if !r.selects(was) || r.leaves(p, was) {
			continue
		}
		step := &Step{Action: Create, Target: t, Object: recreated(was, resource.Status), OldUID: revisions.Text(was, "uid"), Notes: warnings(was, false)}
		// Each new namespace gets one by itself.
		step.already = resource.Kind == "ServiceAccount" && t.Name == "default"
		if err := p.add(step, size(step.Object)); err != nil {
			return err
		}
	}
	return nil
}

// selects reports whether an object has the labels. The selector is not part of the list request: an object that
// has lost or gained its labels existed all the same.
func (r *Restore) selects(obj Object) bool {
	if obj == nil {
		return false
	}
	have := labels.Set{}
	all, _ := meta(obj)["labels"].(Object)
	for key, value := range all {
		have[key], _ = value.(string)
	}
	return r.Labels == nil || r.Labels.Matches(have)
}

func targetOf(r *cluster.Resource, obj Object) cluster.Target {
	return r.Target(revisions.Text(obj, "namespace"), revisions.Text(obj, "name"))
}

// since plans an object that exists now and did not exist then.
func (r *Restore) since(p *Plan, t cluster.Target, live Object) error {
	switch {
	case r.leaves(p, live):
		return nil
	case meta(live)["deletionTimestamp"] != nil:
		p.leave("made since, and being deleted")
		return nil
	case !r.Prune:
		p.leave("made since (--prune deletes it)")
		return nil
	}
	return p.add(&Step{Action: Delete, Target: t, uid: revisions.Text(live, "uid"), version: revisions.Text(live, "resourceVersion")}, 0)
}

// both plans an object that existed then and exists now.
func (r *Restore) both(p *Plan, t cluster.Target, was, live Object) error {
	if r.leaves(p, was) {
		return nil
	}
	ownStatus := t.Resource.Status
	wanted := updated(was, live, ownStatus)
	now := comparable(live, ownStatus)
	if then := comparable(wanted, ownStatus); same(then, now) {
		p.Same++
		return nil
	}
	s := &Step{
		Action: Change, Target: t, Object: wanted, Fields: differing(comparable(wanted, ownStatus), now),
		uid: revisions.Text(live, "uid"), version: revisions.Text(live, "resourceVersion"),
	}
	if meta(live)["deletionTimestamp"] != nil {
		s.Err = &ConflictError{What: "it is being deleted", Err: errors.New("try again when it is gone")}
	}
	return p.add(s, size(s.Object))
}

// leaves reports whether a controller restores the object, and counts it.
func (r *Restore) leaves(p *Plan, obj Object) bool {
	if r.Controlled || len(r.Targets) > 0 {
		return false
	}
	ref := controller(obj)
	switch {
	case ref != nil && r.restoresController(ref):
		p.leave("made by a controller (--controlled takes it along)")
	case obj["kind"] == "ConfigMap" && revisions.Text(obj, "name") == "kube-root-ca.crt":
		p.leave("made by a controller (--controlled takes it along)")
	case obj["kind"] == "Secret" && obj["type"] == "kubernetes.io/service-account-token":
		p.leave("tokens of service accounts")
	default:
		return false
	}
	return true
}

// restoresController reports whether the plan restores the kind of a controller.
func (r *Restore) restoresController(ref Object) bool {
	version, _ := ref["apiVersion"].(string)
	kind, _ := ref["kind"].(string)
	of := r.Resources.Kind(groupOf(version), kind)
	return of != nil && (!r.Named || slices.Contains(r.Types, of))
}
