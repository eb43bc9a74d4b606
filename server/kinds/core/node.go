package core

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	netutils "k8s.io/utils/net"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// Node returns the strategy of Nodes. A new one keeps the status it comes with.
func Node(on kinds.Feature) kinds.Strategy {
	r := nodeRules{now: on.Has(release.KindRules133), declared: on("NodeDeclaredFeatures"), addresses: rules.Addresses{Strict: on("StrictIPCIDRValidation")}}
	return kinds.Typed[*corev1.Node]{
		ValidateName:     apivalidation.NameIsDNSSubdomain,
		Meta:             &kinds.WholeMeta,
		Default:          defaultNode,
		PrepareForCreate: func(n *corev1.Node) { r.drop(n, &corev1.Node{}) },
		PrepareForUpdate: r.drop,
		Validate:         r.validate,
		ValidateUpdate: func(n, old *corev1.Node) field.ErrorList {
			return append(r.validate(n), validateNodeUpdate(n, old)...)
		},
		Warnings:            r.warnings,
		UnconditionalUpdate: true,
		Status: &kinds.Status[*corev1.Node]{
			ByCreate: true,
			Prepare:  r.drop,
			Validate: validateNodeUpdate,
		},
	}.Strategy()
}

// warnings warns of fields that do nothing any more.
func (r nodeRules) warnings(obj, _ *corev1.Node) []string {
	var warnings []string
	s := &obj.Spec
	if s.ConfigSource != nil {
		warnings = append(warnings, "spec.configSource: the feature is removed")
	}
	if s.DoNotUseExternalID != "" {
		warnings = append(warnings, "spec.externalID: this field is deprecated, and is unused by Kubernetes")
	}
	for i, cidr := range s.PodCIDRs {
		if r.now {
			warnings = append(warnings, rules.CIDRWarnings(cidr, specPath.Child("podCIDRs").Index(i))...)
		}
	}
	return warnings
}

// NodeFields are the selectable fields of Nodes.
var NodeFields = []kinds.SelectableField{
	{Label: "spec.unschedulable", Path: []string{"spec", "unschedulable"}, Default: "false"},
}

// NodeColumns is their Table form.
var NodeColumns = columns.Of(nodeCells, nodeColumns...)

// NodeColumnsSince133 is their Table form since release 1.33: it shows the architecture of the kernel.
var NodeColumnsSince133 = columns.Of(func(n *corev1.Node, now time.Time) []any {
	cells := nodeCells(n, now)
	if arch := n.Status.NodeInfo.Architecture; arch != "" {
		cells[kernelCell] = fmt.Sprintf("%s (%s)", cells[kernelCell], arch)
	}
	return cells
}, nodeColumns...)

const kernelCell = 8

var nodeColumns = []columns.Column{columns.Name(),
	columns.Text("Status", "The status of the node"),
	columns.Text("Roles", "The roles of the node"),
	columns.Age(),
	columns.Text("Version", corev1.NodeSystemInfo{}.SwaggerDoc()["kubeletVersion"]),
	columns.Wide(columns.Text("Internal-IP", corev1.NodeStatus{}.SwaggerDoc()["addresses"])),
	columns.Wide(columns.Text("External-IP", corev1.NodeStatus{}.SwaggerDoc()["addresses"])),
	columns.Wide(columns.Text("OS-Image", corev1.NodeSystemInfo{}.SwaggerDoc()["osImage"])),
	columns.Wide(columns.Text("Kernel-Version", corev1.NodeSystemInfo{}.SwaggerDoc()["kernelVersion"])),
	columns.Wide(columns.Text("Container-Runtime", corev1.NodeSystemInfo{}.SwaggerDoc()["containerRuntimeVersion"]))}

