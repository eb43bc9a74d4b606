package json

import (
	gojson "encoding/json"
	"errors"
	"path"
	"reflect"
	"strings"
)

// mistyped removes embedded structs, which are not in the JSON, from the path of a field whose value in data
// has a wrong type, unless the view names them as the decoder does. The Go type may be that of another
// version than data's: the error names the version of data.
func (c Codec) mistyped(err error, t reflect.Type, data []byte) error {
	var wrong *gojson.UnmarshalTypeError
	if !errors.As(err, &wrong) {
		return err
	}
	if wrong.Field != "" && !c.View().NamesEmbedded() {
		wrong.Field = jsonPath(wrong.Field, t)
	}
	kind, kindErr := c.Kind(data)
	if of := packageOf(t); kindErr == nil && kind.Version != "" && strings.HasPrefix(of, "k8s.io/api/") && packageOf(wrong.Type) == of {
		text := " of type " + wrong.Type.String()
		other := strings.Replace(text, path.Base(of)+".", kind.Version+".", 1)
		return &otherVersion{wrong, strings.Replace(wrong.Error(), text, other, 1)}
	}
	return err
}

// packageOf returns the package that declares a type, or that of its elements.
func packageOf(t reflect.Type) string {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	return t.PkgPath()
}

// otherVersion is an error about a type with the name that it has in another version of the API.
type otherVersion struct {
	*gojson.UnmarshalTypeError
	text string
}

func (e *otherVersion) Error() string { return e.text }
func (e *otherVersion) Unwrap() error { return e.UnmarshalTypeError }

// jsonPath removes the embedded structs from a path of t, and cuts the path at a value that decodes itself.
func jsonPath(path string, t reflect.Type) string {
	var kept []string
	names := strings.Split(path, ".")
	for i, name := range names {
		for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
			t = t.Elem()
		}
		if t.Kind() != reflect.Struct {
			return strings.Join(append(kept, names[i:]...), ".")
		}
		if i > 0 && reflect.PointerTo(t).Implements(reflect.TypeFor[gojson.Unmarshaler]()) {
			break
		}
		field, embedded := fieldNamed(t, name)
		if field == nil {
			return strings.Join(append(kept, names[i:]...), ".")
		}
		if !embedded {
			kept = append(kept, name)
		}
		t = field
	}
	return strings.Join(kept, ".")
}

// fieldNamed returns the type of the field that a path of t names, nil if there is none.
func fieldNamed(t reflect.Type, name string) (field reflect.Type, embedded bool) {
	for i := range t.NumField() {
		f := t.Field(i)
		switch tag, _, _ := strings.Cut(f.Tag.Get("json"), ","); {
		case f.Anonymous && tag == "":
			if f.Name == name {
				return f.Type, true
			}
		case tag == name, tag == "" && f.Name == name:
			return f.Type, false
		}
	}
	return nil, false
}
