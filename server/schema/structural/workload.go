package structural

import (
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"

	"github.com/rowlock/rowlock/codecs/budget"
)

// Clients write both the schema and the objects. Each item of a list may get a default as large as a
// definition can be, which may get further defaults inside of it, and the libraries visit all properties of a schema for
// each object in a tree. So before the libraries are called, a walk in time linear in the size of the object adds up
// the work that they would do.

const (
	// maxFill bounds the defaults that may be filled into one object of at most budget.DefaultBody bytes, in
	// bytes of memory; for larger objects it grows with their size, and so does maxSteps.
	maxFill = budget.Small
	// maxSteps bounds how many properties may be looked for in one object, and how many
	// parts of allOf, anyOf, oneOf and not, and values of enum, it may be held against.
	maxSteps = budget.Work
	// tooMuch is more than any limit, and can be added without overflow as often as a definition allows.
	tooMuch = 1 << 40

	weightOfValue     = 16
	weightOfContainer = 384
)

// workload adds up how much of the limits is left after the work for an object.
type workload struct{ left, steps int }

// over reports whether it is too much.
func (a *workload) over() bool { return a.left < 0 || a.steps < 0 }

// fits reports whether an object can be worked on. The error is a 413.
func (s *precheck) fits(obj map[string]any) error {
	fill, steps := maxFill, maxSteps
	a := workload{left: fill, steps: steps}
	a.add(s, obj)
	if a.over() {
		if text := textOf(obj); text > budget.DefaultBody { // an object that a server with a larger --max-object-bytes takes
			fill, steps = maxFill*text/budget.DefaultBody, maxSteps*text/budget.DefaultBody
			a = workload{left: fill, steps: steps}
			a.add(s, obj)
		}
	}
	switch {
	case a.left < 0:
		return budget.TooMuch("the defaults of the schema would make more than %d bytes of the object", fill)
	case a.steps < 0:
		return budget.TooMuch("the schema has too many properties, choices or conditions for an object with so much in it")
	}
	return nil
}

// add walks the defaults that are set in v, and returns how many values they have.
func (a *workload) add(s *precheck, v any) int {
	if s == nil || a.over() {
		return 1
	}
	n := 1
	switch v := v.(type) {
	case map[string]any:
		a.steps -= len(s.properties)
		if s.defaults && !a.over() {
			a.addDefaults(s, v)
		}
		for name, value := range v {
			if p := s.property(name); p != nil && !(value == nil && !p.nullable) {
				n += a.add(p, value)
			} else if p != nil && s.properties[name] == nil {
				a.left -= p.fill
			}
		}
	case []any:
		if s.items == nil {
			break
		}
		for _, item := range v {
			if item == nil && !s.items.nullable {
				a.left -= s.items.fill
			} else {
				n += a.add(s.items, item)
			}
		}
	}
	a.steps -= n * s.checks
	return n
}

// checksOf returns how many further schemas and values each value of s is held against. Some of them concern only
// the contents of the value; these are counted too.
func checksOf(v *structuralschema.ValueValidation) int {
	if v == nil {
		return 0
	}
	n := len(v.Enum)
	for _, list := range [][]structuralschema.NestedValueValidation{v.AllOf, v.AnyOf, v.OneOf} {
		for i := range list {
			n += nestedChecks(&list[i])
		}
	}
	if v.Not != nil {
		n += nestedChecks(v.Not)
	}
	return n
}

func nestedChecks(v *structuralschema.NestedValueValidation) int {
	n := 1 + checksOf(&v.ValueValidation)
	if v.Items != nil {
		n += nestedChecks(v.Items)
	}
	if v.AdditionalProperties != nil {
		n += nestedChecks(v.AdditionalProperties)
	}
	for _, p := range v.Properties {
		n += nestedChecks(&p)
	}
	return n
}

// addDefaults adds the defaults of fields that a map lacks, or has as a null that is not allowed.
func (a *workload) addDefaults(s *precheck, v map[string]any) {
	for name, p := range s.properties {
		if !p.defaulted {
			continue
		}
		if value, ok := v[name]; !ok || value == nil && !p.nullable {
			if a.left -= len(name) + p.fill; a.over() {
				return
			}
		}
	}
}

// textOf returns the size of the names and texts of a value in bytes, and two for each value: no more than its
// JSON.
func textOf(v any) int {
	n := 2
	switch v := v.(type) {
	case string:
		n += len(v)
	case map[string]any:
		for name, value := range v {
			n += len(name) + textOf(value)
		}
	case []any:
		for _, item := range v {
			n += textOf(item)
		}
	}
	return n
}

// weightOf returns the size of a value in memory and on the wire.
func weightOf(v any) int {
	n := weightOfValue
	switch v := v.(type) {
	case string:
		n += len(v)
	case map[string]any:
		n += weightOfContainer
		for name, value := range v {
			n += len(name) + weightOf(value)
		}
	case []any:
		n += weightOfContainer
		for _, item := range v {
			n += weightOf(item)
		}
	}
	return n
}
