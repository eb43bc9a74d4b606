package podspec

import (
	"fmt"
	"regexp"
)

var (
	versionedName = regexp.MustCompile(`\bv1\.([A-Z][A-Za-z]*)`)
	metaNames     = map[string]bool{
		"LabelSelector": true, "LabelSelectorRequirement": true, "LabelSelectorOperator": true,
		"Time": true, "MicroTime": true, "ObjectMeta": true, "OwnerReference": true, "Duration": true,
	}
)

// Printed wraps a value of k8s.io/api for the use as a bad value of an error. A
// stock server validates an internal form of the object, whose Go types live in
// a package named after the group; clients see those names in messages.
func Printed(value any, internalPackage string) fmt.Stringer {
	text := versionedName.ReplaceAllStringFunc(fmt.Sprintf("%#v", value), func(m string) string {
		if name := m[len("v1."):]; !metaNames[name] {
			return internalPackage + "." + name
		}
		return m
	})
	return printed{text}
}

func printedCore(value any) fmt.Stringer { return Printed(value, "core") }
