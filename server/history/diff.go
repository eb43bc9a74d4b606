package history

import (
	"context"
	"maps"
	"slices"

	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// Field is a field that differs between two states of an object, as trees of JSON.
type Field struct {
	Path     fieldpath.Path
	Op       string // Add, Remove, Replace
	From, To any
}

// Text returns how the path is called.
func (f *Field) Text() string { return pathText(f.Path) }

// Compare finds the fields that differ between two states of an object, which it does not change, in the
// order of their paths, up to most: more means that there are more. A new or removed value is one Field,
// whatever it contains. Metadata that every write changes (managedFields, resourceVersion, generation) is
// omitted. It takes a step for each value of the two; the error is that of ctx.
func Compare(ctx context.Context, s Schema, from, to map[string]any, most int) (fields []Field, more bool, err error) {
	c := &comparison{ctx: ctx, most: most}
	c.objects(s, nil, from, to)
	return c.fields, c.more, c.err
}

// noise are fields that every write changes.
var noise = map[string]bool{"managedFields": true, "resourceVersion": true, "generation": true}

// askEvery is the number of values between checks of the context.
const askEvery = 4096

// maxDepth bounds the elements of a path: to the number of its characters that are shown. Deeper differences
// are reported there, because a thousand paths would otherwise take far more than the object.
const maxDepth = maxPath

type comparison struct {
	ctx    context.Context
	most   int
	steps  int
	fields []Field
	more   bool
	err    error
}

// over reports whether nothing more is to be found.
func (c *comparison) over() bool {
	if c.steps++; c.steps%askEvery == 0 && c.err == nil {
		c.err = c.ctx.Err()
	}
	return c.more || c.err != nil
}

func (c *comparison) found(path fieldpath.Path, op string, from, to any) {
	if len(c.fields) == c.most {
		c.more = true
		return
	}
	c.fields = append(c.fields, Field{path[:min(len(path), maxDepth)].Copy(), op, from, to})
}

// values compares values of any type.
func (c *comparison) values(s Schema, path fieldpath.Path, from, to any) {
	if c.over() {
		return
	}
	switch from := from.(type) {
	case map[string]any:
		if to, ok := to.(map[string]any); ok {
			c.objects(s, path, from, to)
			return
		}
	case []any:
		if to, ok := to.([]any); ok {
			c.lists(s, path, from, to)
			return
		}
	default:
		switch to.(type) {
		case map[string]any, []any:
		default:
			if from == to {
				return
			}
		}
	}
	c.found(path, Replace, from, to)
}

func (c *comparison) objects(s Schema, path fieldpath.Path, from, to map[string]any) {
	names := slices.AppendSeq(slices.Collect(maps.Keys(from)), func(yield func(string) bool) {
		for name := range to {
			if _, both := from[name]; !both && !yield(name) {
				return
			}
		}
	})
	slices.Sort(names)
	inMetadata := len(path) == 1 && path[0].FieldName != nil && *path[0].FieldName == "metadata"
	for _, name := range names {
		if c.over() {
			return
		}
		if inMetadata && noise[name] {
			continue
		}
		before, had := from[name]
		after, has := to[name]
		field, _ := s.Field(name)
		c.either(field, append(path, fieldElement(name)), before, after, had, has)
	}
}

// either compares values that only one of the states may have.
func (c *comparison) either(s Schema, path fieldpath.Path, from, to any, had, has bool) {
	switch {
	case !had:
		c.found(path, Add, nil, to)
	case !has:
		c.found(path, Remove, from, nil)
	default:
		c.values(s, path, from, to)
	}
}

// lists compares items by their keys, or by their indexes if keys are unknown or not unique.
func (c *comparison) lists(s Schema, path fieldpath.Path, from, to []any) {
	item, keys, set := s.Items()
	element := func(v any) (fieldpath.PathElement, bool) { return keyElement(v, keys) }
	if set {
		element = valueElement
	}
	if len(keys) > 0 || set {
		before, ok := placed(from, element)
		after, ok2 := placed(to, element)
		if ok && ok2 {
			c.byKey(item, path, before, after)
			return
		}
	}
	for i := range max(len(from), len(to)) {
		if c.over() {
			return
		}
		var before, after any
		if i < len(from) {
			before = from[i]
		}
		if i < len(to) {
			after = to[i]
		}
		c.either(item, append(path, indexElement(i)), before, after, i < len(from), i < len(to))
	}
}

// place is an item of a list with its path element.
type place struct {
	element fieldpath.PathElement
	text    string
	value   any
}

// placed gives items their places; ok is false if two have the same, or one has none.
func placed(items []any, element func(any) (fieldpath.PathElement, bool)) (list []place, ok bool) {
	seen := make(map[string]bool, len(items))
	for _, v := range items {
		e, ok := element(v)
		text := e.String()
		if !ok || seen[text] {
			return nil, false
		}
		seen[text] = true
		list = append(list, place{e, text, v})
	}
	return list, true
}

func (c *comparison) byKey(item Schema, path fieldpath.Path, from, to []place) {
	after := make(map[string]any, len(to))
	for _, p := range to {
		after[p.text] = p.value
	}
	before := make(map[string]bool, len(from))
	for _, p := range from {
		if c.over() {
			return
		}
		before[p.text] = true
		now, has := after[p.text]
		c.either(item, append(path, p.element), p.value, now, true, has)
	}
	for _, p := range to {
		if c.over() {
			return
		}
		if !before[p.text] {
			c.found(append(path, p.element), Add, nil, p.value)
		}
	}
}
