package scan

// Valid reports whether b is one value, down to a depth.
func (l Layout) Valid(b []byte, depth int) bool {
	end := l.Value(b, l.space(b, 0), depth)
	return end >= 0 && l.space(b, end) == len(b)
}

// Value reads a value that nests at most depth levels.
func (l Layout) Value(b []byte, i, depth int) int {
	if i >= len(b) {
		return -1
	}
	switch b[i] {
	case '"':
		end, _ := String(b, i)
		return end
	case '{', '[':
		return l.nested(b, i, depth)
	case 't':
		return Word(b, i, "true")
	case 'f':
		return Word(b, i, "false")
	case 'n':
		return Word(b, i, "null")
	}
	return Number(b, i)
}

// nested reads an object or an array.
func (l Layout) nested(b []byte, i, depth int) int {
	if depth == 0 {
		return -1
	}
	object, closing := b[i] == '{', b[i]+2 // '{'+2 is '}', '['+2 is ']'
	if i = l.space(b, i+1); i < len(b) && b[i] == closing {
		return i + 1
	}
	for {
		if object {
			if i, _ = String(b, i); i < 0 {
				return -1
			}
			if i = l.space(b, i); i >= len(b) || b[i] != ':' {
				return -1
			}
			i = l.space(b, i+1)
		}
		if i = l.Value(b, i, depth-1); i < 0 {
			return -1
		}
		if i = l.space(b, i); i >= len(b) {
			return -1
		}
		switch b[i] {
		case closing:
			return i + 1
		case ',':
			i = l.space(b, i+1)
		default:
			return -1
		}
	}
}

// Name is the position of a member's name, with its quotes.
type Name struct {
	At, End int
	Has     Text
}

// In returns the name without quotes and escapes. It is part of b unless it has escapes.
func (n Name) In(b []byte) []byte {
	if n.Has&Escaped != 0 {
		return []byte(Unquote(b[n.At:n.End]))
	}
	return b[n.At+1 : n.End-1]
}

// Members reads the object at i. It calls member with the name of each member and the index of its
// value. member returns the index after the value, or -1, and whether to go on. Members returns
// the index after the object; after the last value looked at if member stopped; or -1.
func (l Layout) Members(b []byte, i int, member func(name Name, at int) (end int, more bool)) int {
	if i >= len(b) || b[i] != '{' {
		return -1
	}
	i = l.space(b, i+1)
	if i < len(b) && b[i] == '}' {
		return i + 1
	}
	for {
		name := Name{At: i}
		if name.End, name.Has = String(b, i); name.End < 0 {
			return -1
		}
		if i = l.space(b, name.End); i >= len(b) || b[i] != ':' {
			return -1
		}
		end, more := member(name, l.space(b, i+1))
		if end < 0 || !more {
			return end
		}
		if i = l.space(b, end); i >= len(b) {
			return -1
		}
		switch b[i] {
		case '}':
			return i + 1
		case ',':
			i = l.space(b, i+1)
		default:
			return -1
		}
	}
}

// Elements reads the array at i. It calls element with the index of each element; the rest is as
// for Members.
func (l Layout) Elements(b []byte, i int, element func(at int) (end int, more bool)) int {
	if i >= len(b) || b[i] != '[' {
		return -1
	}
	i = l.space(b, i+1)
	if i < len(b) && b[i] == ']' {
		return i + 1
	}
	for {
		end, more := element(i)
		if end < 0 || !more {
			return end
		}
		if i = l.space(b, end); i >= len(b) {
			return -1
		}
		switch b[i] {
		case ']':
			return i + 1
		case ',':
			i = l.space(b, i+1)
		default:
			return -1
		}
	}
}
