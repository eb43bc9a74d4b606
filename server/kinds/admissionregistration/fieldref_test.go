package admissionregistration

import (
	"testing"

	"k8s.io/apimachinery/pkg/util/validation/field"
)

// TestFieldRef: the path of a warning may begin with any name of a field, and must be one that can be parsed.
func TestFieldRef(t *testing.T) {
	p := field.NewPath("status", "typeChecking", "expressionWarnings").Index(0).Child("fieldRef")
	for ref, want := range map[string]string{
		"spec.validations[0].expression": "", ".spec": "", "_spec.x": "", "größe": "", "spec['a']": "",
		"":      `status.typeChecking.expressionWarnings[0].fieldRef: Required value`,
		"spec[": `status.typeChecking.expressionWarnings[0].fieldRef: Invalid value: "spec[": invalid JSONPath: unterminated array`,
		"}":     `status.typeChecking.expressionWarnings[0].fieldRef: Invalid value: "}": invalid JSONPath: unrecognized character in action: U+007D '}'`,
	} {
		got := ""
		if errs := validateFieldRef(ref, p); len(errs) > 0 {
			got = errs.ToAggregate().Error()
		}
		if got != want {
			t.Errorf("%q: %s, not %s", ref, got, want)
		}
	}
}
