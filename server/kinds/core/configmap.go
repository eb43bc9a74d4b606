package core

import (
	"reflect"
	"time"

	corev1 "k8s.io/api/core/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/podspec"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// ConfigMap has the rules for ConfigMaps.
var ConfigMap = kinds.Typed[*corev1.ConfigMap]{
	ValidateName:        apivalidation.NameIsDNSSubdomain,
	Meta:                &kinds.WholeMeta,
	Default:             func(c *corev1.ConfigMap) { nullIsEmpty(c.BinaryData) },
	Validate:            validateConfigMap,
	ValidateUpdate:      validateConfigMapUpdate,
	UnconditionalUpdate: true,
}.Strategy()

// ConfigMapColumns is their Table form.
var ConfigMapColumns = columns.Of(func(c *corev1.ConfigMap, now time.Time) []any {
	return []any{c.Name, int64(len(c.Data) + len(c.BinaryData)), columns.Since(c.CreationTimestamp, now)}
}, columns.Name(), columns.Text("Data", corev1.ConfigMap{}.SwaggerDoc()["data"]), columns.Age())

func validateConfigMap(c *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	size := 0
	data, binary := field.NewPath("data"), field.NewPath("binaryData")
	for _, key := range rules.Until(&errs, sorted(c.Data)) {
		errs = append(errs, dataKey(key, data)...)
		if _, ok := c.BinaryData[key]; ok {
			errs = append(errs, field.Invalid(data.Key(key), key, "duplicate of key present in binaryData"))
		}
		size += len(c.Data[key])
	}
	for _, key := range rules.Until(&errs, sorted(c.BinaryData)) {
		errs = append(errs, dataKey(key, binary)...)
		size += len(c.BinaryData[key])
	}
	if size > corev1.MaxSecretSize {
		errs = append(errs, field.TooLong(field.NewPath(""), "", corev1.MaxSecretSize))
	}
	return errs
}

func dataKey(key string, path *field.Path) field.ErrorList {
	if faults := podspec.DataKeyFaults(key); faults != nil {
		return rules.Messages(path.Key(key), key, faults)
	}
	return nil
}

func validateConfigMapUpdate(c, old *corev1.ConfigMap) field.ErrorList {
	var errs field.ErrorList
	if rules.Value(old.Immutable) {
		errs = append(errs, frozen("immutable", !rules.Value(c.Immutable))...)
		errs = append(errs, frozen("data", !reflect.DeepEqual(c.Data, old.Data))...)
		errs = append(errs, frozen("binaryData", !reflect.DeepEqual(c.BinaryData, old.BinaryData))...)
	}
	return append(errs, validateConfigMap(c)...)
}

// frozen returns the error about a change of an object that was set immutable.
func frozen(name string, changed bool) field.ErrorList {
	return rules.ForbiddenIf(nil, changed, field.NewPath(name), "field is immutable when `immutable` is set")
}
