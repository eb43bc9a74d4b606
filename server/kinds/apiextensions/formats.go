package apiextensions

import (
	"fmt"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/util/version"
	"k8s.io/kube-openapi/pkg/validation/spec"

	"github.com/rowlock/rowlock/server/release"
)

// unknownFormats warns of the formats in a definition that mean nothing, but for those that old has.
func unknownFormats(of release.Version, d, old *apiextensionsv1.CustomResourceDefinition) (warnings []string) {
	known := map[string]bool{}
	for _, format := range formatsWithout(of, old) {
		known[format] = true
	}
	for _, format := range formatsWithout(of, d) {
		if !known[format] {
			known[format] = true
			warnings = append(warnings, fmt.Sprintf("unrecognized format %q", format))
		}
	}
	return warnings
}

// formatsWithout returns the formats in a definition that mean nothing in the release.
func formatsWithout(of release.Version, d *apiextensionsv1.CustomResourceDefinition) (formats []string) {
	if d == nil {
		return nil
	}
	in, err := inward(d)
	if err != nil {
		return nil // it is refused
	}
	oldest := of.MinCompatibility()
	compatible := version.MajorMinor(uint(oldest.Major()), uint(oldest.Minor()))
	for s := range schemas(&in.Spec) {
		for n := range nodes(s) {
			if n.Format != "" {
				formats = append(formats, unknownIn(n, compatible)...)
			}
		}
	}
	return formats
}

func unknownIn(s *apiext.JSONSchemaProps, compatible *version.Version) []string {
	return validation.GetUnrecognizedFormats(&spec.Schema{SchemaProps: spec.SchemaProps{Format: s.Format, Type: []string{s.Type}}}, compatible)
}