func nodeCells(n *corev1.Node, now time.Time) []any {
	or := func(value, other string) string {
		if value == "" {
			return other
		}
		return value
	}
	info := &n.Status.NodeInfo
	return []any{
		n.Name, nodeReadiness(n), or(strings.Join(nodeRoles(n), ","), "<none>"), columns.Since(n.CreationTimestamp, now), info.KubeletVersion,
		or(nodeAddress(n, corev1.NodeInternalIP), "<none>"), or(nodeAddress(n, corev1.NodeExternalIP), "<none>"),
		or(info.OSImage, "<unknown>"), or(info.KernelVersion, "<unknown>"), or(info.ContainerRuntimeVersion, "<unknown>"),
	}
}

func nodeReadiness(n *corev1.Node) string {
	status := "Unknown"
	for _, c := range n.Status.Conditions {
		if c.Type != corev1.NodeReady {
			continue
		}
		if status = "NotReady"; c.Status == corev1.ConditionTrue {
			status = "Ready"
		}
	}
	if n.Spec.Unschedulable {
		status += ",SchedulingDisabled"
	}
	return status
}

// nodeRoles reads the roles from labels: the role in the key, or under an older key as value.
func nodeRoles(n *corev1.Node) []string {
	roles := make(map[string]bool)
	for key, value := range n.Labels {
		if role, ok := strings.CutPrefix(key, "node-role.kubernetes.io/"); ok && role != "" {
			roles[role] = true
		} else if key == "kubernetes.io/role" && value != "" {
			roles[value] = true
		}
	}
	return slices.Sorted(maps.Keys(roles))
}

func nodeAddress(n *corev1.Node, t corev1.NodeAddressType) string {
	for _, a := range n.Status.Addresses {
		if a.Type == t {
			return a.Address
		}
	}
	return ""
}

// defaultNode makes podCIDR the first of podCIDRs, and the allocatable resources equal to the capacity,
// unless the client sets them.
func defaultNode(n *corev1.Node) {
	if first := n.Spec.PodCIDR; first != "" && (len(n.Spec.PodCIDRs) == 0 || n.Spec.PodCIDRs[0] != first) {
		n.Spec.PodCIDRs = []string{first} // older clients know no other field
	}
	if len(n.Spec.PodCIDRs) > 0 && n.Spec.PodCIDR == "" {
		n.Spec.PodCIDR = n.Spec.PodCIDRs[0]
	}
	podspec.DefaultResources(n.Status.Capacity, n.Status.Allocatable)
	if len(n.Status.Allocatable) == 0 && n.Status.Capacity != nil {
		n.Status.Allocatable = n.Status.Capacity.DeepCopy()
	}
}

// nodeRules are the rules of Nodes that depend on the release.
type nodeRules struct {
	now       bool // those after 1.32
	declared  bool // nodes declare features
	addresses rules.Addresses
}

// drop removes fields that are not or no longer served, unless old has them.
func (r nodeRules) drop(n, old *corev1.Node) {
	if old.Spec.ConfigSource == nil {
		n.Spec.ConfigSource = nil
	}
	if old.Status.Config == nil {
		n.Status.Config = nil
	}
	if !r.declared && old.Status.DeclaredFeatures == nil {
		n.Status.DeclaredFeatures = nil
	}
}

func (r nodeRules) validate(n *corev1.Node) field.ErrorList {
	errs := validateNodeAnnotations(n.Annotations, metaPath.Child("annotations"))
	errs = append(errs, validateTaints(n.Spec.Taints, metaPath.Child("taints"))...)
	errs = append(errs, validateNodeResources(n)...)
	if swap := n.Status.NodeInfo.Swap; swap != nil && swap.Capacity != nil {
		errs = rules.InvalidIf(errs, *swap.Capacity <= 0, metaPath.Child("nodeSwapStatus", "capacity"), *swap.Capacity, "must be greater than zero")
	}
	errs = append(errs, validateDeclared(n.Status.DeclaredFeatures)...)
	return append(errs, r.validatePodCIDRs(n)...)
}

