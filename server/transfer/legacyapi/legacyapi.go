// Package legacyapi has API types that no release serves any more, and that older servers stored: only those that
// differ from a served version. They have the JSON and the Protobuf messages of the types of k8s.io/api, and
// no generated methods, which would all be linked (docs/design/size.md).
package legacyapi

import (
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	nodev1 "k8s.io/api/node/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/rowlock/rowlock/codecs/protobuf/tagged"
)

// AddToScheme registers the types.
func AddToScheme(s *runtime.Scheme) error {
	s.AddKnownTypes(schema.GroupVersion{Group: "discovery.k8s.io", Version: "v1beta1"}, &EndpointSlice{})
	s.AddKnownTypes(schema.GroupVersion{Group: "networking.k8s.io", Version: "v1beta1"}, &Ingress{})
	s.AddKnownTypes(schema.GroupVersion{Group: "node.k8s.io", Version: "v1alpha1"}, &RuntimeClass{})
	s.AddKnownTypes(schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1alpha1"}, &Role{}, &ClusterRole{}, &RoleBinding{}, &ClusterRoleBinding{})
	return nil
}

// EndpointSlice is the kind of discovery.k8s.io/v1beta1.
type EndpointSlice struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	AddressType       discoveryv1.AddressType    `json:"addressType" protobuf:"bytes,4,rep,name=addressType"`
	Endpoints         []Endpoint                 `json:"endpoints" protobuf:"bytes,2,rep,name=endpoints"`
	Ports             []discoveryv1.EndpointPort `json:"ports" protobuf:"bytes,3,rep,name=ports"`
}

// Endpoint is an endpoint of an EndpointSlice.
type Endpoint struct {
	Addresses  []string                       `json:"addresses" protobuf:"bytes,1,rep,name=addresses"`
	Conditions discoveryv1.EndpointConditions `json:"conditions,omitempty" protobuf:"bytes,2,opt,name=conditions"`
	Hostname   *string                        `json:"hostname,omitempty" protobuf:"bytes,3,opt,name=hostname"`
	TargetRef  *corev1.ObjectReference        `json:"targetRef,omitempty" protobuf:"bytes,4,opt,name=targetRef"`
	Topology   map[string]string              `json:"topology,omitempty" protobuf:"bytes,5,opt,name=topology"`
	NodeName   *string                        `json:"nodeName,omitempty" protobuf:"bytes,6,opt,name=nodeName"`
	Hints      *discoveryv1.EndpointHints     `json:"hints,omitempty" protobuf:"bytes,7,opt,name=hints"`
}

// Ingress is the kind of networking.k8s.io/v1beta1.
type Ingress struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Spec              IngressSpec                `json:"spec,omitempty" protobuf:"bytes,2,opt,name=spec"`
	Status            networkingv1.IngressStatus `json:"status,omitempty" protobuf:"bytes,3,opt,name=status"`
}

// IngressSpec is the spec of an Ingress.
type IngressSpec struct {
	IngressClassName *string                   `json:"ingressClassName,omitempty" protobuf:"bytes,4,opt,name=ingressClassName"`
	Backend          *IngressBackend           `json:"backend,omitempty" protobuf:"bytes,1,opt,name=backend"`
	TLS              []networkingv1.IngressTLS `json:"tls,omitempty" protobuf:"bytes,2,rep,name=tls"`
	Rules            []IngressRule             `json:"rules,omitempty" protobuf:"bytes,3,rep,name=rules"`
}

// IngressRule has the paths of a host.
type IngressRule struct {
	Host             string `json:"host,omitempty" protobuf:"bytes,1,opt,name=host"`
	IngressRuleValue `json:",inline" protobuf:"bytes,2,opt,name=ingressRuleValue"`
}

// IngressRuleValue is the rule of a protocol.
type IngressRuleValue struct {
	HTTP *HTTPIngressRuleValue `json:"http,omitempty" protobuf:"bytes,1,opt,name=http"`
}

// HTTPIngressRuleValue has paths.
type HTTPIngressRuleValue struct {
	Paths []HTTPIngressPath `json:"paths" protobuf:"bytes,1,rep,name=paths"`
}

// HTTPIngressPath maps a path to a backend.
type HTTPIngressPath struct {
	Path     string                 `json:"path,omitempty" protobuf:"bytes,1,opt,name=path"`
	PathType *networkingv1.PathType `json:"pathType,omitempty" protobuf:"bytes,3,opt,name=pathType"`
	Backend  IngressBackend         `json:"backend" protobuf:"bytes,2,opt,name=backend"`
}

