package plan

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// Undelete plans the return of deleted objects.
type Undelete struct {
	Finder
	Dependents bool // and all that it owned
	Status     bool // and the status that it had
}

// Plan finds the last state of an object before its deletion began, and its dependents at that time.
func (u *Undelete) Plan(ctx context.Context, p *Plan, t cluster.Target) error {
	live, err := current(ctx, u.Client, t)
	switch {
	case err == nil && meta(live)["deletionTimestamp"] != nil:
		return fmt.Errorf("%s is still being deleted: it waits for its finalizers %v", t.Where(), meta(live)["finalizers"])
	case err == nil:
		return fmt.Errorf("%s is there: nothing to bring back. `rowlock restore` changes it to what it was", t.Where())
	case !apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", t.Where(), err)
	}
	last, until, err := u.last(ctx, t)
	if err != nil {
		return err
	}
	obj, err := last.Decoded()
	if err != nil {
		return err
	}
	if err := u.create(ctx, p, t, obj, false); err != nil {
		return err
	}
	p.Notes = append(p.Notes, fmt.Sprintf("%s as of revision %s, written %s, deleted with revision %d.", t, last.Revision, last.WrittenAt.Format("2006-01-02 15:04:05 -0700"), until))
	if err := u.namespaces(ctx, p, until-1); err != nil {
		return err
	}
	p.namespacesFirst()
	if !u.Dependents {
		return nil
	}
	return u.dependents(ctx, p, t, obj, until-1)
}

// last returns the newest revision in which the object was not being deleted, and the revision that ended it.
func (u *Undelete) last(ctx context.Context, t cluster.Target) (last *revisions.Revision, until int64, err error) {
	_, err = revisions.List(ctx, u.Client, t, revisions.Query{Content: true, PageSize: 5}, func(r *revisions.Revision) (bool, error) {
		if !r.Deleted() {
			obj, err := r.Decoded()
			if err != nil {
				return false, err
			}
			if meta(obj)["deletionTimestamp"] == nil {
				last = r
				return false, nil
			}
		}
		until = r.Number()
		return true, nil
	})
	if err == nil && (last == nil || until == 0) {
		err = fmt.Errorf("%s: no state of it from before it was deleted is kept", t.Where())
	}
	return last, until, err
}

// create plans one object.
func (u *Undelete) create(ctx context.Context, p *Plan, t cluster.Target, past Object, dependent bool) error {
	ownStatus := t.Resource.Status
	s := &Step{Action: Create, Target: t, Object: recreated(past, ownStatus), OldUID: revisions.Text(past, "uid"), already: dependent}
	if u.Status && ownStatus {
		s.Status = past["status"]
	}
	s.Notes = append(s.Notes, warnings(past, u.Status)...)
	if err := u.settle(ctx, p, s); err != nil {
		return err
	}
	return p.add(s, size(s.Object))
}

// warnings name the missing parts of restored objects of some kinds.
func warnings(past Object, status bool) []string {
	spec, _ := past["spec"].(Object)
	state, _ := past["status"].(Object)
	switch {
	case past["kind"] == "Job" && state["completionTime"] != nil && !status:
		return []string{"it was complete, and runs again: --with-status writes its status, a moment later"}
	case past["kind"] == "PersistentVolumeClaim" && spec["volumeName"] != nil:
		return []string{fmt.Sprintf("it waits until its volume %v is free of the claim that is gone: unless that comes back too, remove spec.claimRef.uid of it", spec["volumeName"])}
	case past["kind"] == "PersistentVolume" && spec["persistentVolumeReclaimPolicy"] == "Delete":
		return []string{"what it represented may have been deleted with it"}
	case past["kind"] == "Secret" && past["type"] == "kubernetes.io/service-account-token":
		return []string{"the token in it is good again if its service account is the one of then: whoever has a copy, too"}
	}
	return nil
}
