package schema

import (
	"bufio"
	_ "embed"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"sort"
	"strings"
	"sync"

	"github.com/rowlock/rowlock/codecs/view"
	"github.com/rowlock/rowlock/server/removed"
)

// Form is the role of a value in a merge.
type Form uint8

const (
	Scalar Form = iota
	Struct
	Map
	List
	Any // any JSON value, its maps merged key by key
)

// Shape describes how the values of one Go type merge and how ownership applies to their parts. Shapes are
// immutable and may be recursive.
type Shape struct {
	Form   Form
	Atomic bool         // the value has one owner and is replaced whole
	Type   reflect.Type // without pointers
	Self   bool         // the type encodes itself, as metav1.Time does
	Fields []Field      // of a Struct: sorted by name, inlined ones in place
	Elem   *Shape       // of a Map or a List
	Keys   []string     // of a List that is not Atomic: the key fields, sorted; none for a set
	model  string       // of a Struct: its name among the models
}

// Field is one JSON field of a Struct.
type Field struct {
	Name      string
	Index     []int // see reflect.Value.FieldByIndex
	OmitEmpty bool
	OmitZero  bool
	Default   any // of an absent key field; nil for none
	Shape     *Shape
}

// Find finds a field by name, or nil.
func (s *Shape) Find(name string) *Field {
	i, ok := slices.BinarySearchFunc(s.Fields, name, func(f Field, name string) int { return strings.Compare(f.Name, name) })
	if !ok {
		return nil
	}
	return &s.Fields[i]
}

// selfEncoded are types whose JSON is not that of their Go fields.
var selfEncoded = map[string]Shape{
	"k8s.io/apimachinery/pkg/apis/meta/v1.Time":                                             {Form: Scalar},
	"k8s.io/apimachinery/pkg/apis/meta/v1.MicroTime":                                        {Form: Scalar},
	"k8s.io/apimachinery/pkg/apis/meta/v1.Duration":                                         {Form: Scalar},
	"k8s.io/apimachinery/pkg/apis/meta/v1.FieldsV1":                                         {Form: Any},
	"k8s.io/apimachinery/pkg/api/resource.Quantity":                                         {Form: Scalar},
	"k8s.io/apimachinery/pkg/util/intstr.IntOrString":                                       {Form: Scalar},
	"k8s.io/apimachinery/pkg/runtime.RawExtension":                                          {Form: Any, Atomic: true},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSON":                         {Form: Any},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrArray":       {Form: Any},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrBool":        {Form: Any},
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1.JSONSchemaPropsOrStringArray": {Form: Any},
}

//go:embed data/markers.txt.gz
var packedMarkers string

// markerTable is the parsed markers, keyed by type and field.
type markerTable struct {
	atomic   map[string]bool     // types
	rules    map[string][]string // "type field" -> {"map", "name"}
	defaults map[string]any      // "type field"
}

// parseMarkers reads the markers of the oldest release, or of those after it.
func parseMarkers(text string, newer bool) (*markerTable, error) {
	t := &markerTable{atomic: map[string]bool{}, rules: map[string][]string{}, defaults: map[string]any{}}
	inside, replaced := false, "" // lines of newer releases, and the type that they are of
	for in := bufio.NewScanner(strings.NewReader(text)); in.Scan(); {
		kind, rest, _ := strings.Cut(in.Text(), " ")
		typ, rest, _ := strings.Cut(rest, " ")
		switch kind {
		case "newer":
			inside, replaced = true, typ
			continue
		case "end":
			inside = false
			continue
		}
		if typ == replaced && inside != newer {
			continue
		}
		if kind == "type" {
			t.atomic[typ] = true
			continue
		}
		field, rest, _ := strings.Cut(rest, " ")
		switch kind {
		case "field":
			t.rules[typ+" "+field] = strings.Fields(rest)
		case "default":
			var v any
			if err := json.Unmarshal([]byte(rest), &v); err != nil {
				return nil, fmt.Errorf("default of %s.%s: %w", typ, field, err)
			}
			t.defaults[typ+" "+field] = v
		default:
			return nil, fmt.Errorf("unknown marker %q", kind)
		}
	}
	return t, nil
}

// shapes makes shapes on first use and keeps them. The zero value is ready, and has all fields.
type shapes struct {
	view    *view.View // which fields types have
	newer   bool       // the release is newer than the oldest
	mu      sync.Mutex
	markers *markerTable
	known   map[shapeKey]*Shape
}

