package json

import "bytes"

// The scanner finds where values begin and end in encoded objects. It trusts the
// bytes to be well-formed JSON: on anything else it stops, or finds wrong ends,
// but it never reads outside the data.

// EachField calls f for every member of the object at the start of data, with the
// raw name (escapes not resolved) and the raw value. It reports whether data began
// with an object whose end was reached and f never returned false.
func EachField(data []byte, f func(name, value []byte) bool) bool {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '{' {
		return false
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == '}' {
		return true
	}
	for i < len(data) && data[i] == '"' {
		end := skipString(data, i)
		if end < 0 {
			return false
		}
		name := data[i+1 : end-1]
		i = skipSpace(data, end)
		if i >= len(data) || data[i] != ':' {
			return false
		}
		i = skipSpace(data, i+1)
		end = skipValue(data, i)
		if end < 0 || !f(name, data[i:end:end]) {
			return false
		}
		i = skipSpace(data, end)
		if i >= len(data) {
			return false
		}
		if data[i] == '}' {
			return true
		}
		if data[i] != ',' {
			return false
		}
		i = skipSpace(data, i+1)
	}
	return false
}

// EachElement calls f for every element of the array at the start of data, with
// the same result as EachField.
func EachElement(data []byte, f func(value []byte) bool) bool {
	i := skipSpace(data, 0)
	if i >= len(data) || data[i] != '[' {
		return false
	}
	i = skipSpace(data, i+1)
	if i < len(data) && data[i] == ']' {
		return true
	}
	for i < len(data) {
		end := skipValue(data, i)
		if end < 0 || !f(data[i:end:end]) {
			return false
		}
		i = skipSpace(data, end)
		if i >= len(data) {
			return false
		}
		if data[i] == ']' {
			return true
		}
		if data[i] != ',' {
			return false
		}
		i = skipSpace(data, i+1)
	}
	return false
}

// Lookup returns the raw value at a path of member names in the object at the
// start of data, or nil.
func Lookup(data []byte, path ...string) []byte {
	for _, want := range path {
		var found []byte
		EachField(data, func(name, value []byte) bool {
			if string(name) == want {
				found = value
				return false
			}
			return true
		})
		if found == nil {
			return nil
		}
		data = found
	}
	return data
}

func skipSpace(data []byte, i int) int {
	for i < len(data) {
		switch data[i] {
		case ' ', '\t', '\n', '\r':
			i++
		default:
			return i
		}
	}
	return i
}

// skipString returns the index after the string that starts at i, or -1.
func skipString(data []byte, i int) int {
	i++
	for {
		q := bytes.IndexByte(data[i:], '"')
		if q < 0 {
			return -1
		}
		i += q
		slashes := 0
		for data[i-1-slashes] == '\\' { // stops at the opening quote at the latest
			slashes++
		}
		i++
		if slashes%2 == 0 {
			return i
		}
	}
}

// skipValue returns the index after the value that starts at i, or -1.
func skipValue(data []byte, i int) int {
	if i >= len(data) {
		return -1
	}
	switch data[i] {
	case '"':
		return skipString(data, i)
	case '{', '[':
		return skipNested(data, i)
	}
	start := i
	for i < len(data) {
		switch data[i] {
		case ',', '}', ']', ' ', '\t', '\n', '\r', ':', '"', '{', '[':
			if i == start {
				return -1
			}
			return i
		}
		i++
	}
	return i
}

func skipNested(data []byte, i int) int {
	depth := 0
	for i < len(data) {
		switch data[i] {
		case '"':
			if i = skipString(data, i); i < 0 {
				return -1
			}
			continue
		case '{', '[':
			depth++
		case '}', ']':
			if depth--; depth == 0 {
				return i + 1
			}
		}
		i++
	}
	return -1
}
