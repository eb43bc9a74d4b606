package definitions

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// merged is RFC 7386.
func merged(target map[string]any, patch map[string]any) map[string]any {
	if target == nil {
		target = map[string]any{}
	}
	for name, value := range patch {
		inner, tree := value.(map[string]any)
		switch {
		case value == nil:
			delete(target, name)
		case tree:
			below, _ := target[name].(map[string]any)
			target[name] = merged(below, inner)
		default:
			target[name] = value
		}
	}
	return target
}

// TestStatusChange: the patch between two states of a status makes one of the other, removed names
// included, and is empty if they are equal.
func TestStatusChange(t *testing.T) {
	names := func(plural string, short ...string) apiextensionsv1.CustomResourceDefinitionNames {
		return apiextensionsv1.CustomResourceDefinitionNames{Plural: plural, Kind: "K", ShortNames: short}
	}
	condition := func(status apiextensionsv1.ConditionStatus) []apiextensionsv1.CustomResourceDefinitionCondition {
		return []apiextensionsv1.CustomResourceDefinitionCondition{{Type: apiextensionsv1.Established, Status: status}}
	}
	states := []apiextensionsv1.CustomResourceDefinitionStatus{
		{},
		{StoredVersions: []string{"v1"}},
		{StoredVersions: []string{"v1"}, AcceptedNames: names("a", "b"), Conditions: condition("True")},
		{StoredVersions: []string{"v1", "v2"}, AcceptedNames: names("a"), Conditions: condition("False")},
		{StoredVersions: []string{"v1"}, AcceptedNames: apiextensionsv1.CustomResourceDefinitionNames{Plural: "a", Singular: "c", ListKind: "L", Categories: []string{"all"}}},
	}
	for i := range states {
		for j := range states {
			change, err := statusChange(&states[i], &states[j])
			if err != nil {
				t.Fatal(err)
			}
			if i == j && len(change) > 0 {
				t.Errorf("%d is changed by %v", i, change)
			}
			var tree map[string]any
			text, _ := json.Marshal(&states[i])
			if err := json.Unmarshal(text, &tree); err != nil {
				t.Fatal(err)
			}
			text, _ = json.Marshal(merged(tree, change))
			got := apiextensionsv1.CustomResourceDefinitionStatus{}
			if err := json.Unmarshal(text, &got); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(states[j], got); diff != "" {
				t.Errorf("from %d to %d by %v: %s", i, j, change, diff)
			}
		}
	}
}
