package apiextensions

import "github.com/rowlock/rowlock/codecs/json/scan"

// CutSchemas returns the text of a stored definition with an empty object for the schema of each version. It
// passes the removed texts to show, unless it is nil.
func CutSchemas(text []byte, each func(v *Stored)) []byte {
	small, last := make([]byte, 0, 4096), 0
	EachVersion(text, func(v *Stored) {
		if v.Schema == nil {
			return
		}
		if each != nil {
			each(v)
		}
		small = append(append(small, text[last:v.at]...), "{}"...)
		last = v.at + len(v.Schema)
	})
	return append(small, text[last:]...)
}

// Stored is a version in the text of a stored definition. Name and Schema are parts of
// that text, nil where there are none.
type Stored struct {
	Text, Name, Schema []byte

	at int // where in the whole text the schema begins
}

// EachVersion calls fn with each version of a stored definition, in one walk through the text.
func EachVersion(text []byte, fn func(v *Stored)) {
	within(text, scan.Space(text, 0), "spec", func(at int) int {
		return within(text, at, "versions", func(at int) int {
			return scan.Loose.Elements(text, at, func(at int) (int, bool) {
				v := Stored{}
				end := members(text, at, func(name []byte, value, end int) {
					switch {
					case string(name) == "name" && v.Name == nil:
						v.Name = text[value:end]
					case string(name) == "schema" && v.Schema == nil:
						v.Schema, v.at = text[value:end], value
					}
				})
				if end < 0 {
					v, end = Stored{}, scan.Skip(text, at)
				}
				if end >= 0 {
					v.Text = text[at:end]
					fn(&v)
				}
				return end, true
			})
		})
	})
}

// within goes through an object, where it leaves the value of one name to fn, which gives the end of it
// or -1. It gives the end of the object, or -1.
func within(text []byte, at int, want string, fn func(at int) int) int {
	found := false
	return scan.Loose.Members(text, at, func(name scan.Name, value int) (int, bool) {
		if !found && string(name.In(text)) == want {
			found = true
			if end := fn(value); end >= 0 {
				return end, true
			}
		}
		return scan.Skip(text, value), true
	})
}

// members shows the members of an object, each with where its value begins and ends.
func members(text []byte, at int, fn func(name []byte, value, end int)) int {
	return scan.Loose.Members(text, at, func(name scan.Name, value int) (int, bool) {
		end := scan.Skip(text, value)
		if end >= 0 {
			fn(name.In(text), value, end)
		}
		return end, true
	})
}
