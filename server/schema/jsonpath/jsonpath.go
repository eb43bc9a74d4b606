// Package jsonpath finds values in trees of JSON by paths such as
// .status.conditions[?(@.type=="Ready")].status.
//
// It evaluates paths as kubectl and the columns of custom resources do. Parsing and evaluating untrusted paths never
// panics.
package jsonpath

import (
	"errors"
	"fmt"
	"maps"
	"slices"
)

// Path is a parsed path. It may be used by many at once.
type Path struct{ steps []step }

// Parse reads a path without its braces.
func Parse(text string) (*Path, error) {
	steps, err := (&parser{rest: text}).steps()
	if err != nil {
		return nil, err
	}
	return &Path{steps}, nil
}

// Find returns all values that a path leads to in a tree of maps, slices, strings,
// numbers and booleans. Keys that are not there lead nowhere; an index that is out of
// bounds, or an index into a value that is not a list, is an error. So is a walk that needs more than b.
func (p *Path) Find(tree any, b *Budget) ([]any, error) { return walk([]any{tree}, p.steps, b) }

// Budget is the number of values that walks may still visit: with each ".." of a path their number can be multiplied by the
// depth of the tree.
type Budget int

var errTooMany = errors.New("the path leads to too many values")

func (b *Budget) spend(n int) error {
	if *b -= Budget(n); *b < 0 {
		return errTooMany
	}
	return nil
}

// step leads from values to further values. It spends one of the budget for each value that it visits.
type step interface {
	from(values []any, b *Budget) ([]any, error)
}

func walk(values []any, steps []step, b *Budget) ([]any, error) {
	var err error
	for _, s := range steps {
		if values, err = s.from(values, b); err != nil {
			return nil, err
		}
	}
	return values, nil
}

// field selects the value of a key.
type field string

func (f field) from(values []any, b *Budget) (out []any, _ error) {
	if err := b.spend(len(values)); err != nil {
		return nil, err
	}
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

func (wildcard) from(values []any, b *Budget) (out []any, _ error) {
	for _, v := range values {
		below, err := children(v, b)
		if err != nil {
			return nil, err
		}
		out = append(out, below...)
	}
	return out, nil
}

// children lists the values in a list, or in a map by the order of its keys.
func children(v any, b *Budget) ([]any, error) {
	switch v := v.(type) {
	case []any:
		return v, b.spend(1 + len(v))
	case map[string]any:
		if err := b.spend(1 + len(v)); err != nil {
			return nil, err
		}
		out := make([]any, 0, len(v))
		for _, key := range slices.Sorted(maps.Keys(v)) {
			out = append(out, v[key])
		}
		return out, nil
	}
	return nil, b.spend(1)
}

// recursive selects every list and map at any depth: the two dots.
type recursive struct{}

func (recursive) from(values []any, b *Budget) (out []any, err error) {
	err = descend(values, b, &out)
	return out, err
}

func descend(values []any, b *Budget, out *[]any) error {
	for _, v := range values {
		below, err := children(v, b)
		if err != nil {
			return err
		}
		if len(below) > 0 {
			*out = append(*out, v)
			if err := descend(below, b, out); err != nil {
				return err
			}
		}
	}
	return nil
}

// slice selects an element or a part of a list: [1], [0:2], [::2]. Negative positions count from the end.
type slice struct {
	first, end int
	toEnd      bool // there is no end
	single     bool // one position: its end follows from it
	every      int  // the distance between elements
}

func (s slice) from(values []any, b *Budget) (out []any, _ error) {
	for _, v := range values {
		if err := b.spend(1); err != nil {
			return nil, err
		}
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
		if first == end { // the lists after an empty one do not count, as in kubectl
			return out, nil
		}
		if first < 0 || first >= len(list) || end > len(list) || end < first {
			return nil, fmt.Errorf("array index out of bounds: %d to %d of %d", first, end, len(list))
		}
		if s.every <= 0 {
			return nil, errors.New("step must be > 0")
		}
		if err := b.spend(end - first); err != nil {
			return nil, err
		}
		for i := first; i < end; i += s.every {
			out = append(out, list[i])
		}
	}
	return out, nil
}

// union selects the values of several paths.
type union [][]step

func (u union) from(values []any, b *Budget) (out []any, _ error) {
	for _, way := range u {
		found, err := walk(values, way, b)
		if err != nil {
			return nil, err
		}
		out = append(out, found...)
	}
	return out, nil
}

// literal is a value that is written in the path itself.
type literal struct{ value any }

func (c literal) from(values []any, b *Budget) ([]any, error) {
	if err := b.spend(len(values)); err != nil {
		return nil, err
	}
	out := make([]any, len(values))
	for i := range out {
		out[i] = c.value
	}
	return out, nil
}

// identifier is a word that has no meaning. It can be parsed, and fails where it is evaluated.
type identifier string

func (i identifier) from([]any, *Budget) ([]any, error) {
	return nil, fmt.Errorf("unrecognized identifier %s", string(i))
}

// filter selects the elements of a list for which a comparison holds.
type filter struct {
	left, right []step
	operator    string // "" where left need only lead somewhere
}

func (f filter) from(values []any, b *Budget) (out []any, _ error) {
	for _, v := range values {
		list, ok := v.([]any)
		if !ok {
			return nil, fmt.Errorf("%T is not a list and cannot be filtered", v)
		}
		if err := b.spend(1 + len(list)); err != nil {
			return nil, err
		}
		for _, item := range list {
			ok, err := f.holds(item, b)
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

// holds reports whether the comparison holds for an item. It does not where a side leads nowhere.
func (f filter) holds(item any, b *Budget) (bool, error) {
	left, err := walk([]any{item}, f.left, b)
	switch {
	case err == errTooMany:
		return false, err
	case f.operator == "":
		return err != nil || len(left) > 0, nil // a step that fails leads to what it was given
	case err != nil || len(left) == 0:
		return false, err
	case len(left) > 1:
		return false, errSeveral
	}
	right, err := walk([]any{item}, f.right, b)
	switch {
	case err != nil || len(right) == 0:
		return false, err
	case len(right) > 1:
		return false, errSeveral
	}
	return compare(left[0], f.operator, right[0])
}

var errSeveral = errors.New("can only compare one element at a time")
