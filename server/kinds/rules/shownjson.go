package rules

import (
	"bytes"
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// MarshalJSON spells a value as errors show it from release 1.33 on: structures of the API by the names of their fields
// in Go, as those of a stock server's internal packages have no others.
func (s shown) MarshalJSON() ([]byte, error) {
	var b bytes.Buffer
	err := spell(&b, s.value)
	return b.Bytes(), err
}

func spell(b *bytes.Buffer, v reflect.Value) error {
	t := v.Type()
	_, own := reflect.New(t).Interface().(json.Marshaler)
	switch {
	case v.Kind() == reflect.Pointer && !v.IsNil():
		return spell(b, v.Elem())
	case v.Kind() == reflect.Struct && !own && strings.Contains(t.PkgPath(), "k8s.io/api/"):
		b.WriteByte('{')
		err := spellFields(b, v)
		b.WriteByte('}')
		return err
	case v.Kind() == reflect.Slice && !v.IsNil() && t.Elem().Kind() != reflect.Uint8 && !own:
		b.WriteByte('[')
		for i := range v.Len() {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := spell(b, v.Index(i)); err != nil {
				return err
			}
		}
		b.WriteByte(']')
		return nil
	case v.Kind() == reflect.Map && !v.IsNil() && t.Key().Kind() == reflect.String && !own:
		members := map[string]reflect.Value{}
		for it := v.MapRange(); it.Next(); {
			members[it.Key().String()] = it.Value()
		}
		b.WriteByte('{')
		for i, key := range slices.Sorted(maps.Keys(members)) {
			if i > 0 {
				b.WriteByte(',')
			}
			if err := named(b, key, members[key]); err != nil {
				return err
			}
		}
		b.WriteByte('}')
		return nil
	}
	text, err := json.Marshal(v.Interface())
	b.Write(text)
	return err
}

// spellFields writes the fields of a struct, with those of the structs that it embeds.
func spellFields(b *bytes.Buffer, v reflect.Value) error {
	first := b.Len()
	for i := range v.NumField() {
		f := v.Type().Field(i)
		if !f.IsExported() {
			continue
		}
		if b.Len() > first {
			b.WriteByte(',')
		}
		var err error
		if f.Anonymous && f.Type.Kind() == reflect.Struct {
			err = spellFields(b, v.Field(i))
		} else {
			err = named(b, f.Name, v.Field(i))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func named(b *bytes.Buffer, name string, v reflect.Value) error {
	key, err := json.Marshal(name)
	if err != nil {
		return err
	}
	b.Write(key)
	b.WriteByte(':')
	return spell(b, v)
}
