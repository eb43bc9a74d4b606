package pods

import (
	"fmt"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/equality"
)

// maxChanges bounds the message about an object that differs in many fields.
const maxChanges = 10

// changed lists the paths at which two specs differ, one a line. Values stay out
// of messages: some are secrets.
func changed(a, b any, path string) string {
	var paths []string
	diff(reflect.ValueOf(a), reflect.ValueOf(b), path, &paths)
	return "changed: " + strings.Join(paths, ", ")
}

// diff adds the paths at which a and b, of one type, differ. Lists of other
// lengths and maps differ as a whole.
func diff(a, b reflect.Value, path string, paths *[]string) {
	if len(*paths) >= maxChanges || equality.Semantic.DeepEqual(a.Interface(), b.Interface()) {
		return
	}
	switch a.Kind() {
	case reflect.Pointer:
		if !a.IsNil() && !b.IsNil() {
			diff(a.Elem(), b.Elem(), path, paths)
			return
		}
	case reflect.Slice:
		if a.Len() == b.Len() {
			for i := range a.Len() {
				diff(a.Index(i), b.Index(i), fmt.Sprintf("%s[%d]", path, i), paths)
			}
			return
		}
	case reflect.Struct:
		if before := len(*paths); diffFields(a, b, path, paths) || len(*paths) > before {
			return
		}
	}
	*paths = append(*paths, path)
}

// diffFields compares the fields that have a name in JSON, and reports whether there
// were any.
func diffFields(a, b reflect.Value, path string, paths *[]string) bool {
	named := false
	for i := range a.NumField() {
		f := a.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			named = true
			diff(a.Field(i), b.Field(i), path, paths)
		case name != "":
			named = true
			diff(a.Field(i), b.Field(i), path+"."+name, paths)
		}
	}
	return named
}
