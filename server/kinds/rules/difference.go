package rules

import (
	"cmp"
	"fmt"
	"reflect"
	"sort"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/api/resource"
)

// Difference shows people the changes of an API value, in the layout of other API servers: Go syntax, with a
// sign before the lines that differ. Fields far from any difference are counted, and long texts and lists are
// cut. Programs cannot parse it. It returns "" for equal values.
func Difference(old, value any) string {
	if Same(old, value) {
		return ""
	}
	var out strings.Builder
	a, b := reflect.ValueOf(old), reflect.ValueOf(value)
	if descends(a, b) {
		e := different(a, b, true)
		e.last = true
		drawn(&out, []entry{e}, 0, ' ')
	} else {
		drawn(&out, []entry{whole(a, '-', true), whole(b, '+', true)}, 0, ' ')
	}
	return out.String()
}

// Bounds of the text.
const (
	shownAround   = 2   // fields around one that differs
	shownDepth    = 3   // of values that are the same
	shownEntries  = 16  // of a list or a map
	shownText     = 256 // bytes of a string
	longestInside = 72  // bytes between braces that stay on one line, of removed and added text
)

// entry is one or more lines: the text before the brace, the entries within, and the brace.
type entry struct {
	sign   byte // '-', '+', or that of its parent
	key    string
	text   string  // all of it, or its opening line
	inside []entry // nil for a single line
	last   bool    // no comma behind it
}

