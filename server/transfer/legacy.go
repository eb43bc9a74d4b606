package transfer

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	autoscalingv2beta1 "github.com/rowlock/rowlock/server/removed/k8s.io/api/autoscaling/v2beta1"
	certificatesv1beta1 "k8s.io/api/certificates/v1beta1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/rowlock/rowlock/codecs"
	"github.com/rowlock/rowlock/server/convert"
	"github.com/rowlock/rowlock/server/kinds"
	older "github.com/rowlock/rowlock/server/transfer/legacyapi"
)

// alike are the versions of the past whose messages are those of a version that is served:
// fields of the same numbers and types, and of the same names, or of names that convert.Raise gives them
// anyway. The Go types of those read them, so that types of their own need not be linked (TestAlike compares both).
var alike = map[schema.GroupVersion]schema.GroupVersion{
	{Group: "admissionregistration.k8s.io", Version: "v1beta1"}: {Group: "admissionregistration.k8s.io", Version: "v1"},
	{Group: "apps", Version: "v1beta1"}:                         {Group: "apps", Version: "v1"}, // but for oldFields
	{Group: "apps", Version: "v1beta2"}:                         {Group: "apps", Version: "v1"},
	{Group: "autoscaling", Version: "v2beta2"}:                  {Group: "autoscaling", Version: "v2"},
	{Group: "batch", Version: "v1beta1"}:                        {Group: "batch", Version: "v1"},
	{Group: "coordination.k8s.io", Version: "v1beta1"}:          {Group: "coordination.k8s.io", Version: "v1"},
	{Group: "events.k8s.io", Version: "v1beta1"}:                {Group: "events.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta1"}: {Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta2"}: {Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "flowcontrol.apiserver.k8s.io", Version: "v1beta3"}: {Group: "flowcontrol.apiserver.k8s.io", Version: "v1"},
	{Group: "node.k8s.io", Version: "v1beta1"}:                  {Group: "node.k8s.io", Version: "v1"},
	{Group: "policy", Version: "v1beta1"}:                       {Group: "policy", Version: "v1"},
	{Group: "rbac.authorization.k8s.io", Version: "v1beta1"}:    {Group: "rbac.authorization.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1alpha1"}:           {Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "scheduling.k8s.io", Version: "v1beta1"}:            {Group: "scheduling.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1alpha1"}:              {Group: "storage.k8s.io", Version: "v1"},
	{Group: "storage.k8s.io", Version: "v1beta1"}:               {Group: "storage.k8s.io", Version: "v1"},
}

// alikeKinds are the same for kinds that have moved to other groups, or are not alike all kinds of their version.
var alikeKinds = map[schema.GroupVersionKind]schema.GroupVersion{
	{Group: "extensions", Version: "v1beta1", Kind: "DaemonSet"}:     {Group: "apps", Version: "v1"}, // but for oldFields
	{Group: "extensions", Version: "v1beta1", Kind: "Deployment"}:    {Group: "apps", Version: "v1"}, // but for oldFields
	{Group: "extensions", Version: "v1beta1", Kind: "ReplicaSet"}:    {Group: "apps", Version: "v1"},
	{Group: "extensions", Version: "v1beta1", Kind: "NetworkPolicy"}: {Group: "networking.k8s.io", Version: "v1"},
	{Group: "extensions", Version: "v1beta1", Kind: "Ingress"}:       {Group: "networking.k8s.io", Version: "v1beta1"},

	{Group: "networking.k8s.io", Version: "v1beta1", Kind: "IngressClass"}: {Group: "networking.k8s.io", Version: "v1"},
}

// likeness returns the kind whose Go type reads messages of a kind of the past; ok is false where it has its own.
func likeness(kind schema.GroupVersionKind) (now schema.GroupVersionKind, ok bool) {
	gv, ok := alikeKinds[kind]
	if !ok {
		gv, ok = alike[kind.GroupVersion()]
	}
	return gv.WithKind(kind.Kind), ok
}

// past knows the Go types of all other versions that are no longer served. Objects that have not been written
// since an upgrade are stored in them, and a stock server of release 1.32 still reads them.
var past = sync.OnceValue(func() *runtime.Scheme {
	s := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{autoscalingv2beta1.AddToScheme, certificatesv1beta1.AddToScheme, older.AddToScheme} {
		if err := add(s); err != nil {
			panic(err) // two types of one name: a mistake in this list
		}
	}
	return s
})

// raise converts a value in a version that is no longer served to JSON of a served one, and returns the resource of that
// version, and the first fields that are lost.
func (l *layout) raise(home *kinds.Resource, kind schema.GroupVersionKind, codec codecs.Codec, value []byte) (now []byte, to *kinds.Resource, unknown []string, err error) {
	var old oldField
	if isProtobuf(value) {
		typed := l.ofPast(kind)
		if typed == nil {
			return nil, nil, nil, misplaced(home, kind)
		}
		if unknown, err = l.read(codec, value, typed); err != nil {
			return nil, nil, nil, err
		}
		typed.GetObjectKind().SetGroupVersionKind(kind)
		message := value
		if value, err = l.json.Encode(nil, typed); err != nil {
			return nil, nil, nil, err
		}
		old = readOld(kind, message)
		unknown = slices.DeleteFunc(unknown, func(u string) bool { return u == old.unknown })
	}
	var tree convert.Object
	if _, err := l.json.Unmarshal(value, &tree, codecs.Ignore); err != nil {
		return nil, nil, nil, err
	}
	if spec, ok := tree["spec"].(convert.Object); ok && old.value != nil {
		spec[old.name] = old.value
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

// ofPast returns an empty object that reads messages of a kind in a version of the past; nil
// where none does.
func (l *layout) ofPast(kind schema.GroupVersionKind) runtime.Object {
	if now, ok := likeness(kind); ok {
		if r := l.catalogue.LookupKind(now); r != nil {
			return r.New()
		}
		kind = now
	}
	typed, err := past().New(kind)
	if err != nil {
		return nil
	}
	return typed
}
