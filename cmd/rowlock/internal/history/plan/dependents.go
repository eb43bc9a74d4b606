package plan

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// known is a past object that has owners.
type known struct {
	target cluster.Target
	uid    string
}

// dependents plans the objects that an object owned at a revision, and their dependents, owners first. Lists of
// metadata give the owners; the objects are read one by one.
func (u *Undelete) dependents(ctx context.Context, p *Plan, t cluster.Target, root Object, at int64) error {
	byOwner := map[string][]known{}
	count := 0
	for _, r := range u.Resources.Preferred() {
		if !r.Can("list") || !r.Can("create") || t.Namespace != "" && !r.Namespaced || r.Group == revisions.Group {
			continue
		}
		err := revisions.Each(ctx, u.Client, r, revisions.Selection{Namespace: t.Namespace, At: at, Metadata: true}, func(obj Object) error {
			k := known{target: r.Target(revisions.Text(obj, "namespace"), revisions.Text(obj, "name")), uid: revisions.Text(obj, "uid")}
			for _, ref := range owners(obj) {
				owner, _ := ref["uid"].(string)
				byOwner[owner] = append(byOwner[owner], k)
				if count++; count > 10*maxSteps {
					return errors.New("too many objects have owners")
				}
			}
			return nil
		})
		if revisions.IsSkipped(err) {
			p.Notes = append(p.Notes, fmt.Sprintf("Dependents among %s are not looked for: %v.", r.String(), err))
			continue
		}
		if err != nil {
			return err
		}
	}
	return u.descend(ctx, p, byOwner, revisions.Text(root, "uid"), at)
}

func (u *Undelete) descend(ctx context.Context, p *Plan, byOwner map[string][]known, root string, at int64) error {
	seen := map[string]bool{root: true}
	for queue := []string{root}; len(queue) > 0; queue = queue[1:] {
		for _, k := range byOwner[queue[0]] {
			if seen[k.uid] {
				continue
			}
			seen[k.uid] = true
			if err := u.dependent(ctx, p, k, at); err != nil {
				return err
			}
			queue = append(queue, k.uid)
		}
	}
	return nil
}

// dependent plans one dependent: it is created, or adopted if it still exists.
func (u *Undelete) dependent(ctx context.Context, p *Plan, k known, at int64) error {
	var past Object
	err := revisions.Each(ctx, u.Client, k.target.Resource, revisions.Selection{Namespace: k.target.Namespace, Name: k.target.Name, At: at}, func(obj Object) error {
		past = obj
		return nil
	})
	if err != nil {
		return err
	}
	if past == nil {
		return fmt.Errorf("%s is listed at revision %d and cannot be read there", k.target.Where(), at)
	}
	live, err := current(ctx, u.Client, k.target)
	switch {
	case apierrors.IsNotFound(err):
		return u.create(ctx, p, k.target, past, true)
	case err != nil:
		return fmt.Errorf("%s: %w", k.target.Where(), err)
	case revisions.Text(live, "uid") != k.uid:
		p.leave("there is another of that name already: " + k.target.String())
		return nil
	case meta(live)["deletionTimestamp"] != nil:
		return p.add(&Step{Action: Create, Target: k.target, Err: &ConflictError{What: "it is still being deleted", Err: errors.New("try again when it is gone")}}, 0)
	}
	// It was not collected, or was orphaned: it lives, under the same UID.
	s := &Step{
		Action: Adopt, Target: k.target, Object: fresh(past, true), owned: true,
		uid: k.uid, version: revisions.Text(live, "resourceVersion"),
	}
	p.uids[k.uid] = k.uid
	return p.add(s, size(s.Object))
}
