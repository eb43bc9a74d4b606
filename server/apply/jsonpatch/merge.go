package jsonpatch

import (
	"errors"

	"github.com/rowlock/rowlock/codecs/budget"
	"github.com/rowlock/rowlock/codecs/json/scan"
)

// ErrNoPatch means that a merge patch is none.
var ErrNoPatch = errors.New("Invalid JSON Patch")

// Merge applies a merge patch (RFC 7386) to a document, which must be a JSON object. The
// error is ErrNoPatch or of the budget.
func Merge(document, patch []byte, b *budget.Budget) ([]byte, error) {
	if !scan.Loose.Valid(patch, scan.MaxDepth) {
		return nil, ErrNoPatch
	}
	doc, err := parse(document, b)
	if err != nil {
		return nil, err
	}
	change, err := parse(patch, b)
	if err != nil {
		return nil, err
	}
	m := merger{b}
	switch change.form() {
	case object:
		doc, err = m.merge(doc, change)
	case array:
		doc, err = change, m.prune(change)
	default:
		return nil, ErrNoPatch
	}
	if err != nil {
		return nil, err
	}
	return doc.write(make([]byte, 0, len(document)+len(patch)), b, scan.MaxDepth)
}

type merger struct{ *budget.Budget }

// merge applies patch to an existing value.
func (m merger) merge(cur, patch *node) (*node, error) {
	have, err := cur.open(m.Budget)
	if err != nil {
		return nil, err
	}
	if have != object {
		return patch, m.prune(patch)
	}
	if patch.form() != object {
		return patch, nil
	}
	if _, err := patch.open(m.Budget); err != nil {
		return nil, err
	}
	for key, v := range patch.members {
		if err := m.Spend(1); err != nil {
			return nil, err
		}
		switch old := cur.members[key]; {
		case v == nil:
			delete(cur.members, key)
		case old == nil:
			if err := m.prune(v); err != nil {
				return nil, err
			}
			cur.members[key] = v
		default:
			if cur.members[key], err = m.merge(old, v); err != nil {
				return nil, err
			}
		}
	}
	return cur, nil
}

// prune takes the members that are null out of a part of a patch that has nothing to
// merge with.
func (m merger) prune(n *node) error {
	f, err := n.open(m.Budget)
	if err != nil {
		return err
	}
	switch f {
	case object:
		for key, v := range n.members {
			if v == nil {
				delete(n.members, key)
			} else if err := m.prune(v); err != nil {
				return err
			}
		}
	case array:
		return n.elements.all(func(_ int, e *node) error {
			if e == nil {
				return nil
			}
			return m.prune(e)
		})
	}
	return nil
}
