package packing

import "slices"

// Record appends the labels and owners of a packed object relative to the objects before it: the number of an equal Common, or
// 0 and both parts, each as the number of a Common that has it, or 0 and its text. A reader that has seen the same objects
// needs no comparison.
func (n *Neighbors) Record(dst []byte, c *Common) []byte {
	at := 0
	if c != nil {
		if same, _ := n.find(c.Labels, c.Owners); same != nil {
			c = same
		}
		at = slices.Index(n.seen[:], c) + 1
	}
	if dst = append(dst, byte(at)); at > 0 {
		return dst
	}
	if c == nil {
		c = &Common{}
	}
	dst = n.recordPart(dst, c.Labels, labelsOf)
	dst = n.recordPart(dst, c.Owners, ownersOf)
	if c.Labels != "" || c.Owners != "" {
		n.See(c)
	}
	return dst
}

func (n *Neighbors) recordPart(dst []byte, text string, of func(c *Common) string) []byte {
	at := slices.IndexFunc(n.seen[:], func(c *Common) bool { return c != nil && text != "" && of(c) == text }) + 1
	if dst = append(dst, byte(at)); at > 0 {
		return dst
	}
	return AppendText(dst, text)
}

// Read reads what Record wrote. It returns false if the bytes are invalid.
func (n *Neighbors) Read(from *Cursor) (c *Common, ok bool) {
	at := int(from.Byte())
	if at > mostNeighbors {
		return nil, false
	}
	if at > 0 {
		c = n.seen[at-1]
		return c, c != nil
	}
	var made Common
	labels, owners := n.readPart(from, &made.Labels, labelsOf, validLabels), n.readPart(from, &made.Owners, ownersOf, validOwners)
	if !labels || !owners {
		return nil, false
	}
	if made == (Common{}) {
		return nil, true
	}
	c = &made
	n.See(c)
	return c, true
}

func (n *Neighbors) readPart(from *Cursor, to *string, of func(c *Common) string, valid func(text []byte) bool) (ok bool) {
	at := int(from.Byte())
	if at > mostNeighbors {
		return false
	}
	if at > 0 {
		c := n.seen[at-1]
		if c != nil {
			*to = of(c)
		}
		return c != nil
	}
	text := from.Bytes()
	if from.Bad || !valid(text) {
		return false
	}
	*to = string(text)
	return true
}

func labelsOf(c *Common) string { return c.Labels }
func ownersOf(c *Common) string { return c.Owners }

// validLabels says that a text is the labels of a Common.
func validLabels(text []byte) bool {
	c := NewCursor(text)
	for c.Left() > 0 {
		c.Bytes()
		c.Bytes()
	}
	return !c.Bad
}

// validOwners says that a text is the owners of a Common.
func validOwners(text []byte) bool {
	c := NewCursor(text)
	for c.Left() > 0 {
		c.Byte()
		for range 4 {
			c.Bytes()
		}
	}
	return !c.Bad
}
