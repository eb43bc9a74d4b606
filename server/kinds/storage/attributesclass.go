package storage

import (
	"maps"
	"time"

	storagev1 "k8s.io/api/storage/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// defaultAttributes marks the VolumeAttributesClass that lists show as the default.
const defaultAttributes = "volumeattributesclass.alpha.kubernetes.io/is-default-class"

// VolumeAttributesClass returns the strategy of VolumeAttributesClasses.
func VolumeAttributesClass(on kinds.Feature) kinds.Strategy {
	now := on.Has(release.KindRules133)
	return kinds.Typed[*storagev1.VolumeAttributesClass]{
		ValidateName: apivalidation.NameIsDNSSubdomain,
		Meta:         &kinds.WholeMeta,
		Validate:     validateAttributesClass,
		ValidateUpdate: func(c, old *storagev1.VolumeAttributesClass) field.ErrorList {
			return validateAttributesClassUpdate(c, old, now)
		},
		UnconditionalUpdate: true,
		ReturnDeletedObject: true,
	}.Strategy()
}

// VolumeAttributesClassColumns is their Table form.
var VolumeAttributesClassColumns = columns.Of(
	func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
		name := c.Name
		if c.Annotations[defaultAttributes] == "true" {
			name += " (default)"
		}
		return []any{name, c.DriverName, columns.Since(c.CreationTimestamp, now)}
	},
	columns.Name(),
	columns.Text("DriverName", storagev1.VolumeAttributesClass{}.SwaggerDoc()["driverName"]),
	columns.Age(),
)

// VolumeAttributesClassColumnsSince133 is their Table form since release 1.33, which marks no default.
var VolumeAttributesClassColumnsSince133 = columns.Of(
	func(c *storagev1.VolumeAttributesClass, now time.Time) []any {
		return []any{c.Name, c.DriverName, columns.Since(c.CreationTimestamp, now)}
	},
	VolumeAttributesClassColumns.Definitions...,
)

func validateAttributesClass(c *storagev1.VolumeAttributesClass) field.ErrorList {
	errs := validateProvisioner(c.DriverName, field.NewPath("driverName"))
	p := field.NewPath("parameters")
	errs = append(errs, validateParameters(c.Parameters, p)...)
	return rules.RequiredIf(errs, len(c.Parameters) == 0, p, "must contain at least one key/value pair")
}

func validateAttributesClassUpdate(c, old *storagev1.VolumeAttributesClass, now bool) field.ErrorList {
	errs := rules.ForbiddenIf(nil, c.DriverName != old.DriverName, field.NewPath("driverName"), "updates to driverName are forbidden.")
	errs = rules.ForbiddenIf(errs, !maps.Equal(c.Parameters, old.Parameters), field.NewPath("parameters"), "updates to parameters are forbidden.")
	whole := validateAttributesClass(c)
	if now {
		return append(errs, whole...)
	}
	// A stock server of release 1.32 reports the errors of a class that replaces another one twice, and first.
	return append(rules.Twice(whole), errs...)
}
