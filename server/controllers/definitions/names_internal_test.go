package definitions

import (
	"strings"
	"testing"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// wanting returns a definition that asks for names, and has none yet.
func wanting(created int64, plural, kind string, short ...string) *definition {
	return &definition{created: created, crd: &apiextensionsv1.CustomResourceDefinition{
		ObjectMeta: metav1.ObjectMeta{Name: plural + ".example.com"},
		Spec: apiextensionsv1.CustomResourceDefinitionSpec{Group: "example.com", Names: apiextensionsv1.CustomResourceDefinitionNames{
			Plural: plural, Singular: strings.ToLower(kind), Kind: kind, ListKind: kind + "List", ShortNames: short,
		}},
	}}
}

// conditionsText describes the conditions of a definition.
func conditionsText(d *definition) string {
	var out []string
	for _, t := range []apiextensionsv1.CustomResourceDefinitionConditionType{
		apiextensionsv1.NamesAccepted, apiextensionsv1.Established, apiextensionsv1.KubernetesAPIApprovalPolicyConformant,
	} {
		if c := apihelpers.FindCRDCondition(d.crd, t); c != nil {
			out = append(out, string(c.Status)+" "+c.Reason+": "+c.Message)
		}
	}
	return strings.Join(out, "; ")
}

const (
	good    = "True NoConflicts: no conflicts found; True InitialNamesAccepted: the initial names have been accepted"
	waiting = "; False NotAccepted: not all names are accepted"
)

func TestNamesOfDefinitions(t *testing.T) {
	lamps, lights, bulbs := wanting(1, "lamps", "Lamp", "lp", "glow"), wanting(2, "lights", "Light", "glow", "lp"), wanting(3, "bulbs", "Lamp")
	bulbs.crd.Spec.Names.Singular = "bulb"
	d := &Controller{known: map[string]*definition{}, groups: map[string]map[string]*definition{}}
	for _, one := range []*definition{bulbs, lamps, lights} {
		d.put(one.crd.Name, one)
	}
	accept := func() {
		list := d.of("example.com")
		for _, one := range list {
			acceptNames(one.crd, acceptedNames(list))
		}
	}
	want := func(when string, of *definition, text string) {
		t.Helper()
		if got := conditionsText(of); got != text {
			t.Errorf("%s: %s\n got %s\nwant %s", when, of.crd.Name, got, text)
		}
	}
	accept()
	want("first", lamps, good)
	want("two short names are taken", lights, `False ShortNamesConflict: ["glow" is already in use, "lp" is already in use]`+waiting)
	want("the last conflict is told", bulbs, `False ListKindConflict: "LampList" is already in use`+waiting)
	if a := bulbs.crd.Status.AcceptedNames; a.Plural != "bulbs" || a.Kind != "" || a.Singular != "bulb" {
		t.Errorf("what can be had is: %+v", a)
	}
	lights.crd.Spec.Names.ShortNames = []string{"lt"}
	accept()
	want("it asks for less", lights, good)
	lights.crd.Spec.Names.ShortNames = []string{"lt", "glow"}
	accept()
	want("once established, always", lights, `False ShortNamesConflict: "glow" is already in use; True InitialNamesAccepted: the initial names have been accepted`)
	if got := lights.crd.Status.AcceptedNames.ShortNames; len(got) != 1 {
		t.Errorf("it keeps what it had: %v", got)
	}
	d.put(lamps.crd.Name, nil)
	accept()
	want("the names are free", bulbs, good)
	want("the names are free", lights, good)
}

// TestBundleOfDefinitions: a webhook that could never be called keeps a definition from
// being served, until its certificates are some.
func TestBundleOfDefinitions(t *testing.T) {
	one := wanting(1, "lamps", "Lamp")
	config := &apiextensionsv1.WebhookClientConfig{CABundle: []byte("none")}
	one.crd.Spec.Conversion = &apiextensionsv1.CustomResourceConversion{Webhook: &apiextensionsv1.WebhookConversion{ClientConfig: config}}
	acceptNames(one.crd, acceptedNames(nil))
	if got, want := conditionsText(one), "True NoConflicts: no conflicts found; False InvalidCABundle: The conversion webhook CABundle is invalid"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
	config.CABundle = nil
	acceptNames(one.crd, acceptedNames(nil))
	if got := conditionsText(one); got != good {
		t.Errorf("without certificates: %s", got)
	}
	config.CABundle = []byte("none")
	acceptNames(one.crd, acceptedNames(nil))
	if got := conditionsText(one); got != good {
		t.Errorf("once established, always: %s", got)
	}
}

func TestApprovalOfDefinitions(t *testing.T) {
	const prefix = `protected groups must have approval annotation "api-approved.kubernetes.io"`
	for annotation, want := range map[string]string{
		"":                                "False MissingAnnotation: " + prefix,
		"https://github.com/x/y/pull/1":   "True ApprovedAnnotation: approved in https://github.com/x/y/pull/1",
		"unapproved, an experiment":       `False UnapprovedAnnotation: not approved: "unapproved, an experiment"`,
		"somewhere":                       "False InvalidAnnotation: " + prefix,
		"not of the community's concerns": "",
	} {
		one := wanting(1, "lamps", "Lamp")
		one.crd.Annotations = map[string]string{"api-approved.kubernetes.io": annotation}
		one.crd.Spec.Group = "things.k8s.io"
		if want == "" {
			one.crd.Spec.Group = "k8s.io.example.com"
		}
		approve(one.crd)
		if got := conditionsText(one); !strings.HasPrefix(got, want) || want == "" && got != "" {
			t.Errorf("%q: %s, want %s", annotation, got, want)
		}
	}
}

// TestNamesOfBuiltInResources: a definition that requests the name of a built-in resource, or has
// it because a client wrote its status, gets none, and loses that one.
func TestNamesOfBuiltInResources(t *testing.T) {
	d := &Controller{Own: func(group, plural string) bool { return group == "example.com" && plural == "roles" }}
	asks, was, given, other := wanting(1, "roles", "Role"), wanting(2, "roles", "Role"), wanting(3, "lamps", "Lamp"), wanting(4, "lights", "Light")
	acceptNames(was.crd, acceptedNames(nil))
	given.crd.Status.AcceptedNames.Plural = "roles"
	for _, one := range []*definition{asks, was, given} {
		if !d.shadows(one.crd) {
			t.Errorf("%s %d is taken for a resource of its own", one.crd.Name, one.created)
		}
		refuseNames(one.crd)
		if got, want := conditionsText(one), `False PluralConflict: "`+one.crd.Spec.Names.Plural+`" is already in use`+waiting; got != want {
			t.Errorf("%d: %s\nwant %s", one.created, got, want)
		}
		if one.crd.Status.AcceptedNames.Plural != "" {
			t.Errorf("%d has the name %q", one.created, one.crd.Status.AcceptedNames.Plural)
		}
	}
	if d.shadows(other.crd) || (&Controller{}).shadows(asks.crd) {
		t.Error("a name of its own is refused")
	}
}
