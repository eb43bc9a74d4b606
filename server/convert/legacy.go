package convert

import (
	"errors"
	"fmt"
	"math"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// legacy is a kind in a version of the past.
type legacy struct {
	from, to schema.GroupVersionKind
	// raise and lower change the differing fields of an object, before its kind is set and after that. Nil:
	// no differences.
	raise, lower func(o Object) error
}

// up returns the object in the served version, without changing the input.
func (l *legacy) up(o Object) (Object, error) { return change(o, l.to, l.raise) }

func change(o Object, kind schema.GroupVersionKind, how func(Object) error) (out Object, err error) {
	out = runtime.DeepCopyJSON(normal(o).(Object))
	if how != nil {
		defer func() {
			if r := recover(); r != nil {
				bad, ok := r.(*shapeError)
				if !ok {
					panic(r)
				}
				out, err = nil, bad
			}
		}()
		if err := how(out); err != nil {
			return nil, err
		}
	}
	out["apiVersion"], out["kind"] = kind.ToAPIVersionAndKind()
	return out, nil
}

// normal replaces numbers that are copied differently.
func normal(v any) any {
	switch v := v.(type) {
	case Object:
		out := make(Object, len(v))
		for k, e := range v {
			out[k] = normal(e)
		}
		return out
	case []any:
		out := make([]any, len(v))
		for i, e := range v {
			out[i] = normal(e)
		}
		return out
	case int:
		return int64(v)
	case int32:
		return int64(v)
	case float64: // in the decoded form; an integer is written without an exponent
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 {
			return int64(v)
		}
	}
	return v
}

// shapeError is the error for a field of the wrong type. Reading a field panics with it, and change recovers,
// so that the rules below stay readable.
type shapeError struct{ field string }

func (e *shapeError) Error() string { return fmt.Sprintf("%s is not of the right type", e.field) }

// sub returns the object in a field; nil where there is none.
func sub(o Object, field string) Object {
	v, there := o[field]
	if !there || v == nil {
		return nil
	}
	m, ok := v.(Object)
	if !ok {
		panic(&shapeError{field})
	}
	return m
}

// must returns the object in a field, which is made where there is none.
func must(o Object, field string) Object {
	m := sub(o, field)
	if m == nil {
		m = Object{}
		o[field] = m
	}
	return m
}

// each calls do for every object of a list.
func each(o Object, field string, do func(Object)) {
	v, there := o[field]
	if !there || v == nil {
		return
	}
	list, ok := v.([]any)
	if !ok {
		panic(&shapeError{field})
	}
	for _, e := range list {
		m, ok := e.(Object)
		if !ok {
			panic(&shapeError{field})
		}
		do(m)
	}
}

// text returns the string in a field.
func text(o Object, field string) string {
	v, there := o[field]
	if !there || v == nil {
		return ""
	}
	s, ok := v.(string)
	if !ok {
		panic(&shapeError{field})
	}
	return s
}

// move renames a field; an empty one is removed.
func move(from Object, old string, to Object, new string) {
	if v, there := from[old]; there {
		delete(from, old)
		if v != nil && v != "" {
			to[new] = v
		}
	}
}

// preset fills in a field that is not there.
func preset(o Object, field string, value any) {
	if v, there := o[field]; !there || v == nil {
		o[field] = value
	}
}

var table = func() map[schema.GroupVersionKind]*legacy {
	all := map[schema.GroupVersionKind]*legacy{}
	add := func(version, served string, l legacy, kinds ...string) {
		from, err := schema.ParseGroupVersion(version)
		to, err2 := schema.ParseGroupVersion(served)
		if err := errors.Join(err, err2); err != nil {
			panic(err)
		}
		for _, kind := range kinds {
			one := l
			one.from, one.to = from.WithKind(kind), to.WithKind(kind)
			all[one.from] = &one
		}
	}
	for version, defaults := range map[string]workloadDefaults{"extensions/v1beta1": extensionsDefaults, "apps/v1beta1": firstAppsDefaults, "apps/v1beta2": {}} {
		add(version, "apps/v1", legacy{raise: defaults.deployment, lower: deploymentDown}, "Deployment")
		if version != "apps/v1beta1" {
			l := legacy{raise: defaults.daemonSet}
			if version == "extensions/v1beta1" {
				l.lower = daemonSetDown
			}
			add(version, "apps/v1", l, "DaemonSet")
			add(version, "apps/v1", legacy{raise: defaults.replicaSet}, "ReplicaSet")
		}
		if version != "extensions/v1beta1" {
			add(version, "apps/v1", legacy{raise: defaults.statefulSet}, "StatefulSet")
			add(version, "apps/v1", legacy{}, "ControllerRevision")
		}
	}
	for _, version := range []string{"extensions/v1beta1", "networking.k8s.io/v1beta1"} {
		add(version, "networking.k8s.io/v1", legacy{raise: ingressUp, lower: ingressDown}, "Ingress")
	}
	add("extensions/v1beta1", "networking.k8s.io/v1", legacy{}, "NetworkPolicy")
	add("networking.k8s.io/v1beta1", "networking.k8s.io/v1", legacy{}, "IngressClass")
	add("batch/v1beta1", "batch/v1", legacy{}, "CronJob")
	add("policy/v1beta1", "policy/v1", legacy{raise: budgetUp, lower: budgetDown}, "PodDisruptionBudget")
	add("autoscaling/v2beta2", "autoscaling/v2", legacy{}, "HorizontalPodAutoscaler")
	add("autoscaling/v2beta1", "autoscaling/v2", legacy{raise: metricsUp, lower: metricsDown}, "HorizontalPodAutoscaler")
	const rbac = "rbac.authorization.k8s.io/"
	add(rbac+"v1beta1", rbac+"v1", legacy{}, "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding")
	add(rbac+"v1alpha1", rbac+"v1", legacy{}, "Role", "ClusterRole")
	add(rbac+"v1alpha1", rbac+"v1", legacy{raise: subjectsUp, lower: subjectsDown}, "RoleBinding", "ClusterRoleBinding")
	for _, version := range []string{"v1alpha1", "v1beta1"} {
		add("scheduling.k8s.io/"+version, "scheduling.k8s.io/v1", legacy{}, "PriorityClass")
		add("storage.k8s.io/"+version, "storage.k8s.io/v1", legacy{}, "VolumeAttachment", "CSIStorageCapacity")
	}
	add("storage.k8s.io/v1beta1", "storage.k8s.io/v1", legacy{}, "StorageClass", "CSIDriver", "CSINode")
	add("node.k8s.io/v1beta1", "node.k8s.io/v1", legacy{}, "RuntimeClass")
	add("node.k8s.io/v1alpha1", "node.k8s.io/v1", legacy{raise: runtimeClassUp, lower: runtimeClassDown}, "RuntimeClass")
	add("discovery.k8s.io/v1beta1", "discovery.k8s.io/v1", legacy{raise: endpointsUp, lower: endpointsDown}, "EndpointSlice")
	add("events.k8s.io/v1beta1", "events.k8s.io/v1", legacy{}, "Event")
	add("coordination.k8s.io/v1beta1", "coordination.k8s.io/v1", legacy{}, "Lease")
	add("certificates.k8s.io/v1beta1", "certificates.k8s.io/v1", legacy{raise: signingUp}, "CertificateSigningRequest")
	add("apiregistration.k8s.io/v1beta1", "apiregistration.k8s.io/v1", legacy{}, "APIService")
	add("admissionregistration.k8s.io/v1beta1", "admissionregistration.k8s.io/v1", legacy{raise: webhooksUp}, "MutatingWebhookConfiguration", "ValidatingWebhookConfiguration")
	add("apiextensions.k8s.io/v1beta1", "apiextensions.k8s.io/v1", legacy{raise: definitionUp, lower: definitionDown}, "CustomResourceDefinition")
	for _, version := range []string{"v1beta1", "v1beta2", "v1beta3"} {
		add("flowcontrol.apiserver.k8s.io/"+version, "flowcontrol.apiserver.k8s.io/v1", legacy{}, "FlowSchema")
		l := legacy{raise: sharesUp, lower: sharesDown}
		if version == "v1beta3" {
			l = legacy{}
		}
		add("flowcontrol.apiserver.k8s.io/"+version, "flowcontrol.apiserver.k8s.io/v1", l, "PriorityLevelConfiguration")
	}
	return all
}()

func legacyOf(kind schema.GroupVersionKind) *legacy { return table[kind] }
