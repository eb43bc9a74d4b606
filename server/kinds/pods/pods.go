// Package pods is the Pod resource: its strategies, subresources, columns and selectable
// fields.
package pods

import (
	"reflect"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/release"
)

// podRules are the rules of Pods where some gates are on.
type podRules struct {
	spec   podspec.Rules
	resize bool
	whole  bool // pods may have resources as a whole

	since133                                           bool // release.PodRules133
	initResize, wholeResize                            bool // resizes of init containers, and of pods as a whole
	generations, clearNominated                        bool // of the status
	health, healthMessages, digests, extended, claimed bool // fields of the status
	claims, readOnly, users, restartAll                bool
	strictIPs                                          bool
}

// Resource describes pods as core/v1 serves them.
func Resource(on kinds.Feature) *kinds.Resource {
	get, create, connect := []string{"get"}, []string{"create"}, []string{"create", "get"}
	part := func() []string { return []string{"get", "patch", "update"} }
	proxy := []string{"create", "delete", "get", "patch", "update"}
	r := podRules{
		spec: podspec.For(on), resize: on("InPlacePodVerticalScaling"), whole: on("PodLevelResources"),
		since133:   on.Has(release.PodRules133),
		initResize: on("InPlacePodVerticalScalingInitContainers"), wholeResize: on("InPlacePodLevelResourcesVerticalScaling"),
		generations: on("PodObservedGenerationTracking"), clearNominated: on("ClearingNominatedNodeNameAfterBinding"),
		health: on("ResourceHealthStatus"), healthMessages: on("ResourceHealthStatusMessage"), digests: on("ImageVolumeWithDigest"),
		extended: on("DRAExtendedResource"), claimed: on("DRANodeAllocatableResources"),
		claims: on("DynamicResourceAllocation"), readOnly: on("RecursiveReadOnlyMounts"), users: on("SupplementalGroupsPolicy"),
		strictIPs: on("StrictIPCIDRValidation"), restartAll: on("RestartAllContainersOnContainerExits"),
	}
	var resize []kinds.Subresource
	if r.resize {
		own := append(specFieldsBut("containers", "initContainers"), "metadata", "status")
		resize = []kinds.Subresource{{Name: "resize", Kind: "Pod", Verbs: part(), Update: r.partStrategy(r.prepareResize, r.validateResize, own), NoTable: true}}
	}
	whole := r.strategy().Strategy()
	ephemeral := r.partStrategy(r.prepareEphemeral, r.validateEphemeral, append(specFieldsBut("ephemeralContainers"), "metadata", "status"))
	return &kinds.Resource{
		Version: "v1", Plural: "pods", Singular: "pod", Kind: "Pod", ListKind: "PodList",
		ShortNames: []string{"po"}, Categories: []string{"all"}, Namespaced: true,
		Verbs:   []string{"create", "delete", "deletecollection", "get", "list", "patch", "update", "watch"},
		New:     func() kinds.Object { return &corev1.Pod{} },
		NewList: func() runtime.Object { return &corev1.PodList{} },
		Storage: &kinds.Storage{
			Key:      "pods",
			GVK:      corev1.SchemeGroupVersion.WithKind("Pod"),
			Fields:   selectableFields(),
			Indexed:  []string{"spec.nodeName"},
			Strategy: whole,
		},
		Subresources: slices.Concat([]kinds.Subresource{
			{Name: "attach", Kind: "PodAttachOptions", Verbs: connect},
			{Name: "binding", Kind: "Binding", Verbs: create},
			{Name: "ephemeralcontainers", Kind: "Pod", Verbs: part(), Update: ephemeral, NoTable: true},
			{Name: "eviction", Group: "policy", Version: "v1", Kind: "Eviction", Verbs: create},
			{Name: "exec", Kind: "PodExecOptions", Verbs: connect},
			{Name: "log", Kind: "Pod", Verbs: get},
			{Name: "portforward", Kind: "PodPortForwardOptions", Verbs: connect},
			{Name: "proxy", Kind: "PodProxyOptions", Verbs: proxy},
		}, resize, []kinds.Subresource{
			{Name: "status", Kind: "Pod", Verbs: part(), Update: whole.Status},
		}),
		Columns: columnsOf(cells),
	}
}

// strategy returns the rules for the pod itself.
func (r podRules) strategy() kinds.Typed[*corev1.Pod] {
	var counted func(*corev1.Pod) []any
	var ofStatus func(pod, was *corev1.Pod) []string
	if r.since133 {
		ofStatus = statusWarnings
		counted = func(pod *corev1.Pod) []any { return []any{&pod.Spec} }
	}
	return kinds.Typed[*corev1.Pod]{
		Counted:             counted,
		Meta:                &kinds.WholeMeta,
		ValidateName:        validation.NameIsDNSSubdomain,
		Default:             r.setDefaults,
		PrepareForCreateIn:  r.prepareForCreate,
		PrepareForUpdate:    func(pod, was *corev1.Pod) { r.spec.DropDisabled(&pod.Spec, &was.Spec) },
		Validate:            r.validateCreate,
		ValidateUpdate:      r.validateUpdate,
		Warnings:            r.warnings,
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
		Graceful:            graceful,
		Status: &kinds.Status[*corev1.Pod]{
			ByCreate:    true, // a class of service that a client sends is kept
			Prepare:     r.prepareStatus,
			Validate:    r.validateStatus,
			Warnings:    ofStatus,
			ResetFields: []string{"metadata.deletionTimestamp", "metadata.ownerReferences"},
		},
	}
}

// partStrategy returns the rules for a subresource that writes a part of an existing pod.
func (r podRules) partStrategy(prepare func(pod, was *corev1.Pod), validate func(pod, was *corev1.Pod) field.ErrorList, resetFields []string) *kinds.Strategy {
	t := r.strategy()
	t.Status, t.PrepareForCreateIn, t.Validate, t.Warnings = nil, nil, nil, nil
	t.PrepareForUpdate, t.ValidateUpdate = prepare, validate
	if !r.since133 { // the fields that a client owns if it sends them, whether they are taken or not
		t.ResetFields = resetFields
	}
	return new(t.Strategy())
}

// specFieldsBut lists the paths of all fields of a spec but some.
func specFieldsBut(names ...string) []string {
	var paths []string
	t := reflect.TypeOf(corev1.PodSpec{})
	for i := range t.NumField() {
		if json, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ","); !slices.Contains(names, json) {
			paths = append(paths, "spec."+json)
		}
	}
	return paths
}

// selectableFields returns the labels of field selectors. spec.host is the name that
// spec.nodeName once had; status.podIPs is known and always empty.
func selectableFields() []kinds.SelectableField {
	at := func(path ...string) kinds.SelectableField {
		return kinds.SelectableField{Label: strings.Join(path, "."), Path: path}
	}
	hostNetwork := at("spec", "hostNetwork")
	hostNetwork.Default = "false"
	host := at("spec", "nodeName")
	host.Label = "spec.host"
	return []kinds.SelectableField{
		at("spec", "nodeName"), at("spec", "restartPolicy"), at("spec", "schedulerName"), at("spec", "serviceAccountName"),
		hostNetwork, at("status", "phase"), at("status", "podIP"), at("status", "nominatedNodeName"), host,
		{Label: "status.podIPs", Func: func([]byte) string { return "" }},
	}
}
