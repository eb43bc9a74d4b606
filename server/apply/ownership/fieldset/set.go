// Package fieldset finds the fields in which two objects of one Go type differ, and
// computes with sets of fields as metadata.managedFields records them.
//
// It is the fast path of package ownership, without managers and entries:
//
//	Plans.Of       a plan for a Go type, compiled from schema.Shape once and then cached
//	Plan.Changes   compares two objects by the plan: a Set of added, changed and
//	               removed paths
//	Parse, Append  read and write the text of a Set (FieldsV1)
//	Remove, Union  compute with sets
//
// For input that it does not support (lists with duplicate keys, unusual characters in keys,
// fields without a schema, sets in an unusual spelling) it returns ErrUnsupported. Package
// ownership then falls back to the library, which handles everything.
//
// All goroutines share plans. A Set and the Memory that backs it belong to one goroutine.
package fieldset

import (
	"bytes"
	"errors"
	"slices"
	"strings"
)

// ErrUnsupported means that only the merge library can handle a value or a set.
var ErrUnsupported = errors.New("the value needs the merge library")

// Set is a set of field paths, as a tree: paths with the same beginning share branches. Sibling branches are
// sorted by element. A Set from a comparison may also contain removed paths, which are not members.
type Set []branch

// branch is one path element with its children.
type branch struct {
	element  string // as in FieldsV1, escaped for JSON: `f:spec`, `k:{\"name\":\"web\"}`
	state    state
	differs  bool // for Overlay: the value there, or below, was another
	children Set
}

// state is the state of the path that ends in a branch.
type state uint8

const (
	notMember state = iota // only a part of other paths
	removed                // in a comparison: the new object does not have it
	member                 // in a comparison: it was added or changed
)

// Empty reports whether a set has no members.
func (s Set) Empty() bool {
	for i := range s {
		if s[i].hasMember() {
			return false
		}
	}
	return true
}

// hasMember reports whether the path of a branch, or a longer one, is a member.
func (b *branch) hasMember() bool { return b.state == member || !b.children.Empty() }

// Remove takes every path that changes names out of the set, added and removed ones
// alike, and reports whether there was one. The set itself is changed.
func (s Set) Remove(changes Set) bool {
	found := false
	i := 0
	for c := range changes {
		change := &changes[c]
		for i < len(s) && s[i].element < change.element {
			i++
		}
		if i == len(s) {
			break
		}
		if s[i].element != change.element {
			continue
		}
		if change.state != notMember && s[i].state == member {
			s[i].state, found = notMember, true
		}
		found = s[i].children.Remove(change.children) || found
	}
	return found
}

// Union returns the set of the members of both. It shares branches with both.
func (s Set) Union(more Set) Set {
	out := make(Set, 0, len(s)+len(more))
	i, j := 0, 0
	for i < len(s) || j < len(more) {
		switch {
		case j == len(more) || i < len(s) && s[i].element < more[j].element:
			out = append(out, s[i])
			i++
		case i == len(s) || more[j].element < s[i].element:
			out = append(out, more[j])
			j++
		default:
			out = append(out, joined(&s[i], &more[j]))
			i++
			j++
		}
	}
	return out
}

// joined returns the union of two branches with the same element.
func joined(a, b *branch) branch {
	out := branch{element: a.element}
	if a.state == member || b.state == member {
		out.state = member
	}
	switch {
	case len(a.children) == 0:
		out.children = b.children
	case len(b.children) == 0:
		out.children = a.children
	default:
		out.children = a.children.Union(b.children)
	}
	return out
}

// MayMention reports whether the text of a set may contain one of the changed paths. It is faster than parsing, and may
// return true for a set without them.
func (s Set) MayMention(text []byte) bool {
	for i := range s {
		if bytes.Contains(text, []byte(s[i].element)) {
			return true
		}
	}
	return false
}

func (s Set) sort() {
	if len(s) > 1 {
		slices.SortFunc(s, func(a, b branch) int { return strings.Compare(a.element, b.element) })
	}
}
