package schema

import (
	"net/http"
	"slices"
	"strconv"
)

// tree is a JSON object under construction.
type tree = map[string]any

func (op *operation) common() tree {
	out := tree{"description": op.text, "operationId": op.id, "tags": []string{op.tag}}
	if op.action != "" {
		out["x-kubernetes-action"] = op.action
		out[gvkExtension] = op.kind
	}
	return out
}

// openAPI3 renders a path for a group's document.
func (p *pathItem) openAPI3() tree {
	out := tree{}
	if params := parameters3(p.parameters); params != nil {
		out["parameters"] = params
	}
	for i := range p.operations {
		op := &p.operations[i]
		o := op.common()
		if params := parameters3(op.parameters); params != nil {
			o["parameters"] = params
		}
		if op.body != "" {
			types := op.consumes
			if op.method != "patch" {
				types = anything
			}
			body := tree{"content": contents(types, op.body)}
			if !op.bodyOptional {
				body["required"] = true
			}
			o["requestBody"] = body
		}
		responses := tree{"401": tree{"description": http.StatusText(http.StatusUnauthorized)}}
		for _, code := range op.codes {
			responses[strconv.Itoa(code)] = tree{"description": http.StatusText(code), "content": contents(op.produces, op.answer)}
		}
		o["responses"] = responses
		out[op.method] = o
	}
	return out
}

func contents(types []string, definition string) tree {
	schema := any(tree{"type": "string"})
	if definition != "" {
		schema = tree{"$ref": refPrefix + definition}
	}
	out := tree{}
	for _, t := range types {
		out[t] = tree{"schema": schema}
	}
	return out
}

// swagger renders a path for the OpenAPI 2 document.
func (p *pathItem) swagger(shared sharedParameters) tree {
	out := tree{}
	if refs := shared.render(p.parameters); refs != nil {
		out["parameters"] = refs
	}
	for i := range p.operations {
		op := &p.operations[i]
		o := op.common()
		o["schemes"] = []string{"https"}
		o["produces"] = op.produces
		if op.consumes != nil {
			o["consumes"] = op.consumes
		}
		params := shared.render(op.parameters)
		if op.body != "" {
			body := tree{"in": "body", "name": "body", "schema": tree{"$ref": "#/definitions/" + op.body}}
			if !op.bodyOptional {
				body["required"] = true
			}
			params = append(params, body)
		}
		if params != nil {
			o["parameters"] = params
		}
		responses := tree{"401": tree{"description": http.StatusText(http.StatusUnauthorized)}}
		for _, code := range op.codes {
			schema := tree{"type": "string"}
			if op.answer != "" {
				schema = tree{"$ref": "#/definitions/" + op.answer}
			}
			responses[strconv.Itoa(code)] = tree{"description": http.StatusText(code), "schema": schema}
		}
		o["responses"] = responses
		out[op.method] = o
	}
	return out
}

// uses lists the definitions that paths refer to.
func uses(paths []pathItem) []string {
	var out []string
	for _, p := range paths {
		for _, op := range p.operations {
			out = append(out, op.answer, op.body)
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}
