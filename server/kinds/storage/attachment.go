package storage

import (
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	maxMetadataSize = 256 * 1024
	maxErrorMessage = 1024
)

// VolumeAttachment is how VolumeAttachments are written.
var VolumeAttachment = kinds.Typed[*storagev1.VolumeAttachment]{
	ValidateName: apivalidation.NameIsDNSSubdomain,
	Meta:         &kinds.WholeMeta,
	Default:      defaultAttachment,
	Validate: func(a *storagev1.VolumeAttachment) field.ErrorList {
		// A stock server checks names once more for this version.
		errs := append(validateAttachment(a), rules.DriverName(a.Spec.Attacher, field.NewPath("spec", "attacher"))...)
		if name := a.Spec.Source.PersistentVolumeName; name != nil {
			errs = append(errs, rules.Subdomain(*name, field.NewPath("spec", "source", "persistentVolumeName"))...)
		}
		return errs
	},
	ValidateUpdate:      validateAttachmentUpdate,
	ReturnDeletedObject: true,
	Status: &kinds.Status[*storagev1.VolumeAttachment]{
		Prepare: func(a, old *storagev1.VolumeAttachment) {
			metav1.ResetObjectMetaForStatus(&a.ObjectMeta, &old.ObjectMeta)
		},
		Validate:    validateAttachmentUpdate,
		ResetFields: []string{"metadata"},
	},
}.Strategy()

// VolumeAttachmentColumns is their Table form.
var VolumeAttachmentColumns = columns.Of(
	func(a *storagev1.VolumeAttachment, now time.Time) []any {
		return []any{
			a.Name, a.Spec.Attacher, rules.Value(a.Spec.Source.PersistentVolumeName), a.Spec.NodeName,
			a.Status.Attached, columns.Since(a.CreationTimestamp, now),
		}
	},
	columns.Name(),
	columns.Column{Name: "Attacher", Type: "string", Format: "name", Description: storagev1.VolumeAttachmentSpec{}.SwaggerDoc()["attacher"]},
	columns.Text("PV", storagev1.VolumeAttachmentSource{}.SwaggerDoc()["persistentVolumeName"]),
	columns.Text("Node", storagev1.VolumeAttachmentSpec{}.SwaggerDoc()["nodeName"]),
	columns.Flag("Attached", storagev1.VolumeAttachmentStatus{}.SwaggerDoc()["attached"]),
	columns.Age(),
)

func defaultAttachment(obj *storagev1.VolumeAttachment) {
	if s := obj.Spec.Source.InlineVolumeSpec; s != nil {
		core.DefaultInlineVolume(s)
	}
}

func validateAttachment(a *storagev1.VolumeAttachment) field.ErrorList {
	p := field.NewPath("spec")
	errs := rules.RequiredIf(nil, a.Spec.Attacher == "", p.Child("attacher"), "")
	errs = append(errs, validateSource(&a.Spec.Source, p.Child("source"))...)
	errs = append(errs, rules.Subdomain(a.Spec.NodeName, p.Child("nodeName"))...)
	return append(errs, validateAttachmentStatus(&a.Status, field.NewPath("status"))...)
}

func validateSource(s *storagev1.VolumeAttachmentSource, p *field.Path) field.ErrorList {
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch {
	case s.InlineVolumeSpec == nil && s.PersistentVolumeName == nil:
		return field.ErrorList{field.Required(p, one)}
	case s.InlineVolumeSpec != nil && s.PersistentVolumeName != nil:
		return field.ErrorList{field.Forbidden(p, one)}
	case s.PersistentVolumeName == nil:
		return core.ValidateInlineVolume(s.InlineVolumeSpec, p.Child("inlineVolumeSpec"))
	}
	return rules.RequiredIf(nil, *s.PersistentVolumeName == "", p.Child("persistentVolumeName"), "must specify non empty persistentVolumeName")
}

func validateAttachmentStatus(s *storagev1.VolumeAttachmentStatus, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	size := 0
	for k, v := range s.AttachmentMetadata {
		size += len(k) + len(v)
	}
	if size > maxMetadataSize {
		errs = append(errs, field.TooLong(p.Child("attachmentMetadata"), "", maxMetadataSize))
	}
	errs = append(errs, validateVolumeError(s.AttachError, p.Child("attachError"))...)
	return append(errs, validateVolumeError(s.DetachError, p.Child("detachError"))...)
}

func validateVolumeError(e *storagev1.VolumeError, p *field.Path) field.ErrorList {
	if e == nil || len(e.Message) <= maxErrorMessage {
		return nil
	}
	// A stock server names the limit of the metadata here.
	return field.ErrorList{field.TooLong(p.Child("message"), "", maxMetadataSize)}
}

func validateAttachmentUpdate(a, old *storagev1.VolumeAttachment) field.ErrorList {
	return append(rules.Twice(validateAttachment(a)), rules.Immutable(a.Spec, old.Spec, field.NewPath("spec"))...)
}