type shapeKey struct {
	typ  reflect.Type
	rule string
}

// Of returns the shape of a type, with pointers looked through. It fails for types
// that have no JSON form.
func (s *shapes) Of(t reflect.Type) (*Shape, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.markers == nil {
		m, err := parseMarkers(embedded(packedMarkers), s.newer)
		if err != nil {
			return nil, err
		}
		s.markers, s.known = m, make(map[shapeKey]*Shape)
	}
	return s.shape(t, nil)
}

// shape makes the shape of a type under the rule of the field that holds it.
func (s *shapes) shape(t reflect.Type, rule []string) (*Shape, error) {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	key := shapeKey{t, strings.Join(rule, " ")}
	if known := s.known[key]; known != nil {
		return known, nil
	}
	out := &Shape{Type: t}
	s.known[key] = out
	if err := s.fill(out, t, rule); err != nil {
		delete(s.known, key)
		return nil, err
	}
	return out, nil
}

func (s *shapes) fill(out *Shape, t reflect.Type, rule []string) error {
	name := removed.PackagePath(t.PkgPath()) + "." + t.Name()
	if self, ok := selfEncoded[name]; ok {
		out.Form, out.Atomic, out.Self = self.Form, self.Atomic, true
		return nil
	}
	out.Atomic = s.markers.atomic[name]
	if len(rule) > 0 {
		out.Atomic = rule[0] == "atomic"
	}
	var err error
	switch t.Kind() {
	case reflect.String, reflect.Bool, reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Float32, reflect.Float64:
		out.Form, out.Atomic = Scalar, false
	case reflect.Map:
		out.Form = Map
		out.Elem, err = s.shape(t.Elem(), nil)
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			out.Form, out.Atomic = Scalar, false
			return nil
		}
		out.Form = List
		out.Atomic = len(rule) == 0 || rule[0] == "atomic"
		if !out.Atomic && rule[0] == "map" {
			out.Keys = slices.Sorted(slices.Values(rule[1:]))
		}
		out.Elem, err = s.shape(t.Elem(), nil)
	case reflect.Struct:
		out.Form = Struct
		out.model = name
		if len(rule) > 0 {
			out.model += " " + rule[0]
		}
		if out.Fields, err = s.fields(t, name, nil); err == nil {
			sort.Slice(out.Fields, func(i, j int) bool { return out.Fields[i].Name < out.Fields[j].Name })
		}
	default:
		err = fmt.Errorf("type %v has no JSON shape", t)
	}
	return err
}

func (s *shapes) fields(t reflect.Type, owner string, at []int) ([]Field, error) {
	var out []Field
	for i := range t.NumField() {
		f := t.Field(i)
		tag, ok := f.Tag.Lookup("json")
		if !ok || !f.IsExported() {
			continue
		}
		name, options, _ := strings.Cut(tag, ",")
		index := append(slices.Clone(at), i)
		if name == "-" {
			continue
		}
		if name == "" && f.Anonymous {
			inner, err := s.fields(f.Type, owner, index)
			if err != nil {
				return nil, err
			}
			out = append(out, inner...)
			continue
		}
		if s.view.Lacks(t, name) {
			continue
		}
		left := !s.view.Nulls(t, name)
		field := Field{Name: name, Index: index, OmitEmpty: left && strings.Contains(options, "omitempty"), OmitZero: left && strings.Contains(options, "omitzero")}
		var err error
		if field.Shape, err = s.shape(f.Type, s.markers.rules[owner+" "+name]); err != nil {
			return nil, fmt.Errorf("%v.%s: %w", t, f.Name, err)
		}
		if d, ok := s.markers.defaults[owner+" "+name]; ok {
			field.Default = d
		} else if !field.OmitEmpty {
			field.Default = zeroDefault(f.Type)
		}
		out = append(out, field)
	}
	return out, nil
}

// zeroDefault returns the meaning of an absent field of a plain type without omitempty.
func zeroDefault(t reflect.Type) any {
	switch t.Kind() {
	case reflect.String:
		return ""
	case reflect.Bool:
		return false
	case reflect.Int, reflect.Int32, reflect.Int64, reflect.Float64:
		return float64(0)
	}
	return nil
}
