package kinds

import (
	"fmt"

	"github.com/rowlock/rowlock/server/release"
)

// Deprecation marks a version of a resource that clients should no longer use.
type Deprecation struct {
	Warning string // for the Warning header
	Removed string // the release without it, like "1.33"; "" if that is not decided
}

// Lifecycle returns the life cycle of a built-in version according to a release; nil for versions that are not
// deprecated in it. A binary that emulates a release uses its own knowledge of later ones.
func Lifecycle(v release.Version, r *Resource) *Deprecation {
	if r.New == nil {
		return nil
	}
	if !v.Deprecated(r.GVK()) {
		return nil
	}
	life := v.Lifecycle(r.GVK())
	d := &Deprecation{Warning: fmt.Sprintf("%s %s is deprecated in v%s+", r.APIVersion(), r.Kind, release.Of(life.Deprecated))}
	if life.Removed != 0 {
		d.Removed = release.Of(life.Removed).String()
		d.Warning += ", unavailable in v" + d.Removed + "+"
	}
	if gvk := life.Replacement; !gvk.Empty() {
		d.Warning += fmt.Sprintf("; use %s %s", gvk.GroupVersion(), gvk.Kind)
	}
	return d
}
