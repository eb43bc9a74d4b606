package schema

import "slices"

// lossy removes from the decoded schema of a custom kind, in place, the parts that clients of OpenAPI 2
// cannot cope with: alternatives, and all constraints of values that may be null or hold unknown fields.
func lossy(node map[string]any) {
	if all, ok := node["allOf"].([]any); ok && len(all) == 1 {
		if only, ok := all[0].(map[string]any); ok && only["$ref"] != nil {
			return // metadata
		}
	}
	for _, key := range []string{"allOf", "oneOf", "anyOf", "not"} {
		delete(node, key)
	}
	preserve := node["x-kubernetes-preserve-unknown-fields"] == true
	if node["nullable"] == true {
		delete(node, "type")
		delete(node, "nullable")
	}
	if preserve || node["type"] == nil && node["x-kubernetes-int-or-string"] == nil {
		delete(node, "items")
		delete(node, "properties")
	}
	if node["items"] == nil && node["type"] == "array" || preserve && node["type"] == "object" {
		delete(node, "type")
	}
	properties, _ := node["properties"].(map[string]any)
	required, _ := node["required"].([]any)
	required = slices.DeleteFunc(required, func(name any) bool {
		text, _ := name.(string)
		return isNullable(properties[text])
	})
	if len(required) == 0 || isNullable(node["additionalProperties"]) {
		delete(node, "required")
	} else {
		node["required"] = required
	}
	for _, child := range properties {
		if child, ok := child.(map[string]any); ok {
			lossy(child)
		}
	}
	for _, key := range []string{"items", "additionalProperties"} {
		if child, ok := node[key].(map[string]any); ok {
			lossy(child)
		}
	}
}

func isNullable(schema any) bool {
	node, _ := schema.(map[string]any)
	return node["nullable"] == true
}

// swaggerOfCustom is swaggerOf for the schema of a custom kind. A schema that keeps unknown fields gets no
// further detail, or clients would take the known fields for all there are.
func swaggerOfCustom(node any) any {
	root, ok := node.(map[string]any)
	if !ok {
		return swaggerOf(node)
	}
	if root["x-kubernetes-preserve-unknown-fields"] == true {
		whole := tree{"type": "object", gvkExtension: root[gvkExtension]}
		if fields, is := root[selectableExtension]; is {
			whole[selectableExtension] = fields
		}
		return whole
	}
	lossy(root)
	return swaggerOf(root)
}
