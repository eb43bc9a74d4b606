package core

import (
	"context"
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

// PodTemplate is how PodTemplates are written.
var PodTemplate = kinds.Strategy{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Default:      defaults(func(t *corev1.PodTemplate) { podspec.DefaultTemplate(&t.Template) }),
	PrepareForCreate: prepares(func(t *corev1.PodTemplate) {
		t.Generation = 1
		podspec.DropDisabled(&t.Template.Spec, nil)
	}),
	PrepareForUpdate: preparesUpdate(func(t, old *corev1.PodTemplate) {
		podspec.DropDisabled(&t.Template.Spec, &old.Template.Spec)
		t.Generation = old.Generation
		if !rules.Same(t.Template, old.Template) {
			t.Generation++
		}
	}),
	Validate: checks(func(t *corev1.PodTemplate) field.ErrorList {
		return podspec.ValidateTemplate(&t.Template, templatePath, podspec.TemplateOptions(&t.Template, nil))
	}),
	ValidateUpdate: updateChecks(func(t, old *corev1.PodTemplate) field.ErrorList {
		return podspec.ValidateTemplate(&t.Template, templatePath, podspec.TemplateOptions(&t.Template, &old.Template))
	}),
	Warnings:            podTemplateWarnings,
	UnconditionalUpdate: true,
	ReturnDeletedObject: true,
}

// PodTemplateColumns is their Table form.
var PodTemplateColumns = columns.Of(func(t *corev1.PodTemplate, _ time.Time) []any {
	names, images := columns.ContainerCells(t.Template.Spec.Containers)
	return []any{t.Name, names, images, labels.FormatLabels(t.Template.Labels)}
}, columns.Name(),
	columns.Text("Containers", "Names of each container in the template."),
	columns.Text("Images", "Images referenced by each container in the template."),
	columns.Text("Pod Labels", "The labels for the pod template."))

func podTemplateWarnings(_ context.Context, obj, before kinds.Object) []string {
	t := obj.(*corev1.PodTemplate)
	old, ok := before.(*corev1.PodTemplate)
	if !ok || old == nil {
		return podspec.Warnings(templatePath, &t.Template, nil)
	}
	if t.Generation == old.Generation {
		return nil
	}
	return podspec.Warnings(templatePath, &t.Template, &old.Template)
}
