package cache

import (
	"cmp"
	"iter"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// FieldTerm is one condition on a selectable field.
type FieldTerm struct {
	Index int // in Storage.Fields, or FieldName, FieldNamespace
	Value string
	Not   bool
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

// needs reports whether a term requires its label to exist.
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

// match reports whether the selector selects labels. It is for a many with labels set.
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

// allows reports whether the terms allow a value.
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
