package meter

import (
	"reflect"

	"github.com/google/cel-go/common/containers"
	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
	"github.com/google/cel-go/common/types/traits"
	"github.com/google/cel-go/interpreter"
)

// A lookup in a map hashes the key and compares it with the one in the map, and costs one by the library's count: an
// expression may look up a key of a megabyte for each element of a list.

// attribute is a variable or another value, with the fields and elements that are looked up in it. It takes steps for
// long keys, which are constants in AddQualifier, and the value of the attribute itself in Qualify; and for large maps,
// whose keys the library copies before it visits the first one.
type attribute[F interpreter.Activation] struct {
	interpreter.InterpretableAttribute
}

// copiedKeys is the number of keys of a map in a step.
const copiedKeys = 16

// isAttribute reports whether a part of a program is an attribute that nothing wraps. The library decorates it again
// each time it adds a qualifier, as what wraps it.
func isAttribute(i interpreter.Interpretable) bool {
	t := reflect.TypeOf(i)
	return t.Kind() == reflect.Pointer && t.Elem().Name() == "evalAttr"
}

// Exec is Eval.
func (a attribute[F]) Exec(frame F) ref.Val { return a.Eval(frame) }

// Eval implements interpreter.Interpretable.
func (a attribute[F]) Eval(in interpreter.Activation) ref.Val {
	v := a.InterpretableAttribute.Eval(in)
	if entries, ok := v.(traits.Mapper); ok {
		if size, _ := entries.Size().(types.Int); size >= copiedKeys {
			m := of(in)
			m.Spend(int(size) / copiedKeys)
			m.check()
		}
	}
	return v
}

// AddQualifier implements interpreter.InterpretableAttribute.
func (a attribute[F]) AddQualifier(q interpreter.Qualifier) (interpreter.Attribute, error) {
	if c, ok := q.(interpreter.ConstantQualifier); ok {
		if n := length(c.Value()); n >= sameBytes {
			q = constantKey{c, n}
		}
	}
	_, err := a.InterpretableAttribute.AddQualifier(q)
	return a, err
}

// Qualify implements interpreter.InterpretableAttribute: it looks up the value of the attribute in obj.
func (a attribute[F]) Qualify(vars interpreter.Activation, obj any) (any, error) {
	q, err := a.qualifier(vars)
	if err != nil {
		return nil, err
	}
	return q.Qualify(vars, obj)
}

// QualifyIfPresent implements interpreter.InterpretableAttribute.
func (a attribute[F]) QualifyIfPresent(vars interpreter.Activation, obj any, presenceOnly bool) (any, bool, error) {
	q, err := a.qualifier(vars)
	if err != nil {
		return nil, false, err
	}
	return q.QualifyIfPresent(vars, obj, presenceOnly)
}

// qualifier makes a qualifier of the attribute's value, as the library does.
func (a attribute[F]) qualifier(vars interpreter.Activation) (interpreter.Qualifier, error) {
	key, err := a.Resolve(vars)
	if err != nil {
		return nil, err
	}
	switch k := key.(type) {
	case string:
		spendKey(vars, len(k))
	case ref.Val:
		spendKey(vars, length(k))
	}
	fac := interpreter.NewAttributeFactory(containers.DefaultContainer, a.Adapter(), nil)
	return fac.NewQualifier(nil, a.Attr().ID(), key, a.Attr().IsOptional())
}

// spendKey takes steps for a key of n bytes.
func spendKey(vars interpreter.Activation, n int) {
	if n < sameBytes {
		return
	}
	m := of(vars)
	m.Spend(n / sameBytes)
	m.check()
}

// constantKey is a long key in the text of an expression.
type constantKey struct {
	interpreter.ConstantQualifier
	bytes int
}

// Qualify implements interpreter.Qualifier.
func (c constantKey) Qualify(vars interpreter.Activation, obj any) (any, error) {
	spendKey(vars, c.bytes)
	return c.ConstantQualifier.Qualify(vars, obj)
}

// QualifyIfPresent implements interpreter.Qualifier.
func (c constantKey) QualifyIfPresent(vars interpreter.Activation, obj any, presenceOnly bool) (any, bool, error) {
	spendKey(vars, c.bytes)
	return c.ConstantQualifier.QualifyIfPresent(vars, obj, presenceOnly)
}

// mapping makes a map. It takes steps for long keys.
type mapping[F interpreter.Activation] struct {
	interpreter.InterpretableConstructor
	keys int // that are no constants
}

// variableKeys returns how many keys of a map are no constants.
func variableKeys(c interpreter.InterpretableConstructor) int {
	n := 0
	if c.Type() != types.MapType {
		return 0
	}
	for i, v := range c.InitVals() { // keys and values, in turn
		if _, constant := any(v).(interpreter.InterpretableConst); i%2 == 0 && !constant {
			n++
		}
	}
	return n
}

// Exec is Eval.
func (c mapping[F]) Exec(frame F) ref.Val { return c.Eval(frame) }

// Eval implements interpreter.Interpretable. Several entries may have the same key, and only one of them is in the map.
func (c mapping[F]) Eval(in interpreter.Activation) ref.Val {
	v := c.InterpretableConstructor.Eval(in)
	entries, ok := v.(traits.Mapper)
	if !ok {
		return v
	}
	longest := 0
	for it := entries.Iterator(); it.HasNext() == types.True; {
		longest = max(longest, length(it.Next()))
	}
	if longest >= sameBytes {
		m := of(in)
		m.spendProduct(c.keys, longest/sameBytes)
		m.check()
	}
	return v
}

// inserted measures the entries that a macro adds to the map that it makes.
func inserted(m *Meter, args []ref.Val) ref.Val {
	if more, ok := args[1].(traits.Mapper); ok && len(args) == 2 {
		for it := more.Iterator(); it.HasNext() == types.True; {
			if !m.Spend(flatSteps + length(it.Next())/sameBytes) {
				break
			}
		}
		return nil
	}
	m.Spend(length(args[1]) / sameBytes)
	return nil
}

// unwrapped measures the elements of a list of optional values.
func unwrapped(m *Meter, args []ref.Val) ref.Val {
	if list, ok := args[0].(traits.Lister); ok {
		size, _ := list.Size().(types.Int)
		m.spendProduct(int(size), flatSteps)
	}
	return nil
}

// spendKeys takes steps for the texts by which the library finds equal elements when it joins two lists of a custom
// object: those of a set, or fields of the elements of a map that is written as a list.
func (m *Meter) spendKeys(list traits.Lister) {
	if !isData(list) {
		return
	}
	switch reflect.TypeOf(list).Elem().Name() {
	case setList, mapList:
	default:
		return
	}
	elements, _ := list.Value().([]any)
	for _, v := range elements {
		switch v := v.(type) {
		case string:
			m.Spend(len(v) / sameBytes)
		case map[string]any:
			for _, field := range v {
				s, _ := field.(string)
				m.Spend(1 + len(s)/sameBytes)
			}
		}
		if m.Over() {
			return
		}
	}
}
