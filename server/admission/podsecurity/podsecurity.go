// Package podsecurity holds the admission plugin PodSecurity: the labels of a namespace select
// the pod security standards for its pods.
//
// It promises: the plugin refuses pods that violate the enforced standard; it admits pods that violate
// the standards to audit or to warn of, and reports the violations; it refuses namespaces with
// invalid labels of that kind.
package podsecurity

import (
	"context"
	"fmt"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/pod-security-admission/api"
	"k8s.io/pod-security-admission/policy"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/status"
)

// Plugin holds pods against the standards.
type Plugin struct {
	admission.CreatesAndUpdates
	objects    admission.Objects
	standards  policy.Evaluator
	defaults   api.Policy
	exemptions Exemptions
	metrics    *Metrics
	checking   chan struct{} // has an element while the pods of a namespace are checked
}

var _ admission.Validator = (*Plugin)(nil)

// edition is a variant of the standards.
type edition struct {
	release        release.Version
	userNamespaces bool // relaxed for user namespaces
}

// evaluators are the evaluators of each edition. They never change, so all servers of a process share them.
var evaluators sync.Map // of edition, each a func() (policy.Evaluator, error)

func evaluator(e edition) (policy.Evaluator, error) {
	make, ok := evaluators.Load(e)
	if !ok {
		make, _ = evaluators.LoadOrStore(e, sync.OnceValues(func() (policy.Evaluator, error) {
			return policy.NewEvaluator(e.checks(), new(api.MajorMinorVersion(e.release.Major(), e.release.Minor())))
		}))
	}
	return make.(func() (policy.Evaluator, error))()
}

// isolated are the checks that pods in a user namespace pass if the standards are relaxed for them: their
// root user and their /proc are those of the namespace.
var isolated = []policy.CheckID{"procMount", "runAsNonRoot", "runAsUser"}

// checks returns the checks of the library, up to the newest version of the standards in the release. They
// include the other differences between releases: the gate UserNamespacesPodSecurityStandards, and image
// volumes.
func (e edition) checks() []policy.Check {
	checks := policy.DefaultChecks()
	for i := range checks {
		switch id := checks[i].ID; {
		case e.userNamespaces && slices.Contains(isolated, id):
			change(&checks[i], func(strict policy.CheckPodFn) policy.CheckPodFn {
				return func(meta *metav1.ObjectMeta, spec *corev1.PodSpec) policy.CheckResult {
					if spec != nil && spec.HostUsers != nil && !*spec.HostUsers {
						return policy.CheckResult{Allowed: true}
					}
					return strict(meta, spec)
				}
			})
		case !e.release.Has(release.ImagesInRestrictedPods) && id == "restrictedVolumes":
			change(&checks[i], func(lax policy.CheckPodFn) policy.CheckPodFn {
				return func(meta *metav1.ObjectMeta, spec *corev1.PodSpec) policy.CheckResult {
					return lax(meta, withoutImages(spec))
				}
			})
		}
	}
	return checks
}

func change(c *policy.Check, by func(policy.CheckPodFn) policy.CheckPodFn) {
	c.Versions = slices.Clone(c.Versions)
	for i := range c.Versions {
		c.Versions[i].CheckPod = by(c.Versions[i].CheckPod)
	}
}

// withoutImages returns a pod whose volumes with images are of no known type.
func withoutImages(spec *corev1.PodSpec) *corev1.PodSpec {
	image := func(v corev1.Volume) bool { return v.Image != nil }
	if spec == nil || !slices.ContainsFunc(spec.Volumes, image) {
		return spec
	}
	copied := *spec
	copied.Volumes = slices.Clone(spec.Volumes)
	for i := range copied.Volumes {
		copied.Volumes[i].Image = nil
	}
	return &copied
}

// New makes the plugin. userNamespaces means that the standards are relaxed for pods in user
// namespaces. m may be nil.
func New(objects admission.Objects, c Config, v release.Version, userNamespaces bool, m *Metrics) (*Plugin, error) {
	defaults, err := c.policy()
	if err != nil {
		return nil, err
	}
	standards, err := evaluator(edition{v, userNamespaces})
	if err != nil {
		return nil, fmt.Errorf("pod security standards: %w", err)
	}
	return &Plugin{objects: objects, standards: standards, defaults: defaults, exemptions: c.Exemptions, metrics: m, checking: make(chan struct{}, 1)}, nil
}

