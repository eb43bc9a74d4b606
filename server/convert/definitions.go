package convert

import "errors"

// ofAllVersions are the fields that v1beta1 has once if all versions share them, and their names in each
// version of v1. A stock server stores definitions like that.
var ofAllVersions = map[string]string{
	"validation": "schema", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns", "selectableFields": "selectableFields",
}

// definitionUp copies the common fields of v1beta1 to each version, and writes out that unknown fields are
// preserved.
func definitionUp(o Object) error {
	spec := must(o, "spec")
	preset(spec, "preserveUnknownFields", true)
	preset(spec, "scope", "Namespaced")
	version := text(spec, "version")
	delete(spec, "version")
	if list, ok := spec["versions"].([]any); !ok || len(list) == 0 {
		if version == "" {
			return errors.New("spec.versions is missing")
		}
		spec["versions"] = []any{Object{"name": version, "served": true, "storage": true}}
	}
	common := map[string]any{}
	for of, single := range ofAllVersions {
		if all := spec[of]; all != nil {
			common[single] = all
		}
		delete(spec, of)
	}
	each(spec, "versions", func(v Object) {
		for field, all := range common {
			preset(v, field, normal(all))
		}
		each(v, "additionalPrinterColumns", func(c Object) { move(c, "JSONPath", c, "jsonPath") })
	})
	if c := sub(spec, "conversion"); c != nil {
		webhook := Object{}
		move(c, "webhookClientConfig", webhook, "clientConfig")
		move(c, "conversionReviewVersions", webhook, "conversionReviewVersions")
		if text(c, "strategy") == "Webhook" {
			preset(webhook, "conversionReviewVersions", []any{"v1beta1"})
			c["webhook"] = webhook
		}
	}
	return nil
}

// definitionDown leaves the fields of each version in place: v1beta1 accepts that too, except for fields that
// all versions share, which it requires once.
func definitionDown(o Object) error {
	spec := must(o, "spec")
	first := true
	each(spec, "versions", func(v Object) {
		if first {
			spec["version"] = text(v, "name")
			first = false
		}
		each(v, "additionalPrinterColumns", func(c Object) { move(c, "jsonPath", c, "JSONPath") })
	})
	if list, ok := spec["versions"].([]any); ok && len(list) == 1 {
		v := list[0].(Object)
		for of, single := range ofAllVersions {
			move(v, single, spec, of)
		}
	}
	if c := sub(spec, "conversion"); c != nil {
		if webhook := sub(c, "webhook"); webhook != nil {
			delete(c, "webhook")
			move(webhook, "clientConfig", c, "webhookClientConfig")
			move(webhook, "conversionReviewVersions", c, "conversionReviewVersions")
		}
	}
	return nil
}