// drawn writes entries with the keys of neighbouring lines aligned.
func drawn(out *strings.Builder, list []entry, depth int, sign byte) {
	width := make([]int, len(list))
	for from := 0; from < len(list); {
		to, widest := from, 0
		for ; to < len(list) && list[to].key != "" && list[to].inside == nil; to++ {
			widest = max(widest, len(list[to].key))
		}
		for i := from; i < to; i++ {
			width[i] = widest
		}
		from = to + 1
	}
	for i, e := range list {
		e.sign = cmp.Or(e.sign, sign)
		begin := string(e.sign) + " " + strings.Repeat("\t", depth)
		out.WriteString(begin)
		if e.key != "" {
			out.WriteString(e.key + ": " + strings.Repeat(" ", max(width[i]-len(e.key), 0)))
		}
		out.WriteString(e.text)
		if e.inside != nil {
			out.WriteByte('\n')
			drawn(out, e.inside, depth+1, e.sign)
			out.WriteString(begin + "}")
		}
		if !e.last {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
}

// descends reports whether the differences between two values are shown within them.
func descends(a, b reflect.Value) bool {
	if !a.IsValid() || !b.IsValid() || a.Type() != b.Type() || !plain(a) {
		return false
	}
	switch a.Kind() {
	case reflect.Pointer:
		return !a.IsNil() && !b.IsNil() && descends(a.Elem(), b.Elem())
	case reflect.Slice:
		return a.Len() == b.Len() && a.Type().Elem().Kind() == reflect.Struct
	default:
		return a.Kind() == reflect.Struct
	}
}

// plain reports whether a value is shown by its parts, and not as it calls itself.
func plain(v reflect.Value) bool {
	if v.Kind() == reflect.Pointer {
		return v.IsNil() || plain(v.Elem()) // the String method of a pointer to an API struct is no help
	}
	if v.Type() == reflect.TypeFor[resource.Quantity]() {
		return false
	}
	_, names := stringer(v)
	return !names || v.Kind() == reflect.Struct && v.NumField() > 1
}

func stringer(v reflect.Value) (fmt.Stringer, bool) {
	if !v.CanInterface() {
		return nil, false
	}
	s, ok := v.Interface().(fmt.Stringer)
	return s, ok
}

// part is two values of a field or an element.
type part struct {
	key  string
	a, b reflect.Value
}

func (p part) same() bool { return Same(p.a.Interface(), p.b.Interface()) }

func different(a, b reflect.Value, typed bool) entry {
	var parts []part
	name := "elements"
	switch a.Kind() {
	case reflect.Pointer:
		e := different(a.Elem(), b.Elem(), typed)
		e.text = "&" + e.text
		return e
	case reflect.Slice:
		for i := range a.Len() {
			parts = append(parts, part{"", a.Index(i), b.Index(i)})
		}
	default:
		name = "fields"
		for i := range a.NumField() {
			parts = append(parts, part{a.Type().Field(i).Name, a.Field(i), b.Field(i)})
		}
	}
	e := entry{text: "{", inside: []entry{}}
	if typed {
		e.text = a.Type().String() + "{"
	}
	for from := 0; from < len(parts); {
		to := from
		for to < len(parts) && parts[to].same() {
			to++
		}
		e.inside = append(e.inside, around(parts[from:to], from > 0, to < len(parts), name)...)
		if to < len(parts) {
			e.inside = append(e.inside, differs(parts[to])...)
		}
		from = to + 1
	}
	return e
}

func differs(p part) []entry {
	inStruct := p.key != ""
	if descends(p.a, p.b) {
		e := different(p.a, p.b, inStruct)
		e.key = p.key
		return []entry{e}
	}
	gone, made := whole(p.a, '-', inStruct), whole(p.b, '+', inStruct)
	gone.key, made.key = p.key, p.key
	return []entry{gone, made}
}

// around keeps only the equal neighbours next to a different one.
func around(parts []part, behind, before bool, name string) (list []entry) {
	low, high := 0, 0
	if behind {
		low = min(shownAround, len(parts))
	}
	if before {
		high = min(shownAround, len(parts)-low)
	}
	if len(parts)-low-high == 1 {
		high++ // as long as the line that counts it
	}
	for i, p := range parts {
		switch hidden := len(parts) - low - high; {
		case i < low || i >= len(parts)-high:
			list = append(list, entry{key: p.key, text: compact(p.a, false, shownDepth)})
		case i == low:
			list = append(list, entry{text: fmt.Sprintf("... // %d identical %s", hidden, name), last: true})
		}
	}
	return list
}

// whole shows a value that is gone or new, on several lines if it is long.
func whole(v reflect.Value, sign byte, typed bool) entry {
	e := entry{sign: sign, text: compact(v, typed, -1)}
	open, inside := members(v, typed, -1)
	if inside == nil || len(strings.Join(texts(inside), ", ")) <= longestInside {
		return e
	}
	return entry{sign: sign, text: open, inside: inside}
}

// texts returns entries on one line.
func texts(list []entry) (out []string) {
	for _, e := range list {
		if e.key != "" {
			e.text = e.key + ": " + e.text
		}
		out = append(out, e.text)
	}
	return out
}

// compact shows a value on one line, to a depth, or all of it below 0.
func compact(v reflect.Value, typed bool, depth int) string {
	switch v.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Map, reflect.Interface:
		if v.IsNil() {
			return "nil"
		}
	}
	if s, names := stringer(v); names && v.Kind() != reflect.Pointer && !plain(v) {
		return "s" + quoted(s.String())
	}
	switch v.Kind() {
	case reflect.Pointer, reflect.Interface:
		mark := "&"
		if v.Kind() == reflect.Interface {
			mark = ""
		}
		return mark + compact(v.Elem(), typed, depth)
	case reflect.String:
		return quoted(v.String())
	case reflect.Struct, reflect.Slice, reflect.Map:
		open, inside := members(v, typed, depth)
		if depth == 0 {
			return open + "...}"
		}
		return open + strings.Join(texts(inside), ", ") + "}"
	default:
		return fmt.Sprint(v)
	}
}

// members returns the members of a value, without empty fields, and its opening line. They are nil for a scalar.
func members(v reflect.Value, typed bool, depth int) (open string, list []entry) {
	switch v.Kind() {
	case reflect.Pointer:
		if !v.IsNil() {
			open, list = members(v.Elem(), typed, depth)
		}
		return "&" + open, list
	case reflect.Struct, reflect.Slice, reflect.Map:
	default:
		return "", nil
	}
	open = "{"
	if typed {
		open = v.Type().String() + "{"
	}
	if depth == 0 {
		return open, nil
	}
	add := func(key string, member reflect.Value, typed bool) {
		if len(list) < shownEntries {
			list = append(list, entry{key: key, text: compact(member, typed, depth-1)})
		} else if len(list) == shownEntries {
			list = append(list, entry{text: "...", last: true})
		}
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Field(i).IsZero() {
				add(v.Type().Field(i).Name, v.Field(i), depth < 0)
			}
		}
	case reflect.Slice:
		for i := range v.Len() {
			add("", v.Index(i), false)
		}
	case reflect.Map:
		for _, k := range sortedKeys(v) {
			add(compact(k, false, -1), v.MapIndex(k), false)
		}
	}
	return open, list
}

func quoted(text string) string {
	if len(text) > shownText {
		return strconv.Quote(text[:shownText]) + "..."
	}
	return strconv.Quote(text)
}

func sortedKeys(m reflect.Value) []reflect.Value {
	keys := m.MapKeys()
	sort.Slice(keys, func(i, j int) bool { return keys[i].String() < keys[j].String() })
	return keys
}
