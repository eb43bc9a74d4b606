package cache

import (
	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/packing"
	"github.com/rowlock/rowlock/server/cache/shard"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Filter is a compiled label and field selector for one storage. nil and the zero Filter select everything.
type Filter struct {
	Fields []FieldTerm
	// Unsure means that an item's bytes differ from what the reader sees, because it is stored in another version. Match checks
	// name and namespace of such an item, and its labels unless Relabeled; the reader then decides with Shows. Nil: no item
	// is unsure.
	Unsure    func(*Item) bool
	Relabeled bool // an unsure item may be shown with other labels
	// Shard selects items by a hash besides; nil: all.
	Shard *shard.Selector
	// OutOfShard is called for each item that Shard alone does not select, and for each version of it in an event; may be nil.
	OutOfShard func()

	labeled bool                 // there is a label selector
	terms   []labels.Requirement // if many.labels: only those that fix a label to a value
	many    many
	none    bool
}

// Special values of FieldTerm.Index.
const (
	FieldName      = -1 // metadata.name
	FieldNamespace = -2 // metadata.namespace
)

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

// Everything reports whether the filter selects all items.
func (f *Filter) Everything() bool { return f.Whole() && (f == nil || f.Shard == nil) }

// Whole reports whether neither labels nor fields are selected: the filter selects all items of its shard.
func (f *Filter) Whole() bool {
	return f == nil || !f.labeled && len(f.Fields) == 0 && !f.none
}

// Match reports whether the filter selects an item. It selects corrupt items, so that a reader learns of them.
func (f *Filter) Match(it *Item) bool {
	if f.Everything() {
		return true
	}
	if f.none {
		return false
	}
	if it.Err() != nil {
		return true
	}
	if !f.inShard(it) {
		if f.OutOfShard != nil {
			f.OutOfShard()
		}
		return false
	}
	if f.unsure(it) {
		return f.matchFields(it, nil) && (f.Relabeled || f.matchLabels(it))
	}
	return (len(f.Fields) == 0 || f.matchFields(it, it.fieldMeta())) && f.matchLabels(it)
}

// inShard reports whether an item is in the shard of the filter. No version of an object has another UID or namespace.
func (f *Filter) inShard(it *Item) bool {
	switch {
	case f.Shard == nil:
		return true
	case f.Shard.OfNamespace():
		return f.Shard.Selects(it.Namespace)
	}
	return f.Shard.Selects(it.OwnerInfo().UID)
}

// ShardText returns the text of the shard selector; "" for none.
func (f *Filter) ShardText() string {
	if f == nil || f.Shard == nil {
		return ""
	}
	return f.Shard.String()
}

// matcher is Match for one reader of many items in key order. Neighbours mostly have the same labels.
type matcher struct {
	*Filter
	of        *packing.Common // the last labels
	known, is bool            // of is set; the terms select it
}

func (m *matcher) match(it *Item) bool {
	b := it.body.Load()
	if !m.labeled || m.none || len(m.Fields) > 0 || m.Unsure != nil || m.many.labels || m.Shard != nil || it.Err() != nil || !b.packed() {
		return m.Match(it)
	}
	if !m.known || !packing.SameLabels(m.of, b.common) {
		m.known, m.is = true, m.matchTerms(b.common)
	}
	m.of = b.common // neighbors mostly have the same one
	return m.is
}

// Shows is Match for an item that the reader sees with the metadata m.
func (f *Filter) Shows(it *Item, m *metadata.Meta) bool {
	return f.Everything() || !f.none && f.matchFields(it, m) && f.matchSet(m.Labels)
}

func (f *Filter) unsure(it *Item) bool { return f != nil && f.Unsure != nil && f.Unsure(it) }

// matchFields checks only name and namespace if m is nil.
func (f *Filter) matchFields(it *Item, m *metadata.Meta) bool {
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

// field returns the value of a field that a FieldTerm names; m is the metadata of the item.
func (it *Item) field(m *metadata.Meta, index int) string {
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

// pinned returns the value to which the filter fixes the name or namespace, if it does.
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

// maxPostings is the most index keys of a selector that are compared: comparing more costs more than the best of them saves.
const maxPostings = 16

// postings lists index keys such that every selected item has each of them. keys are the posting keys of the fields, nil if no
// field is indexed; labeled means that labels are indexed.
func (f *Filter) postings(keys []string, labeled bool) []term {
	if f == nil {
		return nil
	}
	var out []term
	for _, t := range f.Fields {
		if key := indexKey(keys, t.Index); key != "" && !t.Not && len(out) < maxPostings {
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

// pinned returns the value to which a term fixes its label, if it does.
func pinned(r *labels.Requirement) (string, bool) {
	switch r.Operator() {
	case selection.Equals, selection.DoubleEquals, selection.In:
		if values := r.ValuesUnsorted(); len(values) == 1 {
			return values[0], true
		}
	}
	return "", false
}

// pinning returns the terms that fix a label to a value.
func pinning(terms []labels.Requirement) (out []labels.Requirement) {
	for i := range terms {
		if _, ok := pinned(&terms[i]); ok && len(out) < maxPostings {
			out = append(out, terms[i])
		}
	}
	return out
}