// Name implements admission.Plugin.
func (*Plugin) Name() string { return "PodSecurity" }

// Validate implements admission.Validator.
func (p *Plugin) Validate(ctx context.Context, a *admission.Attributes) error {
	switch obj := a.Object.(type) {
	case *corev1.Namespace:
		if a.Is("", "namespaces", "") {
			return p.namespace(ctx, a, obj)
		}
	case *corev1.Pod:
		if a.Is("", "pods", a.Subresource) && !harmless[a.Subresource] {
			return p.pod(ctx, a, obj)
		}
	default:
		if a.Subresource != "" {
			return nil
		}
		if t := template(a); t != nil {
			return p.template(ctx, a, t)
		}
	}
	return nil
}

// harmless are subresources that do not change the fields of the pod.
var harmless = map[string]bool{
	"exec": true, "attach": true, "binding": true, "eviction": true, "log": true, "portforward": true, "proxy": true, "status": true,
}

// template returns the pod template of an object; nil if its kind has none.
func template(a *admission.Attributes) *corev1.PodTemplateSpec {
	switch o := a.Object.(type) {
	case *corev1.PodTemplate:
		return &o.Template
	case *corev1.ReplicationController:
		return o.Spec.Template
	case *appsv1.ReplicaSet:
		return &o.Spec.Template
	case *appsv1.Deployment:
		return &o.Spec.Template
	case *appsv1.StatefulSet:
		return &o.Spec.Template
	case *appsv1.DaemonSet:
		return &o.Spec.Template
	case *batchv1.Job:
		return &o.Spec.Template
	case *batchv1.CronJob:
		return &o.Spec.JobTemplate.Spec.Template
	}
	return nil
}

// maxNote bounds the bytes of an audit annotation: each check names all containers that violate it.
const maxNote = 256 << 10

func annotate(a *admission.Attributes, key, value string) {
	a.Annotate(api.AuditAnnotationPrefix+key, status.Brief(value, maxNote))
}

// exempt reports whether a write is none of the standards' business.
func (p *Plugin) exempt(a *admission.Attributes) bool {
	switch {
	case slices.Contains(p.exemptions.Namespaces, a.Namespace):
		annotate(a, api.ExemptionReasonAnnotationKey, "namespace")
	case a.User != nil && a.User.Name != "" && slices.Contains(p.exemptions.Usernames, a.User.Name):
		annotate(a, api.ExemptionReasonAnnotationKey, "user")
	default:
		return false
	}
	p.metrics.exempted(a)
	return true
}

func (p *Plugin) exemptRuntime(class *string) bool {
	return class != nil && *class != "" && slices.Contains(p.exemptions.RuntimeClasses, *class)
}

// standard returns the policy of a namespace; errs are its invalid labels.
func (p *Plugin) standard(ctx context.Context, name string) (standard api.Policy, errs field.ErrorList, err error) {
	obj, err := p.objects.Get(ctx, "namespaces", "", name)
	if err == nil && obj == nil {
		err = apierrors.NewNotFound(corev1.Resource("namespaces"), name)
	}
	if err != nil {
		return standard, nil, err
	}
	standard, errs = api.PolicyToEvaluate(obj.GetLabels(), p.defaults)
	return standard, errs, nil
}

func (p *Plugin) pod(ctx context.Context, a *admission.Attributes, pod *corev1.Pod) error {
	if p.exempt(a) {
		return nil
	}
	standard, errs, err := p.standard(ctx, a.Namespace)
	if err != nil {
		failed := apierrors.NewInternalError(fmt.Errorf("failed to lookup namespace %q", a.Namespace))
		annotate(a, "error", fmt.Sprintf("%s: %v", failed.ErrStatus.Message, err))
		p.metrics.failed(a, true)
		return failed
	}
	if len(errs) == 0 && standard.FullyPrivileged() {
		privileged := api.LevelVersion{Level: api.LevelPrivileged, Version: api.LatestVersion()}
		annotate(a, api.EnforcedPolicyAnnotationKey, privileged.String())
		p.metrics.evaluated(a, enforce, privileged, true)
		return nil
	}
	if old, ok := a.Old.(*corev1.Pod); ok && a.Operation == admission.Update && !matters(pod, old) {
		return nil
	}
	return p.judge(a, standard, errs, &pod.ObjectMeta, &pod.Spec, true)
}

