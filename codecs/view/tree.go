package view

import (
	"crypto/rand"
	"reflect"
	"strings"
)

// mark returns an unguessable name, which no type has, for a name that a view lacks.
var mark = rand.Text()

// Marked returns a name that no type has, in place of one that the view lacks.
func Marked(name string) string { return name + mark }

// Unmark restores marked names in a text.
func Unmark(text string) string { return strings.ReplaceAll(text, mark, "") }

// MarkTree gives the fields of a tree that the view lacks of a type marked names, and reports whether there
// were any. The tree must not be shared.
func (v *View) MarkTree(tree any, t reflect.Type) (found bool) {
	if !v.LacksAny(t) {
		return false
	}
	switch t.Kind() {
	case reflect.Pointer:
		return v.MarkTree(tree, t.Elem())
	case reflect.Slice:
		list, _ := tree.([]any)
		for _, item := range list {
			found = v.MarkTree(item, t.Elem()) || found
		}
	case reflect.Map:
		m, _ := tree.(map[string]any)
		for _, value := range m {
			found = v.MarkTree(value, t.Elem()) || found
		}
	case reflect.Struct:
		m, ok := tree.(map[string]any)
		if !ok {
			return false
		}
		for _, f := range v.Fields(t) {
			value, ok := m[f.Name]
			switch {
			case ok && f.Lacked:
				delete(m, f.Name)
				m[Marked(f.Name)] = value
				found = true
			case ok:
				found = v.MarkTree(value, f.Type) || found
			}
		}
	}
	return found
}

// NullTree gives a tree the empty fields of a type that are written as null.
func (v *View) NullTree(tree any, t reflect.Type) {
	if !v.NullsAny(t) {
		return
	}
	switch t.Kind() {
	case reflect.Pointer:
		v.NullTree(tree, t.Elem())
	case reflect.Slice:
		list, _ := tree.([]any)
		for _, item := range list {
			v.NullTree(item, t.Elem())
		}
	case reflect.Map:
		m, _ := tree.(map[string]any)
		for _, value := range m {
			v.NullTree(value, t.Elem())
		}
	case reflect.Struct:
		m, ok := tree.(map[string]any)
		if !ok {
			return
		}
		for _, f := range v.Fields(t) {
			if value, ok := m[f.Name]; ok {
				v.NullTree(value, f.Type)
			} else if f.Null {
				m[f.Name] = nil
			}
		}
	}
}
