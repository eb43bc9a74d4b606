package release

import (
	"reflect"
	"sync"

	"github.com/rowlock/rowlock/codecs/view"
	"github.com/rowlock/rowlock/server/removed"
)

// views has a view for each release. All servers of a process share their caches.
var views sync.Map // viewKey -> *view.View

type viewKey struct {
	Version
	whole bool
}

// View returns which fields the types of the API have in a release, for the code that reads and writes them.
func (v Version) View() *view.View { return viewKey{v, false}.view() }

// Whole is View with the fields of all releases, for programs that move objects and must not lose anything.
func (v Version) Whole() *view.View { return viewKey{v, true}.view() }

func (k viewKey) view() *view.View {
	made, ok := views.Load(k)
	if !ok {
		made, _ = views.LoadOrStore(k, view.New(
			func(t reflect.Type, field string) bool {
				return !k.whole && !TypeOf(t, k.Version).Has(k.Version, field)
			},
			func(t reflect.Type, field string) bool { return k.nulls(t, field) },
			k.Has(EmbeddedNamed),
		))
	}
	return made.(*view.View)
}

// nulls reports whether a field is written as null where it is empty.
func (v Version) nulls(t reflect.Type, field string) bool {
	return !v.Has(EmptyLeftOut) && nulled[removed.PackagePath(t.PkgPath())+"."+t.Name()+"."+field]
}

// nulled are the fields that EmptyLeftOut is about.
var nulled = map[string]bool{
	"k8s.io/apimachinery/pkg/apis/meta/v1.ObjectMeta.creationTimestamp":     true,
	"k8s.io/api/resource/v1beta1.AllocatedDeviceStatus.data":                true,
	"k8s.io/api/resource/v1alpha3.AllocatedDeviceStatus.data":               true,
	"k8s.io/api/resource/v1beta1.DeviceRequestAllocationResult.adminAccess": true,
	"k8s.io/api/resource/v1beta1.ResourceSliceSpec.devices":                 true,
}
