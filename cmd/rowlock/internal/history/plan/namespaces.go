package plan

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// namespaces plans the creation of missing namespaces of the objects that are created, in their state at a
// revision.
func (f *Finder) namespaces(ctx context.Context, p *Plan, at int64) error {
	resource := f.Resources.Kind("", "Namespace")
	wanted := map[string]bool{}
	for _, s := range p.Steps {
		if s.Action == Create && s.Target.Namespace != "" && !p.absent[s.Target.Namespace] {
			wanted[s.Target.Namespace] = true
		}
	}
	if resource == nil {
		return nil
	}
	for name := range wanted {
		t := resource.Target("", name)
		live, err := current(ctx, f.Client, t)
		switch {
		case err == nil && meta(live)["deletionTimestamp"] != nil:
			return fmt.Errorf("namespace %s is being deleted: wait until it is gone", name)
		case err == nil, revisions.Denied(err):
			continue // for users that may not see it, a create in it shows that
		case !apierrors.IsNotFound(err):
			return err
		}
		err = revisions.Each(ctx, f.Client, resource, revisions.Selection{Name: name, At: at}, func(obj Object) error {
			s := &Step{Action: Create, Target: t, Object: fresh(obj, true), OldUID: revisions.Text(obj, "uid"), already: true}
			return p.add(s, size(s.Object))
		})
		if err != nil && !revisions.Denied(err) {
			return fmt.Errorf("namespace %s, which is gone: %w", name, err)
		}
	}
	return nil
}

// namespacesFirst moves namespaces to the front and keeps the order otherwise.
func (p *Plan) namespacesFirst() {
	slices.SortStableFunc(p.Steps, func(a, b *Step) int { return cmp.Compare(min(rank(a), 1), min(rank(b), 1)) })
}