// IngressBackend is a port of a Service, or another resource.
type IngressBackend struct {
	ServiceName string                            `json:"serviceName,omitempty" protobuf:"bytes,1,opt,name=serviceName"`
	ServicePort intstr.IntOrString                `json:"servicePort,omitempty" protobuf:"bytes,2,opt,name=servicePort"`
	Resource    *corev1.TypedLocalObjectReference `json:"resource,omitempty" protobuf:"bytes,3,opt,name=resource"`
}

// RuntimeClass is the kind of node.k8s.io/v1alpha1.
type RuntimeClass struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Spec              RuntimeClassSpec `json:"spec" protobuf:"bytes,2,name=spec"`
}

// RuntimeClassSpec has the fields that v1 has in the object itself.
type RuntimeClassSpec struct {
	RuntimeHandler string             `json:"runtimeHandler" protobuf:"bytes,1,opt,name=runtimeHandler"`
	Overhead       *nodev1.Overhead   `json:"overhead,omitempty" protobuf:"bytes,2,opt,name=overhead"`
	Scheduling     *nodev1.Scheduling `json:"scheduling,omitempty" protobuf:"bytes,3,opt,name=scheduling"`
}

// Role is the kind of rbac.authorization.k8s.io/v1alpha1.
type Role struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Rules             []PolicyRule `json:"rules" protobuf:"bytes,2,rep,name=rules"`
}

// ClusterRole is the kind of rbac.authorization.k8s.io/v1alpha1.
type ClusterRole struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Rules             []PolicyRule            `json:"rules" protobuf:"bytes,2,rep,name=rules"`
	AggregationRule   *rbacv1.AggregationRule `json:"aggregationRule,omitempty" protobuf:"bytes,3,opt,name=aggregationRule"`
}

// PolicyRule has other field numbers than that of v1.
type PolicyRule struct {
	Verbs           []string `json:"verbs" protobuf:"bytes,1,rep,name=verbs"`
	APIGroups       []string `json:"apiGroups,omitempty" protobuf:"bytes,3,rep,name=apiGroups"`
	Resources       []string `json:"resources,omitempty" protobuf:"bytes,4,rep,name=resources"`
	ResourceNames   []string `json:"resourceNames,omitempty" protobuf:"bytes,5,rep,name=resourceNames"`
	NonResourceURLs []string `json:"nonResourceURLs,omitempty" protobuf:"bytes,6,rep,name=nonResourceURLs"`
}

// RoleBinding is the kind of rbac.authorization.k8s.io/v1alpha1.
type RoleBinding struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty" protobuf:"bytes,1,opt,name=metadata"`
	Subjects          []Subject      `json:"subjects,omitempty" protobuf:"bytes,2,rep,name=subjects"`
	RoleRef           rbacv1.RoleRef `json:"roleRef" protobuf:"bytes,3,opt,name=roleRef"`
}

// ClusterRoleBinding has the fields of a RoleBinding.
type ClusterRoleBinding RoleBinding

// Subject names a version where that of v1 names a group.
type Subject struct {
	Kind       string `json:"kind" protobuf:"bytes,1,opt,name=kind"`
	APIVersion string `json:"apiVersion,omitempty" protobuf:"bytes,2,opt,name=apiVersion"`
	Name       string `json:"name" protobuf:"bytes,3,opt,name=name"`
	Namespace  string `json:"namespace,omitempty" protobuf:"bytes,4,opt,name=namespace"`
}

// DeepCopyObject implements runtime.Object.
func (o *EndpointSlice) DeepCopyObject() runtime.Object { return copied(o, &EndpointSlice{}) }

// DeepCopyObject implements runtime.Object.
func (o *Ingress) DeepCopyObject() runtime.Object { return copied(o, &Ingress{}) }

// DeepCopyObject implements runtime.Object.
func (o *RuntimeClass) DeepCopyObject() runtime.Object { return copied(o, &RuntimeClass{}) }

// DeepCopyObject implements runtime.Object.
func (o *Role) DeepCopyObject() runtime.Object { return copied(o, &Role{}) }

// DeepCopyObject implements runtime.Object.
func (o *ClusterRole) DeepCopyObject() runtime.Object { return copied(o, &ClusterRole{}) }

// DeepCopyObject implements runtime.Object.
func (o *RoleBinding) DeepCopyObject() runtime.Object { return copied(o, &RoleBinding{}) }

// DeepCopyObject implements runtime.Object.
func (o *ClusterRoleBinding) DeepCopyObject() runtime.Object { return copied(o, &ClusterRoleBinding{}) }

// copied copies an object into an empty one, by way of its message.
func copied(from, into runtime.Object) runtime.Object {
	data, err := tagged.Append(nil, from)
	if err == nil {
		err = tagged.Unmarshal(data, into)
	}
	if err != nil {
		panic(err) // a message that was just written
	}
	into.GetObjectKind().SetGroupVersionKind(from.GetObjectKind().GroupVersionKind())
	return into
}
