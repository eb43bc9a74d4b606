package storage

import (
	"fmt"
	"strings"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

const (
	minToken = 600     // seconds
	maxToken = 1 << 32 // seconds
	// minPeriod is that of updates of the number of volumes, in seconds.
	minPeriod = 10
)

// CSIDriver returns the strategy of CSIDrivers.
func CSIDriver(on kinds.Feature) kinds.Strategy {
	counts, tokens, missing := on("MutableCSINodeAllocatableCount"), on("CSIServiceAccountTokenSecrets"), on("VolumeLimitScaling")
	drop := func(s, old *storagev1.CSIDriverSpec) {
		if !counts && old.NodeAllocatableUpdatePeriodSeconds == nil {
			s.NodeAllocatableUpdatePeriodSeconds = nil
		}
		if !tokens && old.ServiceAccountTokenInSecrets == nil {
			s.ServiceAccountTokenInSecrets = nil
		}
		if !missing && old.PreventPodSchedulingIfMissing == nil {
			s.PreventPodSchedulingIfMissing = nil
		}
	}
	return kinds.Typed[*storagev1.CSIDriver]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Default: func(d *storagev1.CSIDriver) {
			defaultDriver(d)
			if missing {
				rules.DefaultTo(&d.Spec.PreventPodSchedulingIfMissing, false)
			}
		},
		PrepareForCreate: func(d *storagev1.CSIDriver) { drop(&d.Spec, &storagev1.CSIDriverSpec{}) },
		PrepareForUpdate: func(d, old *storagev1.CSIDriver) {
			drop(&d.Spec, &old.Spec)
			d.Generation = old.Generation
			if !rules.Same(d.Spec, old.Spec) {
				d.Generation++
			}
		},
		Validate: func(obj *storagev1.CSIDriver) field.ErrorList {
			return validateDriver(&obj.Spec, field.NewPath("spec"))
		},
		ValidateUpdate:      validateDriverUpdate,
		ReturnDeletedObject: true,
		Warnings: func(d, old *storagev1.CSIDriver) []string {
			asked := tokens && len(d.Spec.TokenRequests) > 0 && d.Spec.ServiceAccountTokenInSecrets == nil
			if !asked || old != nil && rules.Same(old.Spec.TokenRequests, d.Spec.TokenRequests) {
				return nil
			}
			return []string{"spec.serviceAccountTokenInSecrets is unset; if supported by this CSI driver, set to true to prevent possible logging of tokens in volume attributes"}
		},
	}.Strategy()
}

// CSIDriverColumns is their Table form.
var CSIDriverColumns = columns.Of(driverCells,
	columns.Name(),
	columns.Flag("AttachRequired", storagev1.CSIDriverSpec{}.SwaggerDoc()["attachRequired"]),
	columns.Flag("PodInfoOnMount", storagev1.CSIDriverSpec{}.SwaggerDoc()["podInfoOnMount"]),
	columns.Flag("StorageCapacity", storagev1.CSIDriverSpec{}.SwaggerDoc()["storageCapacity"]),
	columns.Text("TokenRequests", storagev1.CSIDriverSpec{}.SwaggerDoc()["tokenRequests"]),
	columns.Flag("RequiresRepublish", storagev1.CSIDriverSpec{}.SwaggerDoc()["requiresRepublish"]),
	columns.Text("Modes", storagev1.CSIDriverSpec{}.SwaggerDoc()["volumeLifecycleModes"]),
	columns.Age(),
)

