package builtin

import (
	authorizationv1 "k8s.io/api/authorization/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

func authorizationV1() []*kinds.Resource {
	return rows("authorization.k8s.io", "v1",
		&kinds.Resource{
			Plural: "localsubjectaccessreviews", Kind: "LocalSubjectAccessReview", Namespaced: true,
			Verbs: createOnly(), New: object[authorizationv1.LocalSubjectAccessReview](),
		},
		&kinds.Resource{
			Plural: "selfsubjectaccessreviews", Kind: "SelfSubjectAccessReview",
			Verbs: createOnly(), New: object[authorizationv1.SelfSubjectAccessReview](),
		},
		&kinds.Resource{
			Plural: "selfsubjectrulesreviews", Kind: "SelfSubjectRulesReview",
			Verbs: createOnly(), New: object[authorizationv1.SelfSubjectRulesReview](),
		},
		&kinds.Resource{
			Plural: "subjectaccessreviews", Kind: "SubjectAccessReview",
			Verbs: createOnly(), New: object[authorizationv1.SubjectAccessReview](),
		},
	)
}