// template only warns: the plugin refuses the pods when they are created.
func (p *Plugin) template(ctx context.Context, a *admission.Attributes, t *corev1.PodTemplateSpec) error {
	if p.exempt(a) {
		return nil
	}
	standard, errs, err := p.standard(ctx, a.Namespace)
	if err != nil {
		annotate(a, "error", fmt.Sprintf("failed to lookup namespace %q: %v", a.Namespace, err))
		p.metrics.failed(a, true)
		return nil
	}
	if len(errs) == 0 && standard.Warn.Level == api.LevelPrivileged && standard.Audit.Level == api.LevelPrivileged {
		return nil
	}
	return p.judge(a, standard, errs, &t.ObjectMeta, &t.Spec, false)
}

// judge evaluates a pod against the levels that its namespace enforces, audits and warns about.
func (p *Plugin) judge(a *admission.Attributes, standard api.Policy, errs field.ErrorList, meta *metav1.ObjectMeta, spec *corev1.PodSpec, enforced bool) error {
	if p.exemptRuntime(spec.RuntimeClassName) {
		annotate(a, api.ExemptionReasonAnnotationKey, "runtimeClass")
		p.metrics.exempted(a)
		return nil
	}
	if len(errs) > 0 {
		annotate(a, "error", fmt.Sprintf("Failed to parse policy: %v", errs.ToAggregate()))
		p.metrics.failed(a, false)
	}
	known := map[api.LevelVersion]policy.AggregateCheckResult{}
	result := func(of api.LevelVersion) policy.AggregateCheckResult {
		r, ok := known[of]
		if !ok {
			r = policy.AggregateCheckResults(p.standards.EvaluatePod(of, meta, spec))
			known[of] = r
		}
		return r
	}
	var refusal error
	if enforced {
		annotate(a, api.EnforcedPolicyAnnotationKey, standard.Enforce.String())
		r := result(standard.Enforce)
		p.metrics.evaluated(a, enforce, standard.Enforce, r.Allowed)
		if !r.Allowed {
			refusal = apierrors.NewForbidden(a.Resource.GroupResource(), a.Name, fmt.Errorf("violates PodSecurity %q: %s", standard.Enforce.String(), r.ForbiddenDetail()))
		}
	}
	would := func(of api.LevelVersion, r policy.AggregateCheckResult) string {
		return fmt.Sprintf("would violate PodSecurity %q: %s", of.String(), r.ForbiddenDetail())
	}
	if r := result(standard.Audit); !r.Allowed {
		annotate(a, api.AuditViolationsAnnotationKey, would(standard.Audit, r))
		p.metrics.evaluated(a, audit, standard.Audit, false)
	}
	if refusal != nil {
		return refusal
	}
	if r := result(standard.Warn); !r.Allowed {
		a.Warn(would(standard.Warn, r))
		p.metrics.evaluated(a, warn, standard.Warn, false)
	}
	return nil
}

// matters reports whether an update changes a field that the standards check. Of the fields that can
// change in a pod, these are the images and the added ephemeral containers.
func matters(pod, old *corev1.Pod) bool {
	sameImages := func(a, b []corev1.Container) bool {
		return slices.EqualFunc(a, b, func(x, y corev1.Container) bool { return x.Image == y.Image })
	}
	if !sameImages(pod.Spec.Containers, old.Spec.Containers) || !sameImages(pod.Spec.InitContainers, old.Spec.InitContainers) {
		return true
	}
	if len(pod.Spec.EphemeralContainers) == 0 {
		return false
	}
	images := make(map[string]string, len(old.Spec.EphemeralContainers))
	for _, c := range slices.Backward(old.Spec.EphemeralContainers) { // the first of a name counts
		images[c.Name] = c.Image
	}
	for _, c := range pod.Spec.EphemeralContainers {
		if image, ok := images[c.Name]; !ok || image != c.Image {
			return true
		}
	}
	return false
}
