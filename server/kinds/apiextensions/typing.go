package apiextensions

import (
	"iter"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation/field"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/rowlock/rowlock/server/expr"
)

// The library makes the types of everything below a schema for each schema that has rules, four times, and
// names them by their paths: with a rule at each of a thousand levels, that grows with the third power of the
// definition. So the cost is added up before, and has a limit far above the needs of definitions in use: one
// of 10,000 fields with rules at each of its twenty levels takes a third.

// maxTyping bounds the size of the types of all rules of a version: fields count one, objects four, and
// sixteen bytes of their names one.
const maxTyping = 600_000

const tooMuchTyping = "there are too many rules above too large a part of the schema: the types that they are compiled against would be too many"

// weight counts the objects and fields below a type.
type weight struct{ fields, objects, names int }

func (w weight) sum() int { return 1 + w.fields + 4*w.objects + w.names/16 }

// weights are the sizes of the types of a schema, each of which is a part of another.
type weights map[*apiservercel.DeclType]weight

// of weighs a type once.
func (w weights) of(t *apiservercel.DeclType) weight {
	if t == nil {
		return weight{}
	}
	if known, ok := w[t]; ok {
		return known
	}
	var sum weight
	if t.ElemType != nil {
		sum = w.of(t.ElemType)
		sum.names += sum.objects * len(".@elem")
	}
	if len(t.Fields) > 0 {
		sum.objects++
	}
	for name, f := range t.Fields {
		below := w.of(f.Type)
		sum.fields += 1 + below.fields
		sum.objects += below.objects
		sum.names += below.names + below.objects*(len(name)+1)
	}
	w[t] = sum
	return sum
}

// validateTexts refuses a definition whose rules would take too long to be compiled, unless
// it had such before.
func validateTexts(d, old *apiext.CustomResourceDefinition, p *field.Path) field.ErrorList {
	if !expr.TooLong(texts(&d.Spec)) || old != nil && expr.TooLong(texts(&old.Spec)) {
		return nil
	}
	return field.ErrorList{field.Forbidden(p.Child("versions"), expr.LongDetail())}
}

// texts returns the expressions of a definition.
func texts(spec *apiext.CustomResourceDefinitionSpec) iter.Seq[string] {
	return func(yield func(string) bool) {
		for s := range schemas(spec) {
			for n := range nodes(s) {
				for i := range n.XValidations {
					if !yield(n.XValidations[i].Rule) || !yield(n.XValidations[i].MessageExpression) {
						return
					}
				}
			}
		}
	}
}
