package transfer

import (
	"encoding/json"
	"fmt"
	"sync"

	admissionregistrationv1beta1 "k8s.io/api/admissionregistration/v1beta1"
	appsv1beta1 "k8s.io/api/apps/v1beta1"
	appsv1beta2 "k8s.io/api/apps/v1beta2"
	autoscalingv2beta1 "k8s.io/api/autoscaling/v2beta1"
	autoscalingv2beta2 "k8s.io/api/autoscaling/v2beta2"
	batchv1beta1 "k8s.io/api/batch/v1beta1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	coordinationv1beta1 "k8s.io/api/coordination/v1beta1"
	discoveryv1beta1 "k8s.io/api/discovery/v1beta1"
	eventsv1beta1 "k8s.io/api/events/v1beta1"
	extensionsv1beta1 "k8s.io/api/extensions/v1beta1"
	flowcontrolv1beta1 "k8s.io/api/flowcontrol/v1beta1"
	flowcontrolv1beta2 "k8s.io/api/flowcontrol/v1beta2"
	flowcontrolv1beta3 "k8s.io/api/flowcontrol/v1beta3"
	networkingv1beta1 "k8s.io/api/networking/v1beta1"
	nodev1alpha1 "k8s.io/api/node/v1alpha1"
	nodev1beta1 "k8s.io/api/node/v1beta1"
	policyv1beta1 "k8s.io/api/policy/v1beta1"
	rbacv1alpha1 "k8s.io/api/rbac/v1alpha1"
	rbacv1beta1 "k8s.io/api/rbac/v1beta1"
	schedulingv1alpha1 "k8s.io/api/scheduling/v1alpha1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	storagev1alpha1 "k8s.io/api/storage/v1alpha1"
	storagev1beta1 "k8s.io/api/storage/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/convert"
	"github.com/rowlock/rowlock/server/kinds"
)

// past knows the Go types of versions that are no longer served. Objects that nobody wrote
// since an upgrade lie in them, and a stock server of release 1.32 still reads them.
var past = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{
		admissionregistrationv1beta1.AddToScheme, appsv1beta1.AddToScheme, appsv1beta2.AddToScheme,
		autoscalingv2beta1.AddToScheme, autoscalingv2beta2.AddToScheme, batchv1beta1.AddToScheme,
		certificatesv1beta1.AddToScheme, coordinationv1beta1.AddToScheme, discoveryv1beta1.AddToScheme,
		eventsv1beta1.AddToScheme, extensionsv1beta1.AddToScheme, flowcontrolv1beta1.AddToScheme,
		flowcontrolv1beta2.AddToScheme, flowcontrolv1beta3.AddToScheme, networkingv1beta1.AddToScheme,
		nodev1alpha1.AddToScheme, nodev1beta1.AddToScheme, policyv1beta1.AddToScheme, rbacv1alpha1.AddToScheme,
		rbacv1beta1.AddToScheme, schedulingv1alpha1.AddToScheme, schedulingv1beta1.AddToScheme,
		storagev1alpha1.AddToScheme, storagev1beta1.AddToScheme,
	} {
		if err := add(s); err != nil {
			panic(err) // two types of one name: a mistake in this list
		}
	}
	return s
})

// raise makes the JSON of a version that can be served of a value in one that cannot any
// more, and finds the resource of that, and the first fields that are lost.
func (l *layout) raise(home *kinds.Resource, kind schema.GroupVersionKind, codec codecs.Codec, value []byte) (now []byte, to *kinds.Resource, unknown []string, err error) {
	if isProtobuf(value) {
		typed, err := past().New(kind)
		if err != nil {
			return nil, nil, nil, misplaced(home, kind)
		}
		if unknown, err = l.read(codec, value, typed); err != nil {
			return nil, nil, nil, err
		}
		if value, err = l.json.Encode(nil, typed); err != nil {
			return nil, nil, nil, err
		}
	}
	var tree convert.Object
	if _, err := l.json.Unmarshal(value, &tree, codecs.Ignore); err != nil {
		return nil, nil, nil, err
	}
	raised, ok, err := convert.Raise(tree)
	if err != nil {
		return nil, nil, nil, fmt.Errorf("converting from %s: %w", kind.GroupVersion(), err)
	}
	if !ok {
		return nil, nil, nil, misplaced(home, kind)
	}
	if value, err = json.Marshal(raised); err != nil {
		return nil, nil, nil, err
	}
	served, err := l.json.Kind(value)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := l.version(home, served)
	if err == nil && r == nil {
		err = misplaced(home, served)
	}
	return value, r, unknown, err
}
