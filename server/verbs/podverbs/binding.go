package podverbs

import (
	"errors"
	"fmt"
	"maps"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/pods"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/server/writes"
)

// bind assigns a pod to a node. It serves pods/NAME/binding, and bindings, where only the body names the pod.
func bind(h *verbs.Handler, c *verbs.Call) error {
	binding := &corev1.Binding{}
	binding.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Binding"))
	options, err := post(h, c, binding)
	if err != nil {
		return err
	}
	if err := h.Writes.Admit(c.R.Context(), c.Write(options, "", options.DryRun), admission.Create, binding, func() error {
		if err := matchName(c, "Binding", binding); err != nil {
			return err
		}
		return plain(validateBinding(binding).ToAggregate())
	}); err != nil {
		return err
	}
	if binding.Name == "" {
		return apierrors.NewBadRequest("Name parameter required.")
	}
	now := metav1.Now()
	if _, err := h.Writes.Rewrite(c.R.Context(), c.Write(options, "", options.DryRun), podPlace(h, c, binding.Name), func(obj kinds.Object) error {
		pod := obj.(*corev1.Pod)
		if err := assign(pod, binding, now, len(options.DryRun) > 0); err != nil {
			return err
		}
		if h.Enabled("PodTopologyLabelsAdmission") {
			pod.Labels = merged(pod.Labels, binding.Labels)
		}
		if h.Enabled("ClearingNominatedNodeNameAfterBinding") {
			pod.Status.NominatedNodeName = "" // of another node, maybe
		}
		return nil
	}); err != nil {
		return err
	}
	return succeed(h, c)
}

func validateBinding(b *corev1.Binding) field.ErrorList {
	var errs field.ErrorList
	if k := b.Target.Kind; k != "" && k != "Node" {
		errs = append(errs, field.NotSupported(field.NewPath("target", "kind"), k, []string{"Node", "<empty>"}))
	}
	if b.Target.Name == "" {
		errs = append(errs, field.Required(field.NewPath("target", "name"), ""))
	}
	return errs
}

// assign binds the pod of a binding to its node, if that is possible.
func assign(pod *corev1.Pod, b *corev1.Binding, now metav1.Time, dry bool) error {
	if err := isSame(pod, b, dry); err != nil {
		return err
	}
	refuse := func(format string, args ...any) error {
		return apierrors.NewConflict(schema.GroupResource{Resource: "pods/binding"}, pod.Name, fmt.Errorf(format, args...))
	}
	switch {
	case pod.DeletionTimestamp != nil:
		return refuse("pod %s is being deleted, cannot be assigned to a host", pod.Name)
	case pod.Spec.NodeName != "":
		return refuse("pod %v is already assigned to node %q", pod.Name, pod.Spec.NodeName)
	case len(pod.Spec.SchedulingGates) != 0:
		return refuse("pod %v has non-empty .spec.schedulingGates", pod.Name)
	}
	pod.Spec.NodeName = b.Target.Name
	pod.Annotations = merged(pod.Annotations, b.Annotations)
	pods.SetCondition(&pod.Status, corev1.PodCondition{Type: corev1.PodScheduled, Status: corev1.ConditionTrue}, now)
	return nil
}

// merged returns the values of a pod, replaced and extended by those of its binding.
func merged(pod, binding map[string]string) map[string]string {
	if len(binding) > 0 && pod == nil {
		pod = make(map[string]string, len(binding))
	}
	maps.Copy(pod, binding)
	return pod
}

// isSame checks the uid and the version if the binding has them.
func isSame(pod *corev1.Pod, b *corev1.Binding, dry bool) error {
	differs := ""
	switch {
	case b.UID != "" && b.UID != pod.UID:
		differs = fmt.Sprintf("UID in precondition: %v, UID in object meta: %v", b.UID, pod.UID)
	case b.ResourceVersion != "" && b.ResourceVersion != pod.ResourceVersion:
		differs = fmt.Sprintf("ResourceVersion in precondition: %v, ResourceVersion in object meta: %v", b.ResourceVersion, pod.ResourceVersion)
	default:
		return nil
	}
	root := "/registry"
	if dry { // a stock server checks it before it has read the key from etcd
		root = ""
	}
	return writes.PreconditionFailed(apierrors.NewConflict(schema.GroupResource{Resource: "pods"}, pod.Name, errors.New(
		"StorageError: invalid object, Code: 4, Key: "+root+"/pods/"+pod.Namespace+"/"+pod.Name+
			", ResourceVersion: 0, AdditionalErrorMsg: Precondition failed: "+differs)))
}
