package apiextensions

import (
	"strings"

	apiext "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds/rules"
)

func validateRequiredNames(n *apiext.CustomResourceDefinitionNames, p *field.Path) (errs field.ErrorList) {
	for _, r := range []struct{ child, name string }{
		{"plural", n.Plural}, {"singular", n.Singular}, {"kind", n.Kind}, {"listKind", n.ListKind},
	} {
		if r.name == "" {
			errs = append(errs, field.Required(p.Child(r.child), ""))
		}
	}
	return errs
}

// validateNames checks requested or accepted names, where they are set.
func validateNames(n *apiext.CustomResourceDefinitionNames, p *field.Path) (errs field.ErrorList) {
	label := func(p *field.Path, name string) {
		if msgs := validation.IsDNS1035Label(name); len(msgs) > 0 {
			errs = append(errs, field.Invalid(p, name, strings.Join(msgs, ",")))
		}
	}
	kind := func(p *field.Path, name string) {
		if msgs := validation.IsDNS1035Label(strings.ToLower(name)); name != "" && len(msgs) > 0 {
			errs = append(errs, field.Invalid(p, name, "may have mixed case, but should otherwise match: "+strings.Join(msgs, ",")))
		}
	}
	if n.Plural != "" {
		label(p.Child("plural"), n.Plural)
	}
	if n.Singular != "" {
		label(p.Child("singular"), n.Singular)
	}
	kind(p.Child("kind"), n.Kind)
	kind(p.Child("listKind"), n.ListKind)
	for i, name := range rules.Until(&errs, n.ShortNames) {
		label(p.Child("shortNames").Index(i), name)
	}
	errs = rules.InvalidIf(errs, n.Kind != "" && n.Kind == n.ListKind, p.Child("listKind"), n.ListKind, "kind and listKind may not be the same")
	for i, name := range rules.Until(&errs, n.Categories) {
		label(p.Child("categories").Index(i), name)
	}
	return errs
}
