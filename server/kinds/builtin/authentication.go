package builtin

import (
	authenticationv1 "k8s.io/api/authentication/v1"

	"github.com/rowlock/rowlock/server/kinds"
)

func authenticationV1() []*kinds.Resource {
	return rows("authentication.k8s.io", "v1",
		&kinds.Resource{
			Plural: "selfsubjectreviews", Kind: "SelfSubjectReview",
			Verbs: createOnly(), New: object[authenticationv1.SelfSubjectReview](),
		},
		&kinds.Resource{
			Plural: "tokenreviews", Kind: "TokenReview",
			Verbs: createOnly(), New: object[authenticationv1.TokenReview](),
		},
	)
}

func authenticationV1beta1() []*kinds.Resource {
	return rows("authentication.k8s.io", "v1beta1",
		&kinds.Resource{
			Plural: "selfsubjectreviews", Kind: "SelfSubjectReview",
			Verbs: createOnly(), New: object[authenticationv1.SelfSubjectReview](),
		},
	)
}
