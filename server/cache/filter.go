package cache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Filter is a parsed label and field selector of one storage. The zero Filter and
// nil select everything.
type Filter struct {
	Labels labels.Selector // nil or empty: all
	Fields []FieldTerm

	terms []labels.Requirement
	none  bool
}

// Special values of FieldTerm.Index.
const (
	FieldName      = -1 // metadata.name
	FieldNamespace = -2 // metadata.namespace
)

// FieldTerm is one condition on a selectable field.
type FieldTerm struct {
	Index int // in Storage.Fields, or FieldName, FieldNamespace
	Value string
	Not   bool
}

// NewFilter makes a Filter; labels may be nil.
func NewFilter(sel labels.Selector, terms []FieldTerm) *Filter {
	f := &Filter{Fields: terms}
	if sel != nil && !sel.Empty() {
		f.Labels = sel
		reqs, selectable := sel.Requirements()
		f.terms, f.none = reqs, !selectable
	}
	return f
}

// Everything says that nothing is filtered out.
func (f *Filter) Everything() bool {
	return f == nil || f.Labels == nil && len(f.Fields) == 0 && !f.none
}

// Match says whether an item is selected. Corrupt items are: a reader must meet them.
func (f *Filter) Match(it *Item) bool {
	if f.Everything() {
		return true
	}
	if f.none {
		return false
	}
	if it.Corrupt != nil {
		return true
	}
	for i := range f.Fields {
		t := &f.Fields[i]
		var v string
		switch t.Index {
		case FieldName:
			v = it.Name
		case FieldNamespace:
			v = it.Namespace
		default:
			if m := it.Meta(); t.Index < len(m.Fields) {
				v = m.Fields[t.Index]
			}
		}
		if (v == t.Value) == t.Not {
			return false
		}
	}
	if len(f.terms) == 0 {
		return true
	}
	set := it.Meta().Labels
	for i := range f.terms {
		if !f.terms[i].Matches(set) {
			return false
		}
	}
	return true
}

// pinned is the value that the filter fixes a name or namespace to, if it does.
func (f *Filter) pinned(index int) (string, bool) {
	if f != nil {
		for _, t := range f.Fields {
			if t.Index == index && !t.Not {
				return t.Value, true
			}
		}
	}
	return "", false
}

// postings lists the index keys of which every selected item has one.
func (f *Filter) postings(s *shelf, labeled bool) []posting {
	if f == nil {
		return nil
	}
	var out []posting
	for _, t := range f.Fields {
		if key := s.indexKey(t.Index); key != "" && !t.Not {
			out = append(out, posting{key: key, value: t.Value})
		}
	}
	if !labeled {
		return out
	}
	for i := range f.terms {
		r := &f.terms[i]
		switch r.Operator() {
		case selection.Equals, selection.DoubleEquals, selection.In:
			if values := r.ValuesUnsorted(); len(values) == 1 {
				out = append(out, posting{key: r.Key(), value: values[0]})
			}
		}
	}
	return out
}
