package cache

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"github.com/rowlock/rowlock/server/cache/metadata"
	"github.com/rowlock/rowlock/server/cache/shard"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// Filter is a compiled label and field selector for one storage. nil and the zero Filter select everything.
type Filter struct {
	Fields []FieldTerm
	// Unsure says that an item's bytes differ from what the reader sees, because it is stored in another version. Match checks
	// name and namespace of such an item, and its labels unless Relabeled; the reader then decides with Shows. Nil: no item
	// is unsure.
	Unsure    func(*Item) bool
	Relabeled bool // an unsure item may be shown with other labels
	// Shard selects items by a hash besides; nil: all.
	Shard *shard.Selector

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

// Everything says that the filter selects all items.
func (f *Filter) Everything() bool { return f.Whole() && (f == nil || f.Shard == nil) }

// Whole says that neither labels nor fields are selected: the filter selects all items of its shard.
func (f *Filter) Whole() bool {
	return f == nil || !f.labeled && len(f.Fields) == 0 && !f.none
}

// Match says whether the filter selects an item. It selects corrupt items, as a reader must learn of them.
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
	if !f.inShard(it) {
		return false
	}
	if f.unsure(it) {
		return f.matchFields(it, nil) && (f.Relabeled || f.matchLabels(it))
	}
	return (len(f.Fields) == 0 || f.matchFields(it, it.fieldMeta())) && f.matchLabels(it)
}

// inShard says whether an item is in the shard of the filter. No version of an object has another UID or namespace.
func (f *Filter) inShard(it *Item) bool {
	switch {
	case f.Shard == nil:
		return true
	case f.Shard.OfNamespace():
		return f.Shard.Selects(it.Namespace)
	}
	return f.Shard.Selects(it.OwnerInfo().UID)
}

// ShardText is the text of the shard selector; "" for none.
func (f *Filter) ShardText() string {
	if f == nil || f.Shard == nil {
		return ""
	}
	return f.Shard.String()
}

// matcher is Match for one reader of many items in key order. Neighbours mostly have the same labels.
type matcher struct {
	*Filter
	of        string // the last labels, as packing.Common has them
	known, is bool   // of is set; the terms select it
}

