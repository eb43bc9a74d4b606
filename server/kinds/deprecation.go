package kinds

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// The release that is served.
const (
	releaseMajor = 1
	releaseMinor = 32
)

// Deprecation says that clients should no longer use a version of a resource.
type Deprecation struct {
	Warning string // for the Warning header
	Removed string // the release without it, like "1.33"; "" if that is not decided
}

// Lifecycle finds what the type of a built-in version says about its age; nil for
// versions that are not deprecated in this release.
func Lifecycle(r *Resource) *Deprecation {
	if r.New == nil {
		return nil
	}
	obj := r.New()
	old, ok := obj.(interface{ APILifecycleDeprecated() (major, minor int) })
	if !ok {
		return nil
	}
	major, minor := old.APILifecycleDeprecated()
	if major == 0 && minor == 0 || major > releaseMajor || major == releaseMajor && minor > releaseMinor {
		return nil
	}
	d := &Deprecation{Warning: fmt.Sprintf("%s %s is deprecated in v%d.%d+", r.APIVersion(), r.Kind, major, minor)}
	if gone, ok := obj.(interface{ APILifecycleRemoved() (major, minor int) }); ok {
		if major, minor := gone.APILifecycleRemoved(); major != 0 || minor != 0 {
			d.Removed = fmt.Sprintf("%d.%d", major, minor)
			d.Warning += ", unavailable in v" + d.Removed + "+"
		}
	}
	if other, ok := obj.(interface {
		APILifecycleReplacement() schema.GroupVersionKind
	}); ok {
		if gvk := other.APILifecycleReplacement(); !gvk.Empty() {
			d.Warning += fmt.Sprintf("; use %s %s", gvk.GroupVersion(), gvk.Kind)
		}
	}
	return d
}