func validateNodeResources(n *corev1.Node) field.ErrorList {
	var errs field.ErrorList
	for _, name := range rules.Until(&errs, sorted(n.Status.Capacity)) {
		errs = append(errs, podspec.ValidateResourceQuantity(name, n.Status.Capacity[name], statusPath.Child("capacity", string(name)))...)
	}
	for _, name := range rules.Until(&errs, sorted(n.Status.Allocatable)) {
		errs = append(errs, podspec.ValidateResourceQuantity(name, n.Status.Allocatable[name], statusPath.Child("allocatable", string(name)))...)
	}
	return errs
}

// declaredFeature is the name of a feature that a node declares.
var declaredFeature = regexp.MustCompile(`^[A-Z][a-zA-Z0-9]*(/[a-zA-Z][a-zA-Z0-9]*)*$`)

// validateDeclared checks the features that a node declares: each once, in order.
func validateDeclared(list []string) field.ErrorList {
	var errs field.ErrorList
	path := statusPath.Child("declaredFeatures")
	for i, name := range rules.Until(&errs, list) {
		switch {
		case len(name) > validation.DNS1123SubdomainMaxLength:
			errs = append(errs, field.Invalid(path.Index(i), name, fmt.Sprintf("invalid feature name %q: must be no more than %d characters", name, validation.DNS1123SubdomainMaxLength)))
		case !declaredFeature.MatchString(name):
			errs = append(errs, field.Invalid(path.Index(i), name, fmt.Sprintf("invalid feature name %q: must start with an UpperCamelCase segment, with subsequent segments separated by '/' (e.g., MyFeature or MyFeature/mySubFeature), and contain only alphanumeric characters and slashes", name)))
		}
		if i+1 == len(list) {
			break
		}
		switch next := list[i+1]; {
		case name == next:
			errs = append(errs, field.Duplicate(path.Index(i+1), next))
		case name > next:
			errs = append(errs, field.Invalid(path.Index(i+1), next, "list must be sorted alphabetically"))
		}
	}
	return errs
}

func (r nodeRules) validatePodCIDRs(n *corev1.Node) field.ErrorList {
	cidrs, path := n.Spec.PodCIDRs, specPath.Child("podCIDRs")
	var errs field.ErrorList
	for i, cidr := range rules.Until(&errs, cidrs) {
		errs = append(errs, r.addresses.CIDR(cidr, path.Index(i))...)
	}
	if len(cidrs) < 2 {
		return errs
	}
	dual, err := netutils.IsDualStackCIDRStrings(cidrs)
	if err != nil {
		errs = append(errs, field.InternalError(path, fmt.Errorf("invalid PodCIDRs. failed to check with dual stack with error:%v", err)))
	}
	errs = rules.InvalidIf(errs, !dual || len(cidrs) > 2, path, cidrs, "may specify no more than one CIDR for each IP family")
	if r.now {
		return errs
	}
	seen := rules.Seen[string]{}
	for i, cidr := range rules.Until(&errs, cidrs) {
		errs = rules.DuplicateIf(errs, seen.Again(cidr), path.Index(i), cidr)
	}
	return errs
}

// validateNodeUpdate checks the changes: addresses and identity are set once.
func validateNodeUpdate(n, old *corev1.Node) field.ErrorList {
	errs := validateNodeAnnotations(n.Annotations, metaPath.Child("annotations"))
	errs = append(errs, validateNodeResources(n)...)
	errs = append(errs, validateDeclared(n.Status.DeclaredFeatures)...)
	seen := rules.Seen[corev1.NodeAddress]{}
	for i, a := range rules.Until(&errs, n.Status.Addresses) {
		if seen.Again(a) {
			errs = append(errs, field.Duplicate(statusPath.Child("addresses").Index(i), rules.Shown(a)))
		}
	}
	errs = append(errs, validatePodCIDRsUpdate(n.Spec.PodCIDRs, old.Spec.PodCIDRs, specPath.Child("podCIDRs"))...)
	errs = rules.ForbiddenIf(errs, old.Spec.ProviderID != "" && old.Spec.ProviderID != n.Spec.ProviderID, specPath.Child("providerID"), "node updates may not change providerID except from \"\" to valid")
	errs = append(errs, validateTaints(n.Spec.Taints, metaPath.Child("taints"))...)
	return rules.ForbiddenIf(errs, n.Spec.DoNotUseExternalID != old.Spec.DoNotUseExternalID, specPath.Child("externalID"), "may not be updated")
}

