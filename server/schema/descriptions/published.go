package descriptions

import (
	"iter"

	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// Three packages publish OpenAPI definitions of Go types. Those of meta/v1 are in all three; the aggregator's
// are used, then those of custom resources.
//
// The last is of a library for metrics adapters, which publishes core/v1 for them. It
// was made of an earlier patch release of the same types. No other package at hand says
// what the values of enumerations in core/v1 mean, describes quantities, or has the ends
// of those descriptions that SwaggerDoc cuts off at a "---".

// publishedDefinitions collects the descriptions of the parts of them that are used, by type.
func publishedDefinitions() map[string]described {
	return publishedBy(func(yield func(string, common.OpenAPIDefinition) bool) {
		for _, p := range parts {
			if !yield(p.name, p.make(noReference)) {
				return
			}
		}
	})
}

func noReference(string) spec.Ref { return spec.Ref{} }

func publishedBy(definitions iter.Seq2[string, common.OpenAPIDefinition]) map[string]described {
	out := map[string]described{}
	for name, definition := range definitions {
		if _, known := out[name]; known {
			continue
		}
		d := described{text: definition.Schema.Description, fields: make(map[string]string, len(definition.Schema.Properties))}
		for field, schema := range definition.Schema.Properties {
			d.fields[field] = schema.Description
		}
		out[name] = d
	}
	return out
}
