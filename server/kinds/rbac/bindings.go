package rbac

import (
	"cmp"
	"strings"
	"time"

	rbacv1 "k8s.io/api/rbac/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/kinds/columns"
	"github.com/rowlock/rowlock/server/kinds/rules"
)

// RoleBinding returns the strategy of RoleBindings.
func RoleBinding(on kinds.Feature) kinds.Strategy {
	changed := changedIn(on)
	return kinds.Typed[*rbacv1.RoleBinding]{
		ValidateName: validateName,
		Meta:         metaIn(on),
		Default: func(b *rbacv1.RoleBinding) {
			defaultBinding(&b.RoleRef, b.Subjects)
		},
		Validate: func(b *rbacv1.RoleBinding) field.ErrorList {
			return validateBinding(&b.RoleRef, b.Subjects, true)
		},
		ValidateUpdate: func(b, old *rbacv1.RoleBinding) field.ErrorList {
			return append(changed(validateBinding(&b.RoleRef, b.Subjects, true)), sameRole(&b.RoleRef, &old.RoleRef)...)
		},
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
	}.Strategy()
}

// ClusterRoleBinding returns the strategy of ClusterRoleBindings.
func ClusterRoleBinding(on kinds.Feature) kinds.Strategy {
	changed := changedIn(on)
	return kinds.Typed[*rbacv1.ClusterRoleBinding]{
		ValidateName: validateName,
		Meta:         metaIn(on),
		Default: func(b *rbacv1.ClusterRoleBinding) {
			defaultBinding(&b.RoleRef, b.Subjects)
		},
		Validate: func(b *rbacv1.ClusterRoleBinding) field.ErrorList {
			return validateBinding(&b.RoleRef, b.Subjects, false)
		},
		ValidateUpdate: func(b, old *rbacv1.ClusterRoleBinding) field.ErrorList {
			return append(changed(validateBinding(&b.RoleRef, b.Subjects, false)), sameRole(&b.RoleRef, &old.RoleRef)...)
		},
		CreateOnUpdate:      true,
		UnconditionalUpdate: true,
	}.Strategy()
}

// RoleBindingColumns is the Table form of RoleBindings.
var RoleBindingColumns = columns.Of(
	func(b *rbacv1.RoleBinding, now time.Time) []any {
		return bindingCells(&b.ObjectMeta, &b.RoleRef, b.Subjects, now)
	},
	bindingColumns("roleBinding", rbacv1.RoleBinding{}.SwaggerDoc()["roleRef"])...,
)

// ClusterRoleBindingColumns is the Table form of ClusterRoleBindings.
var ClusterRoleBindingColumns = columns.Of(
	func(b *rbacv1.ClusterRoleBinding, now time.Time) []any {
		return bindingCells(&b.ObjectMeta, &b.RoleRef, b.Subjects, now)
	},
	bindingColumns("clusterRoleBinding", rbacv1.ClusterRoleBinding{}.SwaggerDoc()["roleRef"])...,
)

// bindingColumns returns the columns of bindings of a kind. A stock server shows the description of
// the role in v1beta1, which lacks a sentence of that in v1.
func bindingColumns(noun, role string) []columns.Column {
	role = strings.TrimSuffix(role, " This field is immutable.")
	return []columns.Column{
		columns.Name(),
		columns.Text("Role", role),
		columns.Age(),
		columns.Wide(columns.Text("Users", "Users in the "+noun)),
		columns.Wide(columns.Text("Groups", "Groups in the "+noun)),
		columns.Wide(columns.Text("ServiceAccounts", "ServiceAccounts in the "+noun)),
	}
}

func bindingCells(m *metav1.ObjectMeta, r *rbacv1.RoleRef, subjects []rbacv1.Subject, now time.Time) []any {
	var users, groups, accounts []string
	for i := range subjects {
		switch s := &subjects[i]; s.Kind {
		case rbacv1.ServiceAccountKind:
			accounts = append(accounts, s.Namespace+"/"+s.Name)
		case rbacv1.UserKind:
			users = append(users, s.Name)
		case rbacv1.GroupKind:
			groups = append(groups, s.Name)
		}
	}
	return []any{
		m.Name, r.Kind + "/" + r.Name, columns.Since(m.CreationTimestamp, now),
		strings.Join(users, ", "), strings.Join(groups, ", "), strings.Join(accounts, ", "),
	}
}

func defaultBinding(r *rbacv1.RoleRef, subjects []rbacv1.Subject) {
	r.APIGroup = cmp.Or(r.APIGroup, rbacv1.GroupName)
	for i := range subjects {
		s := &subjects[i]
		if s.APIGroup == "" && (s.Kind == rbacv1.UserKind || s.Kind == rbacv1.GroupKind) {
			s.APIGroup = rbacv1.GroupName
		}
	}
}

func sameRole(r, old *rbacv1.RoleRef) field.ErrorList {
	if *r == *old {
		return nil
	}
	return field.ErrorList{field.Invalid(field.NewPath("roleRef"), rules.Shown(r), "cannot change roleRef")}
}

func validateBinding(r *rbacv1.RoleRef, subjects []rbacv1.Subject, namespaced bool) field.ErrorList {
	p := field.NewPath("roleRef")
	errs := rules.OneOf(r.APIGroup, p.Child("apiGroup"), rbacv1.GroupName)
	if namespaced {
		errs = append(errs, rules.OneOf(r.Kind, p.Child("kind"), "Role", "ClusterRole")...)
	} else {
		errs = append(errs, rules.OneOf(r.Kind, p.Child("kind"), "ClusterRole")...)
	}
	if r.Name == "" {
		errs = append(errs, field.Required(p.Child("name"), ""))
	} else {
		errs = append(errs, rules.Messages(p.Child("name"), r.Name, validateName(r.Name, false))...)
	}
	return append(errs, rules.EachPtr(subjects, field.NewPath("subjects"), func(s *rbacv1.Subject, at *field.Path) field.ErrorList {
		return validateSubject(s, namespaced, at)
	})...)
}

func validateSubject(s *rbacv1.Subject, namespaced bool, p *field.Path) field.ErrorList {
	errs := rules.RequiredIf(nil, s.Name == "", p.Child("name"), "")
	switch s.Kind {
	case rbacv1.ServiceAccountKind:
		if s.Name != "" {
			errs = append(errs, rules.Messages(p.Child("name"), s.Name, apivalidation.ValidateServiceAccountName(s.Name, false))...)
		}
		errs = append(errs, rules.OneOf(s.APIGroup, p.Child("apiGroup"), "")...)
		errs = rules.RequiredIf(errs, !namespaced && s.Namespace == "", p.Child("namespace"), "")
	case rbacv1.UserKind, rbacv1.GroupKind:
		errs = append(errs, rules.OneOf(s.APIGroup, p.Child("apiGroup"), rbacv1.GroupName)...)
	default:
		errs = append(errs, field.NotSupported(p.Child("kind"), s.Kind,
			[]string{rbacv1.ServiceAccountKind, rbacv1.UserKind, rbacv1.GroupKind}))
	}
	return errs
}
