package plan

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/cluster"
	"github.com/rowlock/rowlock/cmd/rowlock/internal/history/revisions"
)

// Finder looks up live objects.
type Finder struct {
	Client    *cluster.Client
	Resources *cluster.Resources
	owning    map[cluster.Target]string // UIDs of owners that were looked up
}

// settle drops references to owners that no longer exist: the garbage collector would delete the restored object.
func (f *Finder) settle(ctx context.Context, p *Plan, s *Step) error {
	var kept []any
	for _, ref := range owners(s.Object) {
		old, _ := ref["uid"].(string)
		if p.made[old] {
			s.owned = true
			kept = append(kept, ref)
			continue
		}
		name, now, err := f.owner(ctx, s.Target.Namespace, ref)
		if err != nil {
			return err
		}
		switch now {
		case "":
			s.Notes = append(s.Notes, fmt.Sprintf("without its owner %s, which is gone", name))
			continue
		case old:
		default:
			s.Notes = append(s.Notes, fmt.Sprintf("owned by the %s that there is now", name))
			ref["uid"] = now
		}
		kept = append(kept, ref)
	}
	if kept == nil {
		delete(meta(s.Object), "ownerReferences")
	} else {
		meta(s.Object)["ownerReferences"] = kept
	}
	return nil
}

// owner returns the current UID of an owner; "" if it does not exist.
func (f *Finder) owner(ctx context.Context, namespace string, ref Object) (name, uid string, err error) {
	version, _ := ref["apiVersion"].(string)
	kind, _ := ref["kind"].(string)
	of, _ := ref["name"].(string)
	name = kind + "/" + of
	r := f.Resources.Kind(groupOf(version), kind)
	if r == nil {
		return name, "", nil
	}
	t := r.Target(namespace, of)
	if uid, asked := f.owning[t]; asked {
		return name, uid, nil
	}
	obj, err := current(ctx, f.Client, t)
	if err != nil && !apierrors.IsNotFound(err) {
		return name, "", fmt.Errorf("owner %s: %w", name, err)
	}
	if f.owning == nil {
		f.owning = map[cluster.Target]string{}
	}
	f.owning[t] = revisions.Text(obj, "uid")
	return name, f.owning[t], nil
}

func groupOf(apiVersion string) string {
	group, _, found := strings.Cut(apiVersion, "/")
	if !found {
		return ""
	}
	return group
}
