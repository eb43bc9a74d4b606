package cache

import (
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Filter is a parsed label and field selector of one storage. The zero Filter and
// nil select everything.
type Filter struct {
	Fields []FieldTerm
	// Unsure tells items whose bytes are not what the reader is shown. They are selected
	// by name and namespace, and by labels unless Relabeled, and it is for the reader to
	// look closer, with Shows. Nil: there are none.
	Unsure    func(*Item) bool
	Relabeled bool // such an item may be shown with other labels

	labeled bool                 // labels are selected by
	terms   []labels.Requirement // of many: those that postings are made of
	many    many
	none    bool
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
		reqs, selectable := sel.Requirements()
		f.labeled, f.terms, f.none = true, reqs, !selectable
	}
	f.many = newMany(f.terms, terms)
	if f.many.labels {
		f.terms = pinning(f.terms)
	}
	return f
}

// Everything says that nothing is filtered out.
func (f *Filter) Everything() bool {
	return f == nil || !f.labeled && len(f.Fields) == 0 && !f.none
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
	if f.unsure(it) {
		return f.matchFields(it, nil) && (f.Relabeled || f.matchLabels(it))
	}
	return (len(f.Fields) == 0 || f.matchFields(it, it.fieldMeta())) && f.matchLabels(it)
}

// matcher is Match for one reader of many items. Those that follow each other mostly have the same
// labels.
type matcher struct {
	*Filter
	of        string // labels, as common has them
	known, is bool   // whether the terms select them
}

func (m *matcher) match(it *Item) bool {
	b := it.body.Load()
	if !m.labeled || m.none || len(m.Fields) > 0 || m.Unsure != nil || m.many.labels || it.Corrupt != nil || !b.packed() {
		return m.Match(it)
	}
	if of := b.common.Text(); !m.known || m.of != of {
		m.of, m.known, m.is = of, true, m.matchTerms(b.common)
	}
	return m.is
}

// Shows is Match for an item that is shown with what m says.
func (f *Filter) Shows(it *Item, m *Meta) bool {
	return f.Everything() || !f.none && f.matchFields(it, m) && f.matchSet(m.Labels)
}

func (f *Filter) unsure(it *Item) bool { return f != nil && f.Unsure != nil && f.Unsure(it) }

// matchFields looks at name and namespace alone if m is nil.
func (f *Filter) matchFields(it *Item, m *Meta) bool {
	if f.many.fields != nil {
		for index, b := range f.many.fields {
			if (index < 0 || m != nil) && !b.allows(it.field(m, index)) {
				return false
			}
		}
		return true
	}
	for i := range f.Fields {
		if t := &f.Fields[i]; (t.Index < 0 || m != nil) && (it.field(m, t.Index) == t.Value) == t.Not {
			return false
		}
	}
	return true
}

func (f *Filter) matchLabels(it *Item) bool {
	switch {
	case !f.labeled:
		return true
	case f.many.labels:
		return f.many.match(it.Meta().Labels)
	}
	return f.matchTerms(it.labels())
}

func (f *Filter) matchSet(set labels.Set) bool {
	if f.many.labels {
		return f.many.match(set)
	}
	return f.matchTerms(set)
}

func (f *Filter) matchTerms(of labels.Labels) bool {
	for i := range f.terms {
		if !f.terms[i].Matches(of) {
			return false
		}
	}
	return true
}

// field is the value of a field that a FieldTerm names; m is the metadata of the item.
func (it *Item) field(m *Meta, index int) string {
	switch index {
	case FieldName:
		return it.Name
	case FieldNamespace:
		return it.Namespace
	}
	if index < len(m.Fields) {
		return m.Fields[index]
	}
	return ""
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

// maxPostings is how many index keys of a selector are compared: more cost more
// than the best of them saves.
const maxPostings = 16

// postings lists index keys of which every selected item has one, as far as fields and labels
// are indexed.
func (f *Filter) postings(s *resource, indexed, labeled bool) []term {
	if f == nil {
		return nil
	}
	var out []term
	for _, t := range f.Fields {
		if key := s.indexKey(t.Index); indexed && key != "" && !t.Not && len(out) < maxPostings {
			out = append(out, term{key: key, value: t.Value})
		}
	}
	if !labeled || f.Unsure != nil && f.Relabeled {
		return out
	}
	for i := range f.terms {
		if len(out) >= maxPostings {
			break
		}
		if value, ok := pinned(&f.terms[i]); ok {
			out = append(out, term{key: f.terms[i].Key(), value: value})
		}
	}
	return out
}

// pinned is the value that a term fixes its label to, if it does.
func pinned(r *labels.Requirement) (string, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if values := r.ValuesUnsorted(); len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}

// pinning are the terms that postings are made of.
func pinning(terms []labels.Requirement) (out []labels.Requirement) {
	for i := range terms {
		if _, ok := pinned(&terms[i]); ok && len(out) < maxPostings {
			out = append(out, terms[i])
		}
	}
	return out
}