func driverCells(d *storagev1.CSIDriver, now time.Time) []any {
	modes, tokens := "<none>", "<unset>"
	if len(d.Spec.VolumeLifecycleModes) > 0 {
		list := make([]string, len(d.Spec.VolumeLifecycleModes))
		for i, m := range d.Spec.VolumeLifecycleModes {
			list[i] = string(m)
		}
		modes = strings.Join(list, ",")
	}
	if len(d.Spec.TokenRequests) > 0 {
		list := make([]string, len(d.Spec.TokenRequests))
		for i := range d.Spec.TokenRequests {
			list[i] = d.Spec.TokenRequests[i].Audience
		}
		tokens = strings.Join(list, ",")
	}
	attached := d.Spec.AttachRequired
	return []any{
		d.Name, attached == nil || *attached, rules.Value(d.Spec.PodInfoOnMount), rules.Value(d.Spec.StorageCapacity),
		tokens, rules.Value(d.Spec.RequiresRepublish), modes, columns.Since(d.CreationTimestamp, now),
	}
}

func defaultDriver(obj *storagev1.CSIDriver) {
	s := &obj.Spec
	rules.DefaultTo(&s.AttachRequired, true)
	rules.DefaultTo(&s.PodInfoOnMount, false)
	rules.DefaultTo(&s.StorageCapacity, false)
	rules.DefaultTo(&s.FSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)
	if len(s.VolumeLifecycleModes) == 0 {
		s.VolumeLifecycleModes = []storagev1.VolumeLifecycleMode{storagev1.VolumeLifecyclePersistent}
	}
	rules.DefaultTo(&s.RequiresRepublish, false)
	rules.DefaultTo(&s.SELinuxMount, false)
}

func validateDriver(s *storagev1.CSIDriverSpec, p *field.Path) field.ErrorList {
	var errs field.ErrorList
	if s.FSGroupPolicy != nil {
		errs = append(errs, rules.OneOf(*s.FSGroupPolicy, p.Child("fsGroupPolicy"),
			storagev1.FileFSGroupPolicy, storagev1.NoneFSGroupPolicy, storagev1.ReadWriteOnceWithFSTypeFSGroupPolicy)...)
	}
	seen := map[string]bool{}
	for i := range rules.Until(&errs, s.TokenRequests) {
		r, at := &s.TokenRequests[i], p.Child("tokenRequests").Index(i)
		if seen[r.Audience] {
			errs = append(errs, field.Duplicate(at.Child("audience"), r.Audience))
			continue
		}
		seen[r.Audience] = true
		if r.ExpirationSeconds == nil {
			continue
		}
		errs = rules.InvalidIf(errs, *r.ExpirationSeconds < minToken, at.Child("expirationSeconds"), r.ExpirationSeconds, "may not specify a duration less than 10 minutes")
		if *r.ExpirationSeconds > maxToken {
			errs = append(errs, field.Invalid(at.Child("expirationSeconds"), *r.ExpirationSeconds, fmt.Sprintf("may not specify a duration larger than 2^%d seconds", 32)))
		}
	}
	for _, m := range rules.Until(&errs, s.VolumeLifecycleModes) {
		errs = append(errs, rules.OneOf(m, p.Child("volumeLifecycleModes"), storagev1.VolumeLifecyclePersistent, storagev1.VolumeLifecycleEphemeral)...)
	}
	if period := s.NodeAllocatableUpdatePeriodSeconds; period != nil && *period < minPeriod {
		errs = append(errs, field.Invalid(p.Child("nodeAllocatableUpdatePeriodSeconds"), *period, fmt.Sprintf("must be greater than or equal to %d seconds", minPeriod)))
	}
	if secrets := s.ServiceAccountTokenInSecrets; secrets != nil && len(s.TokenRequests) == 0 {
		errs = append(errs, field.Invalid(p.Child("serviceAccountTokenInSecrets"), secrets, "serviceAccountTokenInSecrets is set but no tokenRequests are specified"))
	}
	return errs
}

func validateDriverUpdate(d, old *storagev1.CSIDriver) field.ErrorList {
	p := field.NewPath("spec")
	errs := validateDriver(&d.Spec, p)
	errs = append(errs, rules.Immutable(d.Spec.AttachRequired, old.Spec.AttachRequired, p.Child("attachedRequired"))...)
	return append(errs, rules.Immutable(d.Spec.VolumeLifecycleModes, old.Spec.VolumeLifecycleModes, p.Child("volumeLifecycleModes"))...)
}
