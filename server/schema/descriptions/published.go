package descriptions

import (
	apiextensions "k8s.io/apiextensions-apiserver/pkg/generated/openapi"
	aggregator "k8s.io/kube-aggregator/pkg/generated/openapi"
	"k8s.io/kube-openapi/pkg/common"
	"k8s.io/kube-openapi/pkg/validation/spec"
	core "sigs.k8s.io/custom-metrics-apiserver/pkg/generated/openapi/core"
)

// publications make OpenAPI definitions of Go types. Those of meta/v1 are in all three;
// the first counts.
//
// The last is of a library for metrics adapters, which publishes core/v1 for them. It
// was made of an earlier patch release of the same types. No other package at hand says
// what the values of enumerations in core/v1 mean, describes quantities, or has the ends
// of those descriptions that SwaggerDoc cuts off at a "---".
var publications = []common.GetOpenAPIDefinitions{
	aggregator.GetOpenAPIDefinitions, apiextensions.GetOpenAPIDefinitions, core.GetOpenAPIDefinitions,
}

// publishedDefinitions collects the descriptions of all publications by type.
func publishedDefinitions() map[string]described {
	out := map[string]described{}
	noReference := func(string) spec.Ref { return spec.Ref{} }
	for _, publication := range publications {
		for name, definition := range publication(noReference) {
			if _, known := out[name]; known {
				continue
			}
			d := described{text: definition.Schema.Description, fields: make(map[string]string, len(definition.Schema.Properties))}
			for field, schema := range definition.Schema.Properties {
				d.fields[field] = schema.Description
			}
			out[name] = d
		}
	}
	return out
}