// validatePodCIDRsUpdate has an error for each range that is another one, or one if there are more or fewer ranges.
func validatePodCIDRsUpdate(cidrs, old []string, path *field.Path) field.ErrorList {
	const fixed = `node updates may not change podCIDR except from "" to valid`
	var errs field.ErrorList
	if len(old) > 0 && len(old) != len(cidrs) {
		return append(errs, field.Forbidden(path, fixed))
	}
	for i, was := range rules.Until(&errs, old) {
		errs = rules.ForbiddenIf(errs, was != cidrs[i], path, fixed)
	}
	return errs
}

func validateTaints(taints []corev1.Taint, path *field.Path) field.ErrorList {
	type identity struct {
		key    string
		effect corev1.TaintEffect
	}
	var errs field.ErrorList
	seen := make(map[identity]bool)
	for i, t := range rules.Until(&errs, taints) {
		p := path.Index(i)
		errs = append(errs, metavalidation.ValidateLabelName(t.Key, p.Child("key"))...)
		if messages := validation.IsValidLabelValue(t.Value); len(messages) > 0 {
			errs = append(errs, field.Invalid(p.Child("value"), t.Value, strings.Join(messages, ";")))
		}
		if t.Effect == "" {
			errs = append(errs, field.Required(p.Child("effect"), ""))
		} else {
			errs = append(errs, rules.OneOf(t.Effect, p.Child("effect"),
				corev1.TaintEffectNoSchedule, corev1.TaintEffectPreferNoSchedule, corev1.TaintEffectNoExecute)...)
		}
		id := identity{t.Key, t.Effect}
		if seen[id] {
			duplicate := field.Duplicate(p, rules.Shown(t))
			duplicate.Detail = "taints must be unique by key and effect pair"
			errs = append(errs, duplicate)
		}
		seen[id] = true
	}
	return errs
}

// Annotations that have become fields.
const (
	taintsAnnotation    = "scheduler.alpha.kubernetes.io/taints"
	avoidPodsAnnotation = "scheduler.alpha.kubernetes.io/preferAvoidPods"
)

func validateNodeAnnotations(annotations map[string]string, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if text := annotations[taintsAnnotation]; text != "" && len(text) <= apivalidation.TotalAnnotationSizeLimitB { // a longer one is refused anyway
		var taints []corev1.Taint
		if err := json.Unmarshal([]byte(text), &taints); err != nil {
			errs = append(errs, field.Invalid(path, taintsAnnotation, err.Error()))
		} else {
			errs = append(errs, validateTaints(taints, path.Child(taintsAnnotation))...)
		}
	}
	if text := annotations[avoidPodsAnnotation]; text != "" && len(text) <= apivalidation.TotalAnnotationSizeLimitB {
		errs = append(errs, validateAvoidPods(text, path)...)
	}
	return errs
}

func validateAvoidPods(text string, path *field.Path) field.ErrorList {
	var avoid corev1.AvoidPods
	if err := json.Unmarshal([]byte(text), &avoid); err != nil {
		return field.ErrorList{field.Invalid(path.Child("AvoidPods"), avoidPodsAnnotation, err.Error())}
	}
	var errs field.ErrorList
	for i, entry := range rules.Until(&errs, avoid.PreferAvoidPods) {
		p := path.Child(avoidPodsAnnotation).Index(i).Child("PodSignature")
		controller := entry.PodSignature.PodController
		switch {
		case controller == nil:
			errs = append(errs, field.Required(p, ""))
		case !rules.Value(controller.Controller):
			errs = append(errs, field.Invalid(p.Child("PodController", "Controller"), rules.Value(controller.Controller), "must point to a controller"))
		}
	}
	return errs
}
