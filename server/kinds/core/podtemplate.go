package core

import (
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

var templatePath = field.NewPath("template")

// PodTemplate returns the strategy of PodTemplates.
func PodTemplate(on kinds.Feature) kinds.Strategy {
	pods := podspec.For(on)
	return kinds.Typed[*corev1.PodTemplate]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default:      func(t *corev1.PodTemplate) { pods.DefaultTemplate(&t.Template) },
		PrepareForCreate: func(t *corev1.PodTemplate) {
			t.Generation = 1
			pods.DropDisabled(&t.Template.Spec, nil)
		},
		PrepareForUpdate: func(t, old *corev1.PodTemplate) {
			pods.DropDisabled(&t.Template.Spec, &old.Template.Spec)
			t.Generation = old.Generation
			if !rules.Same(t.Template, old.Template) {
				t.Generation++
			}
		},
		Validate: func(t *corev1.PodTemplate) field.ErrorList {
			return podspec.ValidateTemplate(&t.Template, templatePath, pods.TemplateOptions(&t.Template, nil))
		},
		ValidateUpdate: func(t, old *corev1.PodTemplate) field.ErrorList {
			return podspec.ValidateTemplate(&t.Template, templatePath, pods.TemplateOptions(&t.Template, &old.Template))
		},
		Warnings:            func(t, old *corev1.PodTemplate) []string { return podTemplateWarnings(pods, t, old) },
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
}

// PodTemplateColumns is their Table form.
var PodTemplateColumns = columns.Of(func(t *corev1.PodTemplate, _ time.Time) []any {
	names, images := columns.ContainerCells(t.Template.Spec.Containers)
	return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
}, columns.Name(),
	columns.Text("Containers", "Names of each container in the template."),
	columns.Text("Images", "Images referenced by each container in the template."),
	columns.Text("Pod Labels", "The labels for the pod template."))

func podTemplateWarnings(pods podspec.Rules, t, old *corev1.PodTemplate) []string {
	if old != nil && t.Generation == old.Generation {
		return nil
	}
	return pods.Warnings(templatePath, &t.Template)
}
