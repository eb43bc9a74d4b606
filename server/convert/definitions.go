package convert

import "errors"

// ofAllVersions is what v1beta1 says once where all versions have it in common, and what v1
// calls it in each version. A stock server stores definitions so.
var ofAllVersions = map[string]string{
	"validation": "schema", "subresources": "subresources", "additionalPrinterColumns": "additionalPrinterColumns", "selectableFields": "selectableFields",
}

// definitionUp says for each version of a definition what v1beta1 says for all, and
// writes out that unknown fields are kept.
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

// definitionDown leaves the fields of each version where they are: v1beta1 accepts that too,
// but for what all versions have in common, which it wants said once.
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
