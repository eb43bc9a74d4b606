package structural_test

import (
	"strconv"
	"testing"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

// TestManyEmbeddedFaults: an object of a few bytes for each faulty embedded object, or part of its metadata, has about as many errors as
// an answer contains; faults behind many good parts are found.
func TestManyEmbeddedFaults(t *testing.T) {
	s := schema(t, `{type: object, properties: {pods: {type: array, items: {type: object, x-kubernetes-embedded-resource: true, x-kubernetes-preserve-unknown-fields: true}}}}`)
	const many = 5 * rules.MaxErrors
	pod := func(metadata map[string]any) []any {
		return []any{map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": metadata}}
	}
	list := func(item func(i int) any) []any {
		all := make([]any, many)
		for i := range all {
			all[i] = item(i)
		}
		return all
	}
	pairs := func(prefix string) map[string]any {
		all := map[string]any{}
		for i := range many {
			all[prefix+strconv.Itoa(i)] = "v"
		}
		return all
	}
	oneBad := pairs("l")
	oneBad["-"] = "v"
	for name, c := range map[string]struct {
		pods        []any
		least, most int
	}{
		"objects":        {list(func(int) any { return map[string]any{} }), rules.MaxErrors, rules.MaxErrors + 10},
		"labels":         {pod(map[string]any{"labels": pairs("-")}), rules.MaxErrors / 4, rules.MaxErrors},
		"annotations":    {pod(map[string]any{"annotations": pairs("-")}), rules.MaxErrors / 4, rules.MaxErrors},
		"finalizers":     {pod(map[string]any{"finalizers": list(func(int) any { return "-" })}), rules.MaxErrors / 4, rules.MaxErrors},
		"owners":         {pod(map[string]any{"ownerReferences": list(func(int) any { return map[string]any{} })}), rules.MaxErrors / 4, 2 * rules.MaxErrors},
		"managed fields": {pod(map[string]any{"managedFields": list(func(int) any { return map[string]any{} })}), rules.MaxErrors, rules.MaxErrors + 10},
		"good labels":    {pod(map[string]any{"labels": pairs("l")}), 0, 0},
		"one bad label":  {pod(map[string]any{"labels": oneBad}), 1, 1},
	} {
		errs := s.Validate(t.Context(), nil, map[string]any{"pods": c.pods}, nil)
		if len(errs) < c.least || len(errs) > c.most {
			t.Errorf("%s: %d errors, want %d to %d", name, len(errs), c.least, c.most)
		}
	}
}
