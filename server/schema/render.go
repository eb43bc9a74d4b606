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
		if params := parameters3(op.query); params != nil {
			o["parameters"] = params
		}
		if op.body != "" {
			types := op.consumes
			if types == nil {
				types = []string{"*/*"}
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

func parameters3(list []string) []tree {
	var out []tree
	for _, name := range list {
		p := parameters[name]
		param := tree{"name": name, "in": p.in, "description": p.text, "schema": tree{"type": p.kind, "uniqueItems": true}}
		if p.in == "path" {
			param["required"] = true
		}
		out = append(out, param)
	}
	return out
}

// swagger renders a path for the OpenAPI 2 document.
func (p *pathItem) swagger() tree {
	out := tree{}
	if refs := parameterRefs(p.parameters); refs != nil {
		out["parameters"] = refs
	}
	for i := range p.operations {
		op := &p.operations[i]
		o := op.common()
		o["schemes"] = []string{"https"}
		o["produces"] = op.produces
		o["consumes"] = op.consumes
		if op.consumes == nil {
			o["consumes"] = []string{"*/*"}
		}
		params := parameterRefs(op.query)
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

func parameterRefs(list []string) []tree {
	var out []tree
	for _, name := range list {
		out = append(out, tree{"$ref": "#/parameters/" + name})
	}
	return out
}

// swaggerParameters are the parameters that swagger paths refer to.
func swaggerParameters() tree {
	out := tree{}
	for name, p := range parameters {
		param := tree{"name": name, "in": p.in, "description": p.text, "type": p.kind, "uniqueItems": true}
		if p.in == "path" {
			param["required"] = true
		}
		out[name] = param
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
