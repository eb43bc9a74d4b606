package apiextensions

import (
	"reflect"
	"slices"

	celgo "github.com/google/cel-go/cel"
	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apiserver/pkg/cel/environment"

	"github.com/rowlock/rowlock/server/kinds/rules"
	"github.com/rowlock/rowlock/server/release"
)

// tolerance lists the violations that a definition may keep because it had them before. The zero value
// tolerates nothing.
type tolerance struct {
	noSchema         bool // versions without one
	looseSchema      bool // that are not structural, where unknown fields are kept
	oddTypes         bool // that OpenAPI does not know
	unprunedDefaults bool // with fields that the schema does not know
	looseSets        bool // whose items can be merged
	looseKeys        bool // of lists, that may be null or absent
	oddReviews       bool // conversion reviews in unknown versions
	badBundle        bool // CA certificates that are none

	rules, messages sets.Set[string] // expressions that were there
	unchanged       sets.Set[string] // versions with the schema that they had
	selectable      sets.Set[string] // versions with more fields to select by than are allowed; "" is for all versions

	release release.Version // whose rules schemas are held to

	texts schemaTexts // by which schemas that passed before are known
}

// none reports whether nothing is tolerated in the schema of a version.
func (t *tolerance) none(version string) bool {
	loose := t.noSchema || t.looseSchema || t.oddTypes || t.unprunedDefaults || t.looseSets || t.looseKeys
	return !loose && t.rules.Len() == 0 && t.messages.Len() == 0 && !t.unchanged.Has(version)
}

// tolerated returns which faults an update of old may keep.
func tolerated(d, old *apiext.CustomResourceDefinition) tolerance {
	t := tolerance{
		noSchema:         !allHaveSchemas(&old.Spec),
		oddTypes:         anyNode(&old.Spec, hasOddType),
		unprunedDefaults: hasUnprunedDefaults(&old.Spec),
		looseSets:        anyNode(&old.Spec, func(s *apiext.JSONSchemaProps) bool { return looseSetItem(s) != "" }),
		looseKeys:        anyNode(&old.Spec, func(s *apiext.JSONSchemaProps) bool { return len(validateKeyed(s, nil)) > 0 }),
		badBundle:        !apiext.IsCRDConditionTrue(old, apiext.Established),
		rules:            sets.New[string](),
		messages:         sets.New[string](),
		unchanged:        sets.New[string](),
	}
	for s := range schemas(&old.Spec) {
		t.looseSchema = t.looseSchema || !isStructural(s)
		for n := range nodes(s) {
			for i := range n.XValidations {
				t.rules.Insert(n.XValidations[i].Rule)
				t.messages.Insert(n.XValidations[i].MessageExpression)
			}
		}
	}
	if c := old.Spec.Conversion; c != nil {
		t.oddReviews = len(c.ConversionReviewVersions) > 0 && !rules.KnowsReview(c.ConversionReviewVersions)
		if w := c.WebhookClientConfig; w != nil && len(w.CABundle) > 0 && rules.CABundle(w.CABundle) != nil {
			t.badBundle = true
		}
	}
	t.selectable = tooManySelectable(d, old)
	for i := range d.Spec.Versions {
		name := d.Spec.Versions[i].Name
		now, err := apiext.GetSchemaForVersion(d, name)
		before, errBefore := apiext.GetSchemaForVersion(old, name)
		if err == nil && errBefore == nil && equality.Semantic.DeepEqual(now, before) {
			t.unchanged.Insert(name)
		}
	}
	return t
}

// tooManySelectable names the versions that still have the fields to select by that they had, which are too many.
func tooManySelectable(d, old *apiext.CustomResourceDefinition) sets.Set[string] {
	before := map[string][]apiext.SelectableField{"": old.Spec.SelectableFields}
	for i := range old.Spec.Versions {
		before[old.Spec.Versions[i].Name] = old.Spec.Versions[i].SelectableFields
	}
	same := sets.New[string]()
	look := func(version string, now []apiext.SelectableField) {
		if was := before[version]; len(was) > maxSelectable && slices.Equal(was, now) {
			same.Insert(version)
		}
	}
	look("", d.Spec.SelectableFields)
	for i := range d.Spec.Versions {
		look(d.Spec.Versions[i].Name, d.Spec.Versions[i].SelectableFields)
	}
	return same
}

// RuleEnv makes a tolerance a cel.EnvLoader: existing expressions may use features that only later releases
// allow in new ones.
func (t tolerance) RuleEnv(set *environment.EnvSet, expression string) *celgo.Env {
	return environmentOf(set, t.rules.Has(expression))
}

// MessageExpressionEnv is RuleEnv for expressions of messages.
func (t tolerance) MessageExpressionEnv(set *environment.EnvSet, expression string) *celgo.Env {
	return environmentOf(set, t.messages.Has(expression))
}

func environmentOf(set *environment.EnvSet, known bool) *celgo.Env {
	if known {
		return set.StoredExpressionsEnv()
	}
	return set.NewExpressionsEnv()
}

func allHaveSchemas(spec *apiext.CustomResourceDefinitionSpec) bool {
	return spec.Validation != nil && spec.Validation.OpenAPIV3Schema != nil || !slices.ContainsFunc(spec.Versions, func(v apiext.CustomResourceDefinitionVersion) bool {
		return v.Schema == nil || v.Schema.OpenAPIV3Schema == nil
	})
}

func isStructural(s *apiext.JSONSchemaProps) bool {
	tree, err := structuralschema.NewStructural(s)
	return err == nil && len(structuralschema.ValidateStructural(nil, tree)) == 0
}

func hasUnprunedDefaults(spec *apiext.CustomResourceDefinitionSpec) bool {
	for s := range schemas(spec) {
		tree, err := structuralschema.NewStructural(s)
		if err != nil || len(structuralschema.ValidateStructural(nil, tree)) > 0 {
			continue
		}
		pruned := tree.DeepCopy()
		if defaulting.PruneDefaults(pruned) == nil && !reflect.DeepEqual(tree, pruned) {
			return true
		}
	}
	return false
}
