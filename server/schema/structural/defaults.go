package structural

import (
	"context"
	"fmt"
	"maps"
	"reflect"
	"slices"

	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/expr"
	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// ValidateDefaults validates the defaults of a schema at p by that schema. With pruned they may not have unknown fields.
// It compiles each rule once, regardless of the number of defaults that it applies to, and nothing for parts without
// defaults.
func ValidateDefaults(ctx context.Context, p *field.Path, tree *structuralschema.Structural, pruned bool, of release.Version) (field.ErrorList, error) {
	has := newPrecheck(tree)
	if !has.hasDefaults() {
		return nil, nil
	}
	root := *tree
	root.XEmbeddedResource = true
	d := &defaultsCheck{
		evaluation: evaluation{ctx: ctx, left: expr.Budget, work: maxWork, warn: func(string) {}, of: of}, pruned: pruned, release: of, maker: newMaker(of),
	}
	err := d.walk(defaultPlace{p: p, s: &root, has: has})
	return d.evaluation.errs, err
}

func (s *precheck) hasDefaults() bool { return s != nil && (s.defaulted || s.defaults) }

type defaultsCheck struct {
	evaluation
	pruned  bool
	release release.Version
	maker   maker
}

// defaultPlace is a position in a schema.
type defaultPlace struct {
	p      *field.Path
	s      *structuralschema.Structural
	has    *precheck // of s
	q      *checker  // nil: nothing above has a default
	rules  *ruleTree // of s, if they were compiled above
	inMeta bool      // inside of apiVersion, kind or metadata of resource
	// around makes the resource of which a default is a part.
	around   defaulting.SurroundingObjectFunc
	resource *structuralschema.Structural
}

func (d *defaultsCheck) walk(at defaultPlace) error {
	if at.s == nil || d.over || !at.has.hasDefaults() {
		return nil
	}
	if at.s.XEmbeddedResource {
		at.inMeta, at.resource = false, at.s
		at.around = defaulting.NewRootObjectFunc().WithTypeMeta(metav1.TypeMeta{APIVersion: "validation/v1", Kind: "Validation"})
	}
	if at.s.Default.Object != nil {
		if at.q == nil {
			at.q = d.maker.checker(at.s.ToKubeOpenAPI())
		}
		if at.rules == nil && hasRules(at.s) {
			at.rules = compileBelow(at.s, newCELSchema(at.s), model.SchemaDeclType(at.s, at.s == at.resource))
		}
		if err := d.check(at); err != nil {
			return err
		}
	}
	return d.walkParts(at)
}

// walkParts goes on to items and properties; there are no defaults in properties that
// have no name.
func (d *defaultsCheck) walkParts(at defaultPlace) error {
	rules := at.rules
	if rules == nil {
		rules = &ruleTree{}
	}
	if at.s.Items != nil {
		below := at
		below.p, below.s, below.has, below.rules, below.around = at.p.Child("items"), at.s.Items, at.has.items, rules.items, at.around.Index()
		if at.q != nil {
			below.q = at.q.item
		}
		if err := d.walk(below); err != nil {
			return err
		}
	}
	for _, name := range slices.Sorted(maps.Keys(at.s.Properties)) {
		has := at.has.properties[name]
		if !has.hasDefaults() {
			continue
		}
		s := at.s.Properties[name]
		below := at
		below.p, below.s, below.has, below.rules, below.around = at.p.Child("properties").Key(name), &s, has, rules.properties[name], at.around.Child(name)
		if at.q != nil {
			below.q = at.q.property(name)
		}
		if at.s.XEmbeddedResource && (name == "metadata" || name == "apiVersion" || name == "kind") {
			below.inMeta = true
		}
		if err := d.walk(below); err != nil {
			return err
		}
	}
	return nil
}

// check checks one default; an error means that it cannot be.
func (d *defaultsCheck) check(at defaultPlace) error {
	v, p := runtime.DeepCopyJSONValue(at.s.Default.Object), at.p.Child("default") // checks coerce it
	var errs field.ErrorList
	if at.inMeta {
		obj, _, err := at.around(runtime.DeepCopyJSONValue(v))
		if err != nil {
			return fmt.Errorf("failed to validate default value inside metadata: %w", err)
		}
		if err := objectmeta.Coerce(nil, obj, at.resource, true, false); err != nil {
			errs = field.ErrorList{field.Invalid(p, v, fmt.Sprintf("must result in valid metadata: %v", err))}
		} else if wrong := validateMeta(d.ctx, d.release, nil, obj, at.resource, true); len(wrong) > 0 {
			errs = field.ErrorList{field.Invalid(p, v, fmt.Sprintf("must result in valid metadata: %v", rules.Aggregate(wrong)))}
		}
	} else {
		if d.pruned {
			pruned := runtime.DeepCopyJSONValue(v)
			pruning.Prune(pruned, at.s, at.s.XEmbeddedResource)
			if !reflect.DeepEqual(pruned, v) {
				d.errs = append(d.errs, field.Invalid(p, v, "must not have unknown fields"))
			}
		}
		if err := objectmeta.Coerce(p, v, at.s, at.s.XEmbeddedResource, false); err != nil {
			errs = field.ErrorList{err}
		} else {
			errs = validateMeta(d.ctx, d.release, p, v, at.s, at.s.XEmbeddedResource)
		}
	}
	if len(errs) == 0 {
		errs, _ = at.q.findErrors(d.ctx, p, v, nil)
	}
	d.errs = append(d.errs, errs...)
	if len(errs) == 0 {
		d.runRules(at.rules, p, v)
	}
	return nil
}

// runRules holds a default against rules: as an existing value, and as a new one. Both may cost the rest of
// the budget.
func (d *defaultsCheck) runRules(rules *ruleTree, p *field.Path, v any) {
	left, had := d.left, len(d.errs)
	rules.run(&d.evaluation, p, v, v, counterpart{})
	if len(d.errs) > had {
		return
	}
	after := d.left
	d.left = left
	rules.run(&d.evaluation, p, v, nil, counterpart{})
	d.left = min(d.left, after)
}
