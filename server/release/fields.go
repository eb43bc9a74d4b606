package release

import (
	"reflect"
	"slices"
	"strings"

	"github.com/rowlock/rowlock/server/removed"
)

// typeRow is a struct and its fields, or a string type and its constants.
type typeRow struct {
	name    string // import path, a dot, and the name
	in      span
	members []memberRow // those that were added or removed, sorted by name
}

// memberRow is a field by its JSON name, or the value of a constant.
type memberRow struct {
	name string
	in   span
}

// stored are types of versions that a release no longer serves, with fields of later versions which are stored in them.
var stored = []typeRow{
	{"k8s.io/api/storagemigration/v1alpha1.MigrationCondition", span{}, []memberRow{{"observedGeneration", span{35, 0}}}},
}

// Type describes the changes of one Go type of the API. The zero value is a type that is the same in all
// releases.
type Type struct{ row *typeRow }

// older are packages of older versions, by the package whose Go types also represent theirs: only that one is
// linked.
var older = map[string]string{
	"k8s.io/api/admissionregistration/v1":      "k8s.io/api/admissionregistration/v1beta1",
	"k8s.io/api/admissionregistration/v1beta1": "k8s.io/api/admissionregistration/v1alpha1",
	"k8s.io/api/authentication/v1":             "k8s.io/api/authentication/v1beta1",
	"k8s.io/api/certificates/v1beta1":          "k8s.io/api/certificates/v1alpha1",
	"k8s.io/api/coordination/v1beta1":          "k8s.io/api/coordination/v1alpha2",
	"k8s.io/api/networking/v1":                 "k8s.io/api/networking/v1beta1",
	"k8s.io/api/resource/v1":                   "k8s.io/api/resource/v1beta2",
	"k8s.io/api/storage/v1":                    "k8s.io/api/storage/v1beta1",
	"k8s.io/api/storage/v1beta1":               "k8s.io/api/storage/v1alpha1",
}

// Older returns the package of an older version whose types are represented by those of a package, as far as both
// are served; "": there is none.
func Older(path string) string { return older[path] }

// TypeOf returns a Go type as a release has it; pointers, lists and maps count as their elements. If the
// release has the type in an older version only, it is that.
func TypeOf(t reflect.Type, v Version) Type {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Map {
		t = t.Elem()
	}
	path := removed.PackagePath(t.PkgPath())
	typ := TypeNamed(path, t.Name())
	for path = older[path]; path != "" && !typ.In(v); path = older[path] {
		typ = TypeNamed(path, t.Name())
	}
	return typ
}

// TypeNamed finds a type by its import path ("k8s.io/api/core/v1") and its name.
func TypeNamed(path, name string) Type {
	for _, table := range [][]typeRow{types, stored} {
		i, ok := slices.BinarySearchFunc(table, path+"."+name, func(row typeRow, name string) int { return strings.Compare(row.name, name) })
		if ok {
			return Type{&table[i]}
		}
	}
	return Type{}
}

// In reports whether the type is there in a release.
func (t Type) In(v Version) bool { return t.row == nil || t.row.in.has(v) }

// Has reports whether a release has a field of a struct, by its JSON name, or a value of a string type. A
// name that no release has counts as one that all have.
func (t Type) Has(v Version, member string) bool {
	if !t.In(v) {
		return false
	}
	if t.row == nil {
		return true
	}
	i, ok := slices.BinarySearchFunc(t.row.members, member, func(row memberRow, name string) int { return strings.Compare(row.name, name) })
	return !ok || t.row.members[i].in.has(v)
}

// Lacks returns the fields, by their JSON names, or the values that a release does not have and
// another release has, sorted.
func (t Type) Lacks(v Version) []string {
	if t.row == nil {
		return nil
	}
	var names []string
	for _, m := range t.row.members {
		if !m.in.has(v) {
			names = append(names, m.name)
		}
	}
	return names
}
