package json

// compact reports whether data is one well-formed JSON value that encoding/json
// would copy as it is: without white space, and with nothing to escape for HTML.
// It may say no to a value that would be copied.
func compact(data []byte) bool {
	end := compactValue(data, 0, 0)
	return end >= 0 && end == len(data)
}

// compactDepth keeps the recursion shallow; deeper values take the slow way.
const compactDepth = 200

// compactValue returns the index after the value at i, or -1.
func compactValue(data []byte, i, depth int) int {
	if i >= len(data) || depth > compactDepth {
		return -1
	}
	switch c := data[i]; {
	case c == '"':
		return compactString(data, i)
	case c == '{' || c == '[':
		return compactNested(data, i, depth)
	case c == 't':
		return literal(data, i, "true")
	case c == 'f':
		return literal(data, i, "false")
	case c == 'n':
		return literal(data, i, "null")
	case '1' <= c && c <= '9':
		for i < len(data) && '0' <= data[i] && data[i] <= '9' {
			i++
		}
		if i < len(data) && (data[i] == '.' || data[i] == 'e' || data[i] == 'E') {
			return -1 // rare enough for the slow way
		}
		return i
	case c == '0' && (i+1 == len(data) || data[i+1] == ',' || data[i+1] == '}' || data[i+1] == ']'):
		return i + 1
	}
	return -1
}

func compactNested(data []byte, i, depth int) int {
	object, closing := data[i] == '{', data[i]+2 // '{'+2 is '}', '['+2 is ']'
	if i++; i < len(data) && data[i] == closing {
		return i + 1
	}
	for {
		if object {
			if i >= len(data) || data[i] != '"' {
				return -1
			}
			if i = compactString(data, i); i < 0 || i >= len(data) || data[i] != ':' {
				return -1
			}
			i++
		}
		if i = compactValue(data, i, depth+1); i < 0 || i >= len(data) {
			return -1
		}
		switch data[i] {
		case closing:
			return i + 1
		case ',':
			i++
		default:
			return -1
		}
	}
}

func compactString(data []byte, i int) int {
	for i++; i < len(data); i++ {
		switch c := data[i]; {
		case safe[c]:
		case c == '"':
			return i + 1
		case c == '\\' && i+1 < len(data) && (data[i+1] == '"' || data[i+1] == '\\' || data[i+1] == 'n' || data[i+1] == 't'):
			i++
		default:
			return -1
		}
	}
	return -1
}

func literal(data []byte, i int, word string) int {
	if len(data)-i < len(word) || string(data[i:i+len(word)]) != word {
		return -1
	}
	return i + len(word)
}