func (m *matcher) match(it *Item) bool {
	b := it.body.Load()
	if !m.labeled || m.none || len(m.Fields) > 0 || m.Unsure != nil || m.many.labels || m.Shard != nil || it.Corrupt != nil || !b.packed() {
		return m.Match(it)
	}
	if of := b.common.Text(); !m.known || m.of != of {
		m.of, m.known, m.is = of, true, m.matchTerms(b.common)
	}
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

// field is the value of a field that a FieldTerm names; m is the metadata of the item.
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
// field is indexed; labeled says that labels are indexed.
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

// pinning are the terms that fix a label to a value.
func pinning(terms []labels.Requirement) (out []labels.Requirement) {
	for i := range terms {
		if _, ok := pinned(&terms[i]); ok && len(out) < maxPostings {
			out = append(out, terms[i])
		}
	}
	return out
}

// fewTerms is the most values of a selector that is evaluated term by term. A request has room for a hundred thousand values,
// and there may be as many objects.
const fewTerms = 16

// many is a selector of many terms or values, indexed by label or field. The time to match an object depends on the object's
// labels, not on the length of the selector. It needs little memory besides the selector, because a watch keeps it.
type many struct {
	labels bool                 // labels are not matched term by term
	terms  []labels.Requirement // sorted by key, without those in bounds
	bounds map[string]*bound    // of keys with many terms or values
	needed int                  // number of labels that an object must have
	fields map[int]*bound       // nil: match term by term
}

// newMany groups the terms if they are many.
func newMany(terms []labels.Requirement, fields []FieldTerm) (m many) {
	size := len(terms)
	for i := range terms {
		size += len(terms[i].ValuesUnsorted())
	}
	if size > fewTerms {
		m.group(terms)
	}
	if len(fields) > fewTerms {
		m.fields = make(map[int]*bound)
		for _, t := range fields {
			op := selection.Equals
			if t.Not {
				op = selection.NotEquals
			}
			boundOf(m.fields, t.Index).add(op, []string{t.Value})
		}
		for _, b := range m.fields {
			b.sort()
		}
	}
	return m
}

func inKeyOrder(a, b labels.Requirement) int { return cmp.Compare(a.Key(), b.Key()) }

// group sorts the terms by key. Keys with few terms keep them; the others get a bound.
func (m *many) group(terms []labels.Requirement) {
	m.labels = true
	if !slices.IsSortedFunc(terms, inKeyOrder) {
		terms = slices.Clone(terms)
		slices.SortStableFunc(terms, inKeyOrder)
	}
	long := func(run []labels.Requirement) bool {
		size := len(run)
		for i := range run {
			size += len(run[i].ValuesUnsorted())
		}
		return size > fewTerms
	}
	left := len(terms)
	for run := range runs(terms) {
		if !long(run) {
			if slices.ContainsFunc(run, needs) {
				m.needed++
			}
			continue
		}
		if m.bounds == nil {
			m.bounds = make(map[string]*bound)
		}
		b := boundOf(m.bounds, run[0].Key())
		for i := range run {
			b.add(run[i].Operator(), run[i].ValuesUnsorted())
		}
		b.sort()
		if b.present {
			m.needed++
		}
		left -= len(run)
	}
	if left == len(terms) {
		m.terms = terms
		return
	}
	m.terms = make([]labels.Requirement, 0, left)
	for run := range runs(terms) {
		if !long(run) {
			m.terms = append(m.terms, run...)
		}
	}
}

// runs yields the terms of each key.
func runs(terms []labels.Requirement) iter.Seq[[]labels.Requirement] {
	return func(yield func([]labels.Requirement) bool) {
		for len(terms) > 0 {
			n := 1
			for n < len(terms) && terms[n].Key() == terms[0].Key() {
				n++
			}
			if !yield(terms[:n:n]) {
				return
			}
			terms = terms[n:]
		}
	}
}

// needs says that a term requires its label to exist.
func needs(r labels.Requirement) bool {
	switch r.Operator() {
	case selection.NotIn, selection.NotEquals, selection.DoesNotExist:
		return false
	}
	return true
}

func boundOf[K comparable](m map[K]*bound, key K) *bound {
	b := m[key]
	if b == nil {
		b = &bound{}
		m[key] = b
	}
	return b
}

// match says whether the selector selects labels. It is for a many with labels set.
func (m *many) match(set labels.Set) bool {
	if len(set) < m.needed {
		return false
	}
	met := 0
	for key, value := range set {
		if b := m.bounds[key]; b != nil {
			if !b.allows(value) {
				return false
			}
			if b.present {
				met++
			}
			continue
		}
		at, found := slices.BinarySearchFunc(m.terms, key, func(r labels.Requirement, key string) int { return cmp.Compare(r.Key(), key) })
		if !found {
			continue
		}
		needed := false
		for ; at < len(m.terms) && m.terms[at].Key() == key; at++ {
			if !m.terms[at].Matches(set) {
				return false
			}
			needed = needed || needs(m.terms[at])
		}
		if needed {
			met++
		}
	}
	return met == m.needed
}

// bound is the conjunction of all terms of a selector for one label or field.
type bound struct {
	present, absent bool // it must exist, or must not
	limited         bool // only values in among are allowed
	among, not      []string
	above, below    *int64 // exclusive; nil: no limit
}

// add adds a term, whose values have been validated. The caller calls sort after the last one.
func (b *bound) add(op selection.Operator, values []string) {
	switch op {
	case selection.In, selection.Equals, selection.DoubleEquals:
		b.present = true
		values = sorted(values)
		if b.limited {
			values = slices.DeleteFunc(slices.Clone(b.among), func(v string) bool { return !holds(values, v) })
		}
		b.among, b.limited = values, true
	case selection.NotIn, selection.NotEquals:
		b.not = append(b.not, values...)
	case selection.Exists:
		b.present = true
	case selection.DoesNotExist:
		b.absent = true
	case selection.GreaterThan, selection.LessThan:
		b.limit(op, values)
	}
}

// sort prepares the bound for allows.
func (b *bound) sort() {
	slices.Sort(b.not)
	b.not = slices.Clip(slices.Compact(b.not))
}

// sorted returns values in order, and leaves the caller's slice unchanged.
func sorted(values []string) []string {
	if slices.IsSorted(values) {
		return values
	}
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}

func holds(values []string, v string) bool {
	_, found := slices.BinarySearch(values, v)
	return found
}

func (b *bound) limit(op selection.Operator, values []string) {
	b.present = true
	n, err := strconv.ParseInt(values[0], 10, 64)
	switch {
	case err != nil: // a term that has no number selects nothing
		b.absent = true
	case op == selection.GreaterThan && (b.above == nil || n > *b.above):
		b.above = &n
	case op == selection.LessThan && (b.below == nil || n < *b.below):
		b.below = &n
	}
}

// allows says whether the terms allow a value.
func (b *bound) allows(value string) bool {
	if b.absent || b.limited && !holds(b.among, value) || holds(b.not, value) {
		return false
	}
	if b.above == nil && b.below == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (b.above == nil || n > *b.above) && (b.below == nil || n < *b.below)
}
