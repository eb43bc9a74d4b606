package webpage

import (
	"context"
	"errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// passing are resources that change all the time; they are shown if they are named.
var passing = map[string]bool{"events": true, "events.events.k8s.io": true, "leases.coordination.k8s.io": true}

// find returns the objects of types, or of the whole namespace: those that exist, and those that existed at the
// beginning of the period.
func (p *Page) find(ctx context.Context, c *cluster.Client, all *cluster.Resources, names cluster.Names, q revisions.Query) ([]cluster.Target, error) {
	types, err := names.Types(all)
	if err != nil {
		return nil, err
	}
	if !names.IsSet() {
		for _, r := range all.Preferred() {
			if r.Namespaced && r.Can("list") && !passing[r.String()] && r.Group != revisions.Group {
				types = append(types, r)
			}
		}
	}
	times := []int64{0}
	if since := q.Since; since.Revision > 0 || !since.Time.IsZero() {
		then, err := revisions.At(ctx, c, since)
		if err != nil {
			return nil, err
		}
		times = append(times, then)
	}
	var found []cluster.Target
	for _, r := range types {
		seen := map[cluster.Target]bool{}
		for _, at := range times {
			err := revisions.Names(ctx, c, r, c.Namespace, at, func(t cluster.Target) error {
				if !seen[t] {
					seen[t] = true
					found = append(found, t)
				}
				if len(found) > 10*maxObjects {
					return errors.New("too many objects: name types, or objects")
				}
				return nil
			})
			if revisions.IsSkipped(err) {
				p.note("%s are left out: %v", r.String(), err)
				break
			}
			if err != nil {
				return nil, err
			}
		}
	}
	return found, nil
}
