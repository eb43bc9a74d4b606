package structural

import (
	"maps"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	apiservercel "k8s.io/apiserver/pkg/cel"

	"github.com/rowlock/rowlock/authx/meter"
	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/release"
)

// ruleTree is a part of a schema that has rules, or whose parts have.
type ruleTree struct {
	kind         string // its type, which replaces the value in messages
	schema       *celSchema
	rules        []rule
	compileErr   error // why the rules could not be compiled
	uncorrelated bool  // its properties have no counterparts in an older object
	items        *ruleTree
	values       *ruleTree
	properties   map[string]*ruleTree
	names        []string // of properties, sorted
}

// rule is a compiled rule, or the reason why it did not compile.
type rule struct {
	cel.CompilationResult
	*apiextensionsv1.ValidationRule
}

// compileRules compiles the rules of a schema; nil if there are none. A definition with invalid rules cannot be written,
// so rules that fail here are of a newer server.
func compileRules(s *structuralschema.Structural, d *celSchema) *ruleTree {
	if !hasRules(s) {
		return nil
	}
	r := compileBelow(s, d, model.SchemaDeclType(s, true))
	r.schema = newCELResource(s)
	return r
}

func compileBelow(s *structuralschema.Structural, d *celSchema, decl *apiservercel.DeclType) *ruleTree {
	if d == nil || !hasRules(s) {
		return nil
	}
	r := &ruleTree{kind: s.Type, schema: d, uncorrelated: !cel.MapIsCorrelatable(s.XMapType), properties: map[string]*ruleTree{}}
	if d.resource != nil {
		r.schema = d.resource
	}
	r.compile(s, decl)
	var element *apiservercel.DeclType
	if decl != nil {
		element = decl.ElemType
	}
	if s.Items != nil {
		r.items = compileBelow(s.Items, asCELSchema(d.items), element)
	}
	if o := s.AdditionalProperties; o != nil && o.Structural != nil {
		r.values = compileBelow(o.Structural, asCELSchema(d.additional.Schema()), element)
	}
	for name, p := range s.Properties {
		below, ok := declOf(decl, name, &p)
		if !ok {
			continue // rules do not see values without a type
		}
		if of := compileBelow(&p, asCELSchema(d.properties[name]), below); of != nil {
			r.properties[name] = of
		}
	}
	r.names = slices.Sorted(maps.Keys(r.properties))
	return r
}

// declOf returns the type of a property, as a part of the type that it is in where rules
// can name it.
func declOf(decl *apiservercel.DeclType, name string, p *structuralschema.Structural) (*apiservercel.DeclType, bool) {
	escaped, ok := apiservercel.Escape(name)
	if !ok {
		below := model.SchemaDeclType(p, p.XEmbeddedResource)
		return below, below != nil
	}
	if decl == nil {
		return nil, false
	}
	f, ok := decl.Fields[escaped]
	if !ok {
		return nil, false
	}
	return f.Type, true
}

func (r *ruleTree) compile(s *structuralschema.Structural, decl *apiservercel.DeclType) {
	if len(s.XValidations) == 0 {
		return
	}
	base, err := expr.Base(release.Default) // the rules are stored
	if err != nil {
		r.compileErr = err
		return
	}
	vetted := *s
	vetted.XValidations = slices.Clone(s.XValidations)
	faults := make([]error, len(s.XValidations))
	for i := range vetted.XValidations {
		v := &vetted.XValidations[i]
		if faults[i] = meter.Vet(v.Rule); faults[i] != nil {
			v.Rule = ""
		}
		if meter.Vet(v.MessageExpression) != nil {
			v.MessageExpression = ""
		}
	}
	results, err := cel.Compile(&vetted, decl, celconfig.PerCallLimit, base, cel.StoredExpressionsEnvLoader())
	if err != nil {
		r.compileErr = err
		return
	}
	for i := range results {
		if err := faults[i]; err != nil {
			results[i].Error = &apiservercel.Error{Type: apiservercel.ErrorTypeInvalid, Detail: "compilation failed: " + meter.Abridge(err.Error())}
		}
		r.rules = append(r.rules, rule{results[i], &s.XValidations[i]})
	}
}

func hasRules(s *structuralschema.Structural) bool {
	if s == nil {
		return false
	}
	for _, p := range s.Properties {
		if hasRules(&p) {
			return true
		}
	}
	return len(s.XValidations) > 0 || hasRules(s.Items) || s.AdditionalProperties != nil && hasRules(s.AdditionalProperties.Structural)
}
