package embed

import (
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// known returns types whose JSON does not follow from their fields.
func known(t reflect.Type) *apiextensionsv1.JSONSchemaProps {
	yes := true
	switch reflect.New(t).Interface().(type) {
	case *metav1.Time, *metav1.MicroTime:
		return &apiextensionsv1.JSONSchemaProps{Type: "string", Format: "date-time"}
	case *metav1.Duration:
		return &apiextensionsv1.JSONSchemaProps{Type: "string"}
	case *intstr.IntOrString:
		return &apiextensionsv1.JSONSchemaProps{XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}}
	case *resource.Quantity:
		return &apiextensionsv1.JSONSchemaProps{XIntOrString: true, AnyOf: []apiextensionsv1.JSONSchemaProps{{Type: "integer"}, {Type: "string"}}}
	case *runtime.RawExtension:
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	case *json.RawMessage, *apiextensionsv1.JSON, *any:
		return &apiextensionsv1.JSONSchemaProps{XPreserveUnknownFields: &yes}
	case *metav1.ObjectMeta:
		return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: &yes}
	case *[]byte:
		return &apiextensionsv1.JSONSchemaProps{Type: "string", Format: "byte"}
	}
	return nil
}

// schemaOf returns the schema of a type's JSON by encoding/json. within are the types in progress: a type
// that contains itself may hold anything there, because schemas cannot refer to themselves.
func schemaOf(t reflect.Type, within []reflect.Type) (*apiextensionsv1.JSONSchemaProps, error) {
	if t.Kind() == reflect.Pointer {
		return schemaOf(t.Elem(), within)
	}
	if s := known(t); s != nil {
		return s, nil
	}
	switch t.Kind() {
	case reflect.Bool:
		return &apiextensionsv1.JSONSchemaProps{Type: "boolean"}, nil
	case reflect.String:
		return &apiextensionsv1.JSONSchemaProps{Type: "string"}, nil
	case reflect.Int32, reflect.Int16, reflect.Int8, reflect.Uint8, reflect.Uint16:
		return &apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int32"}, nil
	case reflect.Int, reflect.Int64, reflect.Uint, reflect.Uint32, reflect.Uint64:
		return &apiextensionsv1.JSONSchemaProps{Type: "integer", Format: "int64"}, nil
	case reflect.Float32, reflect.Float64:
		return &apiextensionsv1.JSONSchemaProps{Type: "number"}, nil
	case reflect.Slice, reflect.Array:
		items, err := schemaOf(t.Elem(), within)
		if err != nil {
			return nil, fmt.Errorf("[]: %w", err)
		}
		return &apiextensionsv1.JSONSchemaProps{Type: "array", Items: &apiextensionsv1.JSONSchemaPropsOrArray{Schema: items}}, nil
	case reflect.Map:
		if t.Key().Kind() != reflect.String {
			return nil, fmt.Errorf("maps have strings as keys, and not %s", t.Key())
		}
		values, err := schemaOf(t.Elem(), within)
		if err != nil {
			return nil, fmt.Errorf("[]: %w", err)
		}
		return &apiextensionsv1.JSONSchemaProps{Type: "object", AdditionalProperties: &apiextensionsv1.JSONSchemaPropsOrBool{Allows: true, Schema: values}}, nil
	case reflect.Struct:
		if slices.Contains(within, t) {
			return &apiextensionsv1.JSONSchemaProps{Type: "object", XPreserveUnknownFields: new(true)}, nil
		}
		s := &apiextensionsv1.JSONSchemaProps{Type: "object", Properties: map[string]apiextensionsv1.JSONSchemaProps{}}
		return s, fields(t, append(within[:len(within):len(within)], t), s)
	}
	return nil, fmt.Errorf("a %s has no JSON", t.Kind())
}

// fields adds the fields of a struct.
func fields(t reflect.Type, within []reflect.Type, s *apiextensionsv1.JSONSchemaProps) error {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inner := f.Type
		if inner.Kind() == reflect.Pointer {
			inner = inner.Elem()
		}
		switch {
		case name == "-" && options == "":
			continue
		case f.Anonymous && name == "" && inner.Kind() == reflect.Struct:
			if err := fields(inner, within, s); err != nil {
				return err
			}
			continue
		case !f.IsExported():
			continue
		case name == "":
			name = f.Name
		}
		of, err := schemaOf(f.Type, within)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		flags := strings.Split(options, ",")
		optional := slices.Contains(flags, "omitempty") || slices.Contains(flags, "omitzero")
		switch f.Type.Kind() {
		case reflect.Pointer, reflect.Slice, reflect.Map:
			of.Nullable = !optional && of.Type != "" // encoding/json writes null for nil
		default:
			if !optional {
				s.Required = append(s.Required, name)
			}
		}
		s.Properties[name] = *of
	}
	return nil
}
