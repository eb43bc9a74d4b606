package webhook

import (
	"crypto/sha256"
	"encoding/binary"
	"maps"
	"slices"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/selection"

	"github.com/rowlock/rowlock/authx"
)

// review returns the review that the service gets, in its version.
func (z *Authorizer) review(a *authx.Attributes) any {
	meta := metav1.TypeMeta{Kind: z.gvk.Kind, APIVersion: z.gvk.GroupVersion().String()}
	spec := specOf(a)
	if z.gvk.Version == "v1" {
		return &authorizationv1.SubjectAccessReview{TypeMeta: meta, Spec: spec}
	}
	return &betaReview{TypeMeta: meta, Spec: betaSpec(spec)}
}

// betaReview is a review in v1beta1, whose field for groups has another name. Importing the package of that
// version would link the methods of all its types.
type betaReview struct {
	metav1.TypeMeta   `json:",inline"`
	metav1.ObjectMeta `json:"metadata,omitempty"`

	Spec   betaSpec                                  `json:"spec"`
	Status authorizationv1.SubjectAccessReviewStatus `json:"status,omitempty"`
}

// betaSpec has the fields of authorizationv1.SubjectAccessReviewSpec.
type betaSpec struct {
	ResourceAttributes    *authorizationv1.ResourceAttributes    `json:"resourceAttributes,omitempty"`
	NonResourceAttributes *authorizationv1.NonResourceAttributes `json:"nonResourceAttributes,omitempty"`

	User   string                                `json:"user,omitempty"`
	Groups []string                              `json:"group,omitempty"`
	Extra  map[string]authorizationv1.ExtraValue `json:"extra,omitempty"`
	UID    string                                `json:"uid,omitempty"`
}

func specOf(a *authx.Attributes) authorizationv1.SubjectAccessReviewSpec {
	var s authorizationv1.SubjectAccessReviewSpec
	if u := a.User; u != nil {
		s.User, s.UID, s.Groups = u.Name, u.UID, u.Groups
		for k, v := range u.Extra {
			if s.Extra == nil {
				s.Extra = make(map[string]authorizationv1.ExtraValue, len(u.Extra))
			}
			s.Extra[k] = v
		}
	}
	if !a.ResourceRequest {
		s.NonResourceAttributes = &authorizationv1.NonResourceAttributes{Path: a.Path, Verb: a.Verb}
		return s
	}
	s.ResourceAttributes = &authorizationv1.ResourceAttributes{
		Namespace: a.Namespace, Verb: a.Verb, Group: a.APIGroup, Version: a.APIVersion,
		Resource: a.Resource, Subresource: a.Subresource, Name: a.Name,
	}
	// Requirements narrow: where only some are known, the review is broader than
	// the request, never narrower.
	if list := fieldRequirements(a.FieldRequirements); len(list) > 0 {
		s.ResourceAttributes.FieldSelector = &authorizationv1.FieldSelectorAttributes{Requirements: list}
	}
	if list := labelRequirements(a.LabelRequirements); len(list) > 0 {
		s.ResourceAttributes.LabelSelector = &authorizationv1.LabelSelectorAttributes{Requirements: list}
	}
	return s
}

func fieldRequirements(in fields.Requirements) []metav1.FieldSelectorRequirement {
	var out []metav1.FieldSelectorRequirement
	for _, r := range in {
		var op metav1.FieldSelectorOperator
		switch r.Operator {
		case selection.Equals, selection.DoubleEquals, selection.In:
			op = metav1.FieldSelectorOpIn
		case selection.NotEquals, selection.NotIn:
			op = metav1.FieldSelectorOpNotIn
		default:
			continue
		}
		out = append(out, metav1.FieldSelectorRequirement{Key: r.Field, Operator: op, Values: []string{r.Value}})
	}
	return out
}

var labelOperators = map[selection.Operator]metav1.LabelSelectorOperator{
	selection.Equals: metav1.LabelSelectorOpIn, selection.DoubleEquals: metav1.LabelSelectorOpIn, selection.In: metav1.LabelSelectorOpIn,
	selection.NotEquals: metav1.LabelSelectorOpNotIn, selection.NotIn: metav1.LabelSelectorOpNotIn,
	selection.Exists: metav1.LabelSelectorOpExists, selection.DoesNotExist: metav1.LabelSelectorOpDoesNotExist,
}

func labelRequirements(in labels.Requirements) []metav1.LabelSelectorRequirement {
	var out []metav1.LabelSelectorRequirement
	for i := range in {
		op, ok := labelOperators[in[i].Operator()]
		if !ok {
			continue
		}
		r := metav1.LabelSelectorRequirement{Key: in[i].Key(), Operator: op}
		if values := in[i].ValuesUnsorted(); len(values) > 0 {
			r.Values = values
		}
		out = append(out, r)
	}
	return out
}

// keyOf encodes all attributes that a review holds. Each part is written with
// its length, and each list with its own, so that no two questions share a key.
func keyOf(a *authx.Attributes) [sha256.Size]byte {
	k := keyWriter{buf: make([]byte, 0, 512)}
	if u := a.User; u != nil {
		k.texts(u.Name, u.UID)
		k.list(u.Groups)
		k.number(len(u.Extra))
		for _, name := range slices.Sorted(maps.Keys(u.Extra)) {
			k.texts(name)
			k.list(u.Extra[name])
		}
	}
	if !a.ResourceRequest {
		k.texts("path", a.Verb, a.Path)
		return k.sum()
	}
	k.texts("resource", a.Verb, a.Namespace, a.APIGroup, a.APIVersion, a.Resource, a.Subresource, a.Name)
	k.number(len(a.FieldRequirements))
	for _, r := range a.FieldRequirements {
		k.texts(string(r.Operator), r.Field, r.Value)
	}
	k.number(len(a.LabelRequirements))
	for i := range a.LabelRequirements {
		r := &a.LabelRequirements[i]
		k.texts(string(r.Operator()), r.Key())
		k.list(r.ValuesUnsorted())
	}
	return k.sum()
}

// keyWriter puts the parts of a key one behind the other.
type keyWriter struct{ buf []byte }

func (k *keyWriter) number(n int) { k.buf = binary.AppendUvarint(k.buf, uint64(n)) }

func (k *keyWriter) texts(list ...string) {
	for _, s := range list {
		k.number(len(s))
		k.buf = append(k.buf, s...)
	}
}

func (k *keyWriter) list(list []string) {
	k.number(len(list))
	k.texts(list...)
}

func (k *keyWriter) sum() [sha256.Size]byte { return sha256.Sum256(k.buf) }
