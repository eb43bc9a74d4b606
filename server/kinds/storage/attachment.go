package storage

import (
	"math"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/core"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

const (
	maxMetadataSize = 256 * 1024
	maxErrorMessage = 1024
)

// VolumeAttachment returns the strategy of VolumeAttachments.
func VolumeAttachment(on kinds.Feature) kinds.Strategy {
	r := attachmentRules{now: on.Has(release.KindRules133), codes: on("MutableCSINodeAllocatableCount")}
	meta := &kinds.WholeMeta
	if r.now {
		meta = &kinds.MetaRules{Wholes: 1}
	}
	return kinds.Typed[*storagev1.VolumeAttachment]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         meta,
		Default:      defaultAttachment,
		Validate: func(a *storagev1.VolumeAttachment) field.ErrorList {
			errs := r.validate(a)
			if r.now {
				return errs
			}
			// A stock server of release 1.32 checks names once more for this version.
			errs = append(errs, rules.DriverName(a.Spec.Attacher, field.NewPath("spec", "attacher"))...)
			return append(errs, validateVolumeOf(a)...)
		},
		ValidateUpdate:      r.validateUpdate,
		ReturnDeletedObject: true,
		Status: &kinds.Status[*storagev1.VolumeAttachment]{
			Prepare: func(a, old *storagev1.VolumeAttachment) {
				metav1.ResetObjectMetaForStatus(&a.ObjectMeta, &old.ObjectMeta)
				if !r.codes {
					dropErrorCode(a.Status.AttachError, old.Status.AttachError)
					dropErrorCode(a.Status.DetachError, old.Status.DetachError)
				}
			},
			Validate:    r.validateUpdate,
			ResetFields: []string{"metadata"},
		},
	}.Strategy()
}

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

// attachmentRules are the rules that depend on the release.
type attachmentRules struct {
	now   bool // those after 1.32
	codes bool // errors have codes
}

// dropErrorCode removes a code, unless the old error has one.
func dropErrorCode(e, old *storagev1.VolumeError) {
	if e != nil && (old == nil || old.ErrorCode == nil) {
		e.ErrorCode = nil
	}
}

// validateVolumeOf checks the name of the volume.
func validateVolumeOf(a *storagev1.VolumeAttachment) field.ErrorList {
	return rules.Optional(a.Spec.Source.PersistentVolumeName, field.NewPath("spec", "source", "persistentVolumeName"), rules.Subdomain)
}

func (r attachmentRules) validate(a *storagev1.VolumeAttachment) field.ErrorList {
	p := field.NewPath("spec")
	var errs field.ErrorList
	if r.now {
		errs = rules.DriverNameSince133(a.Spec.Attacher, p.Child("attacher"))
	} else {
		errs = rules.RequiredIf(errs, a.Spec.Attacher == "", p.Child("attacher"), "")
	}
	errs = append(errs, validateSource(&a.Spec.Source, p.Child("source"), r.now)...)
	errs = append(errs, rules.Subdomain(a.Spec.NodeName, p.Child("nodeName"))...)
	errs = append(errs, validateAttachmentStatus(&a.Status, field.NewPath("status"))...)
	if r.now {
		errs = append(errs, validateVolumeOf(a)...)
	}
	return errs
}

func validateSource(s *storagev1.VolumeAttachmentSource, p *field.Path, now bool) field.ErrorList {
	const one = "must specify exactly one of inlineVolumeSpec and persistentVolumeName"
	switch {
	case s.InlineVolumeSpec == nil && s.PersistentVolumeName == nil:
		return field.ErrorList{field.Required(p, one)}
	case s.InlineVolumeSpec != nil && s.PersistentVolumeName != nil:
		return field.ErrorList{field.Forbidden(p, one)}
	case s.PersistentVolumeName == nil:
		return core.ValidateInlineVolume(s.InlineVolumeSpec, p.Child("inlineVolumeSpec"), now)
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
	if e == nil {
		return nil
	}
	var errs field.ErrorList
	if len(e.Message) > maxErrorMessage {
		// A stock server names the limit of the metadata here.
		errs = append(errs, field.TooLong(p.Child("message"), "", maxMetadataSize))
	}
	if e.ErrorCode != nil && *e.ErrorCode < 0 {
		errs = append(errs, field.Invalid(p.Child("errorCode"), *e.ErrorCode, validation.InclusiveRangeError(0, math.MaxInt32)))
	}
	return errs
}

func (r attachmentRules) validateUpdate(a, old *storagev1.VolumeAttachment) field.ErrorList {
	errs := r.validate(a)
	if !r.now {
		errs = rules.Twice(errs)
	}
	return append(errs, rules.Immutable(a.Spec, old.Spec, field.NewPath("spec"))...)
}
