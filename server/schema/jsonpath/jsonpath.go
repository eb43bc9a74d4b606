// Package jsonpath finds values in trees of JSON by paths such as
// .status.conditions[?(@.type=="Ready")].status.
//
// It evaluates paths as kubectl and the columns of custom resources do. Parsing and evaluating untrusted paths never
// panics.
package jsonpath

import (
	"fmt"
	"maps"
	"slices"
)

// Path is a parsed path. It may be used by many at once.
type Path struct{ steps []step }

// Parse reads a path without its braces.
func Parse(text string) (*Path, error) {
	steps, err := parse(text)
	if err != nil {
		return nil, err
	}
	return &Path{steps}, nil
}

// Find returns all values that a path leads to in a tree of maps, slices, strings,
// numbers and booleans. Keys that are not there lead nowhere; an index that is out of
// bounds, or an index into a value that is not a list, is an error.
func (p *Path) Find(tree any) ([]any, error) { return walk([]any{tree}, p.steps) }

// step leads from values to further values.
type step interface {
	from(values []any) ([]any, error)
}

func walk(values []any, steps []step) ([]any, error) {
	var err error
	for _, s := range steps {
		if values, err = s.from(values); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// field selects the value of a key.
type field string

func (f field) from(values []any) (out []any, _ error) {
	for _, v := range values {
		if m, ok := v.(map[string]any); ok {
			if found, ok := m[string(f)]; ok {
				out = append(out, found)
			}
		}
	}
	return out, nil
}

// wildcard selects all values of a list or a map: [*].
type wildcard struct{}

func (wildcard) from(values []any) (out []any, _ error) {
	for _, v := range values {
		out = append(out, children(v)...)
	}
	return out, nil
}

// children lists the values in a list, or in a map by the order of its keys.
func children(v any) []any {
	switch v := v.(type) {
	case []any:
		return v
	case map[string]any:
		out := make([]any, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, v[key])
		}
		return out
	}
	return nil
}

// recursive selects every list and map at any depth: the two dots.
type recursive struct{}

func (d recursive) from(values []any) (out []any, _ error) {
	for _, v := range values {
		if below := children(v); len(below) > 0 {
			out = append(out, v)
			more, _ := d.from(below)
			out = append(out, more...)
		}
	}
	return out, nil
}

// slice selects an element or a part of a list: [1], [0:2]. Negative positions count from the end.
type slice struct {
	first, end int
	toEnd      bool // there is no end
	single     bool // one position: its end follows from it
}

func (s slice) from(values []any) (out []any, _ error) {
	for _, v := range values {
		if v == nil {
			continue
		}
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not a list", v)
		}
		first, end := s.first, s.end
		if first < 0 {
			first += len(list)
		}
		switch {
		case s.toEnd:
			end = len(list)
		case s.single:
			end = first + 1
		case end < 0:
			end += len(list)
		}
		if first == end {
			continue
		}
		if first < 0 || first >= len(list) || end > len(list) || end < first {
			return nil, fmt.Errorf("array index out of bounds: %d to %d of %d", first, end, len(list))
		}
		out = append(out, list[first:end]...)
	}
	return out, nil
}

// union selects the values of several paths.
type union [][]step

func (u union) from(values []any) (out []any, _ error) {
	for _, way := range u {
		found, err := walk(values, way)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// literal is a value that is written in the path itself.
type literal struct{ value any }

func (c literal) from(values []any) ([]any, error) {
	out := make([]any, len(values))
	for i := range out {
		out[i] = c.value
	}
	return out, nil
}

// filter selects the elements of a list for which a comparison holds.
type filter struct {
	left, right []step
	operator    string // "" where left need only lead somewhere
}

func (f filter) from(values []any) (out []any, _ error) {
	for _, v := range values {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not a list and cannot be filtered", v)
		}
		for _, item := range list {
			ok, err := f.holds(item)
			if err != nil {
				return nil, err
			}
			if ok {
				out = append(out, item)
			}
		}
	}
	return out, nil
}

func (f filter) holds(item any) (bool, error) {
	left, err := walk([]any{item}, f.left)
	if f.operator == "" {
		return len(left) > 0, nil
	}
	if err != nil {
		return false, err
	}
	right, err := walk([]any{item}, f.right)
	if err != nil {
		return false, err
	}
	if len(left) != 1 || len(right) != 1 {
		return false, fmt.Errorf("can only compare one value at a time")
	}
	return compare(left[0], f.operator, right[0])
}
