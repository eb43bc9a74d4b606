package cache

import (
	"strconv"

	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"
)

// fewTerms is how many values a selector may name to be asked term by term. A
// request has room for a hundred thousand, and there are as many objects to ask.
const fewTerms = 16

// many is a selector of many terms or values, by what they are about: what an
// object costs follows from its labels, not from the selector.
type many struct {
	labels map[string]*bound // nil: ask term by term
	needed int               // how many of labels must be there
	fields map[int]*bound    // nil: ask term by term
}

// newMany groups the terms where they are many.
func newMany(terms []labels.Requirement, fields []FieldTerm) (m many) {
	size := len(terms)
	for i := range terms {
		size += len(terms[i].ValuesUnsorted())
	}
	if size > fewTerms {
		m.labels = make(map[string]*bound)
		for i := range terms {
			b := boundOf(m.labels, terms[i].Key())
			b.add(terms[i].Operator(), terms[i].ValuesUnsorted())
		}
		for _, b := range m.labels {
			if b.present {
				m.needed++
			}
		}
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
	}
	return m
}

func boundOf[K comparable](m map[K]*bound, key K) *bound {
	b := m[key]
	if b == nil {
		b = &bound{}
		m[key] = b
	}
	return b
}

// match says whether labels are selected. It is for m.labels.
func (m *many) match(set labels.Set) bool {
	if len(set) < m.needed {
		return false
	}
	met := 0
	for key, value := range set {
		b := m.labels[key]
		if b == nil {
			continue
		}
		if !b.allows(value) {
			return false
		}
		if b.present {
			met++
		}
	}
	return met == m.needed
}

// bound is all that the terms of a selector say of one label or field.
type bound struct {
	present, absent bool            // it must be there, or must not
	among           map[string]bool // nil: any value
	not             map[string]bool
	above, below    *int64 // exclusive; nil: no limit
}

// add takes one more term. Its values have been validated.
func (b *bound) add(op selection.Operator, values []string) {
	switch op {
	case selection.In, selection.Equals, selection.DoubleEquals:
		b.present = true
		among := make(map[string]bool, len(values))
		for _, v := range values {
			if b.among == nil || b.among[v] {
				among[v] = true
			}
		}
		b.among = among
	case selection.NotIn, selection.NotEquals:
		if b.not == nil {
			b.not = make(map[string]bool, len(values))
		}
		for _, v := range values {
			b.not[v] = true
		}
	case selection.Exists:
		b.present = true
	case selection.DoesNotExist:
		b.absent = true
	case selection.GreaterThan, selection.LessThan:
		b.limit(op, values)
	}
}

func (b *bound) limit(op selection.Operator, values []string) {
	b.present = true
	n, err := strconv.ParseInt(values[0], 10, 64)
	switch {
	case err != nil: // a term without a number selects nothing
		b.absent = true
	case op == selection.GreaterThan && (b.above == nil || n > *b.above):
		b.above = &n
	case op == selection.LessThan && (b.below == nil || n < *b.below):
		b.below = &n
	}
}

// allows says whether a value of what is there is allowed.
func (b *bound) allows(value string) bool {
	if b.absent || b.among != nil && !b.among[value] || b.not[value] {
		return false
	}
	if b.above == nil && b.below == nil {
		return true
	}
	n, err := strconv.ParseInt(value, 10, 64)
	return err == nil && (b.above == nil || n > *b.above) && (b.below == nil || n < *b.below)
}
