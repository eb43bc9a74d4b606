package rules

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/release"
	"github.com/rowlock/rowlock/server/removed"
)

// shown spells a value when an error is printed: of many about one list, few are.
type shown struct{ value reflect.Value }

// GoString spells the value as release 1.32 does, with the fields that it has. Later releases write JSON.
func (s shown) GoString() string {
	var b strings.Builder
	write(&b, s.value, 0)
	return b.String()
}

// Shown prepares a value for an error. Clients of a stock server see structures
// in Go syntax under the names of its internal packages ("apps.DeploymentStrategy"),
// so structures are spelled out that way; everything else is returned as it is. The
// value must not be changed while the error is of use.
func Shown(value any) any {
	v := reflect.ValueOf(value)
	for v.Kind() == reflect.Pointer {
		if v.IsNil() {
			return value
		}
		v = v.Elem()
	}
	switch v.Kind() {
	case reflect.Struct, reflect.Slice, reflect.Map:
	default:
		return value
	}
	if !v.CanInterface() {
		return value
	}
	if _, ok := v.Interface().(fmt.Stringer); ok {
		return value
	}
	return shown{v}
}

// maxDepth bounds recursion; API types are far below it.
const maxDepth = 64

func write(b *strings.Builder, v reflect.Value, depth int) {
	if depth > maxDepth {
		b.WriteString("...")
		return
	}
	if !v.IsValid() {
		b.WriteString("interface {}(nil)")
		return
	}
	if v.CanInterface() && v.Kind() != reflect.Pointer {
		if g, ok := v.Interface().(fmt.GoStringer); ok {
			b.WriteString(g.GoString())
			return
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		writeStruct(b, v, depth)
	case reflect.Pointer:
		// As package fmt has it: a method of Go syntax on nil shows as <nil>.
		if g, ok := goStringer(v); ok {
			if v.IsNil() {
				b.WriteString("<nil>")
			} else {
				b.WriteString(g.GoString())
			}
		} else if v.IsNil() {
			fmt.Fprintf(b, "(%s)(nil)", typeName(v.Type()))
		} else {
			fmt.Fprintf(b, "(%s)(%#x)", typeName(v.Type()), v.Pointer())
		}
	case reflect.Interface:
		if v.IsNil() {
			fmt.Fprintf(b, "%s(nil)", typeName(v.Type()))
		} else {
			write(b, v.Elem(), depth+1)
		}
	case reflect.Slice:
		if v.IsNil() {
			fmt.Fprintf(b, "%s(nil)", typeName(v.Type()))
			return
		}
		writeList(b, v, depth)
	case reflect.Array:
		writeList(b, v, depth)
	case reflect.Map:
		writeMap(b, v, depth)
	case reflect.String:
		fmt.Fprintf(b, "%q", v.String())
	case reflect.Uint8:
		fmt.Fprintf(b, "%#x", v.Uint())
	case reflect.Bool:
		fmt.Fprintf(b, "%t", v.Bool())
	case reflect.Float32, reflect.Float64:
		fmt.Fprintf(b, "%#v", v.Float())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		fmt.Fprintf(b, "%d", v.Int())
	default:
		fmt.Fprintf(b, "%#v", v)
	}
}

func goStringer(v reflect.Value) (fmt.GoStringer, bool) {
	if !v.CanInterface() {
		return nil, false
	}
	g, ok := v.Interface().(fmt.GoStringer)
	return g, ok
}

func writeStruct(b *strings.Builder, v reflect.Value, depth int) {
	b.WriteString(typeName(v.Type()))
	b.WriteByte('{')
	separator := ""
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if name, _, _ := strings.Cut(f.Tag.Get("json"), ","); release.V132.View().Lacks(v.Type(), name) {
			continue
		}
		b.WriteString(separator)
		separator = ", "
		b.WriteString(f.Name)
		b.WriteByte(':')
		write(b, v.Field(i), depth+1)
	}
	b.WriteByte('}')
}

func writeList(b *strings.Builder, v reflect.Value, depth int) {
	b.WriteString(typeName(v.Type()))
	b.WriteByte('{')
	for i := range v.Len() {
		if i > 0 {
			b.WriteString(", ")
		}
		write(b, v.Index(i), depth+1)
	}
	b.WriteByte('}')
}

func writeMap(b *strings.Builder, v reflect.Value, depth int) {
	if v.IsNil() {
		fmt.Fprintf(b, "%s(nil)", typeName(v.Type()))
		return
	}
	entries := make([]string, 0, v.Len())
	for it := v.MapRange(); it.Next(); {
		var e strings.Builder
		write(&e, it.Key(), depth+1)
		e.WriteByte(':')
		write(&e, it.Value(), depth+1)
		entries = append(entries, e.String())
	}
	slices.Sort(entries)
	b.WriteString(typeName(v.Type()))
	b.WriteByte('{')
	b.WriteString(strings.Join(entries, ", "))
	b.WriteByte('}')
}

// typeName returns the name of a type with the groups of versioned API packages in
// place of their versions: "core.PodSpec" for k8s.io/api/core/v1.
func typeName(t reflect.Type) string {
	if t.Name() != "" {
		group, ok := strings.CutPrefix(removed.PackagePath(t.PkgPath()), "k8s.io/api/")
		if !ok {
			return t.String()
		}
		group, _, _ = strings.Cut(group, "/")
		return group + "." + t.Name()
	}
	switch t.Kind() {
	case reflect.Pointer:
		return "*" + typeName(t.Elem())
	case reflect.Slice:
		return "[]" + typeName(t.Elem())
	case reflect.Map:
		return "map[" + typeName(t.Key()) + "]" + typeName(t.Elem())
	default:
		return t.String()
	}
}
