package release

import (
	"reflect"
	"sync"

	"github.com/rowlock/rowlock/codecs/view"
	"github.com/rowlock/rowlock/server/removed"
)

// views are those of each release. What they remember of types is the same for all servers of a process.
var views sync.Map // Version -> *view.View

// View says which fields the types of the API have in a release, for the code that reads and writes them.
func (v Version) View() *view.View {
	made, ok := views.Load(v)
	if !ok {
		made, _ = views.LoadOrStore(v, view.New(
			func(t reflect.Type, field string) bool { return !TypeOf(t).Has(v, field) },
			func(t reflect.Type, field string) bool { return v.nulls(t, field) },
			v.Has(EmbeddedNamed),
		))
	}
	return made.(*view.View)
}

// nulls says whether a field is written as null where it is empty.
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
