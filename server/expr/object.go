package expr

import (
	"context"
	"fmt"
	"reflect"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"k8s.io/apiserver/pkg/cel/common"
	"k8s.io/apiserver/pkg/cel/environment"
	"k8s.io/apiserver/pkg/cel/library"

	"github.com/rowlock/rowlock/authx/meter"
)

// The types that expressions of mutations construct. An Object has any fields, and its structures have types
// named by their path: Object.spec.containers.
const (
	objectName = "Object"
	patchName  = "JSONPatch"
)

// The result types of mutations.
var (
	Configuration = []*cel.Type{types.NewObjectType(objectName)}
	Patch         = []*cel.Type{cel.ListType(types.NewObjectType(patchName))}
)

// mutation adds the features of mutations to an environment: the types that they construct, and
// jsonpatch.escapeKey.
func mutation(set *environment.EnvSet) (*environment.EnvSet, error) {
	return set.Extend(environment.VersionedOptions{
		IntroducedVersion: always,
		EnvOptions:        []cel.EnvOption{common.ResolverEnvOption(madeTypes{}), environment.UnversionedLib(library.JSONPatch)},
	})
}

// madeTypes finds the types by their names. Our own provider makes the values, because the library's objects
// become trees whenever they are read, without a bound.
type madeTypes struct{}

// Resolve implements common.TypeResolver.
func (madeTypes) Resolve(name string) (common.ResolvedType, bool) {
	if name == patchName || name == objectName || strings.HasPrefix(name, objectName+".") {
		return madeType{types.NewObjectType(name)}, true
	}
	return nil, false
}

// madeType is the type of an object of a mutation.
type madeType struct{ of *types.Type }

func (t madeType) isPatch() bool { return t.of.TypeName() == patchName }

// HasTrait implements ref.Type.
func (t madeType) HasTrait(trait int) bool { return t.of.HasTrait(trait) }

// TypeName implements ref.Type.
func (t madeType) TypeName() string { return t.of.TypeName() }

// Type implements common.ResolvedType.
func (t madeType) Type() *types.Type { return t.of }

// Field implements common.ResolvedType. A missing field has a type without a name: clients of a stock server
// know the resulting message.
func (t madeType) Field(name string) (*types.FieldType, bool) {
	if !t.isPatch() {
		return &types.FieldType{Type: types.DynType}, true
	}
	switch name {
	case "op", "path", "from":
		return &types.FieldType{Type: types.StringType}, true
	case "value":
		return &types.FieldType{Type: types.DynType}, true
	}
	return &types.FieldType{}, true
}

// FieldNames implements common.ResolvedType. A field of an object may have any name.
func (t madeType) FieldNames() ([]string, bool) {
	if t.isPatch() {
		return []string{"from", "op", "path", "value"}, true
	}
	return nil, true
}

// Val implements common.ResolvedType.
func (t madeType) Val(fields map[string]ref.Val) ref.Val {
	if t.isPatch() {
		for _, name := range []string{"op", "path", "from"} {
			if v, ok := fields[name]; ok && v.Type() != types.StringType {
				return types.NewErr("unexpected type %T for JSONPatchType '%s' field", v.Value(), name)
			}
		}
	}
	return &made{typ: t.of, fields: fields}
}

// made is a value of such a type.
type made struct {
	typ    *types.Type
	fields map[string]ref.Val
}

var (
	_ traits.Indexer     = (*made)(nil)
	_ traits.FieldTester = (*made)(nil)
	_ traits.Zeroer      = (*made)(nil)
	_ meter.Structure    = (*made)(nil)
)

// text returns a field of a patch.
func (m *made) text(name string) string {
	if v, ok := m.fields[name].(types.String); ok {
		return string(v)
	}
	return ""
}

// Get implements traits.Indexer. A field that was not given is null, in a patch empty.
func (m *made) Get(index ref.Val) ref.Val {
	name, ok := index.(types.String)
	if !ok {
		return types.NewErr("unsupported indexer: %s", index)
	}
	if v := m.fields[string(name)]; v != nil {
		return v
	}
	if m.typ.TypeName() == patchName && name != "value" {
		return types.String("")
	}
	return types.NullValue
}

// IsSet implements traits.FieldTester.
func (m *made) IsSet(field ref.Val) ref.Val {
	name, ok := field.(types.String)
	if !ok {
		return types.NewErr("unsupported field: %s", field)
	}
	v, ok := m.fields[string(name)]
	return types.Bool(ok && v != types.String("") || ok && m.typ.TypeName() != patchName)
}

// IsZeroValue implements traits.Zeroer.
func (m *made) IsZeroValue() bool { return len(m.fields) == 0 }

// ConvertToNative implements ref.Val. Mutations take trees in place of that.
func (m *made) ConvertToNative(to reflect.Type) (any, error) {
	return nil, fmt.Errorf("%s cannot be converted to %v", m.typ.TypeName(), to)
}

// ConvertToType implements ref.Val.
func (m *made) ConvertToType(to ref.Type) ref.Val {
	switch {
	case to.TypeName() == m.typ.TypeName():
		return m
	case to == types.TypeType:
		return m.typ
	}
	return types.NewErr("unsupported conversion into %v", to.TypeName())
}

// maxCompared limits the values that the library compares to distinguish two objects.
const maxCompared = 100_000

// Equal implements ref.Val.
func (m *made) Equal(other ref.Val) ref.Val {
	return meter.New(context.Background(), maxCompared).Equal(m, other)
}

// Fields implements meter.Structure.
func (m *made) Fields() map[string]ref.Val { return m.fields }

// Type implements ref.Val.
func (m *made) Type() ref.Type { return m.typ }

// Value implements ref.Val.
func (m *made) Value() any { return m }
