package e2e

import (
	"path/filepath"
	"slices"
	"testing"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	authenticationclient "k8s.io/client-go/kubernetes/typed/authentication/v1"
	authorizationclient "k8s.io/client-go/kubernetes/typed/authorization/v1"
	rbacclient "k8s.io/client-go/kubernetes/typed/rbac/v1"
	"k8s.io/client-go/rest"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestReviews asks about access as clients and node agents do, in JSON and in Protobuf.
func TestReviews(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	config := func(contentType, as string) *rest.Config {
		return &rest.Config{
			Host: s.URL, BearerToken: harness.AdminToken, TLSClientConfig: rest.TLSClientConfig{CAFile: filepath.Join(s.DataDir, "ca.crt")},
			ContentConfig: rest.ContentConfig{ContentType: contentType, AcceptContentTypes: contentType},
			Impersonate:   rest.ImpersonationConfig{UserName: as},
		}
	}
	ctx := t.Context()
	admin := rbacclient.NewForConfigOrDie(config("application/json", ""))
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, Rules: []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"pods"}, Verbs: []string{"list"}}}}
	if _, err := admin.Roles("default").Create(ctx, role, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	binding := &rbacv1.RoleBinding{ObjectMeta: metav1.ObjectMeta{Name: "reader"}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "reader"},
		Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: "User", Name: "jane"}}}
	if _, err := admin.RoleBindings("default").Create(ctx, binding, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	for _, contentType := range []string{"application/json", "application/vnd.kubernetes.protobuf"} {
		t.Run(filepath.Base(contentType), func(t *testing.T) {
			rights, janes := authorizationclient.NewForConfigOrDie(config(contentType, "")), authorizationclient.NewForConfigOrDie(config(contentType, "jane"))
			tokens, jane := authenticationclient.NewForConfigOrDie(config(contentType, "")), authenticationclient.NewForConfigOrDie(config(contentType, "jane"))
			for verb, want := range map[string]bool{"list": true, "delete": false} {
				pods := &authorizationv1.ResourceAttributes{Namespace: "default", Verb: verb, Resource: "pods",
					FieldSelector: &authorizationv1.FieldSelectorAttributes{RawSelector: "spec.nodeName=n1"},
					LabelSelector: &authorizationv1.LabelSelectorAttributes{Requirements: []metav1.LabelSelectorRequirement{{Key: "a", Operator: metav1.LabelSelectorOpExists}}}}
				spec := authorizationv1.SubjectAccessReviewSpec{User: "jane", ResourceAttributes: pods}
				anybody, err := rights.SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{Spec: spec}, metav1.CreateOptions{})
				if err != nil || anybody.Status.Allowed != want || anybody.Status.Denied || anybody.Status.EvaluationError != "" || anybody.Spec.User != "jane" {
					t.Errorf("%s: %v %+v", verb, err, anybody)
				}
				local, err := rights.LocalSubjectAccessReviews("default").Create(ctx, &authorizationv1.LocalSubjectAccessReview{ObjectMeta: metav1.ObjectMeta{Namespace: "default"}, Spec: spec}, metav1.CreateOptions{})
				if err != nil || local.Status.Allowed != want {
					t.Errorf("%s: %v %+v", verb, err, local)
				}
				self, err := janes.SelfSubjectAccessReviews().Create(ctx, &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: pods}}, metav1.CreateOptions{})
				if err != nil || self.Status.Allowed != want {
					t.Errorf("%s: %v %+v", verb, err, self)
				}
			}
			rules, err := janes.SelfSubjectRulesReviews().Create(ctx, &authorizationv1.SelfSubjectRulesReview{Spec: authorizationv1.SelfSubjectRulesReviewSpec{Namespace: "default"}}, metav1.CreateOptions{})
			if err != nil || rules.Status.Incomplete || !slices.ContainsFunc(rules.Status.ResourceRules, func(r authorizationv1.ResourceRule) bool { return slices.Equal(r.Resources, []string{"pods"}) }) {
				t.Errorf("rules: %v %+v", err, rules)
			}
			who, err := jane.SelfSubjectReviews().Create(ctx, &authenticationv1.SelfSubjectReview{}, metav1.CreateOptions{})
			if err != nil || who.Status.UserInfo.Username != "jane" || !slices.Equal(who.Status.UserInfo.Groups, []string{"system:authenticated"}) {
				t.Errorf("who: %v %+v", err, who)
			}
			for token, want := range map[string]string{harness.AdminToken: "admin", "nonsense": ""} {
				review, err := tokens.TokenReviews().Create(ctx, &authenticationv1.TokenReview{Spec: authenticationv1.TokenReviewSpec{Token: token}}, metav1.CreateOptions{})
				if err != nil || review.Status.User.Username != want || review.Status.Authenticated != (want != "") || (review.Status.Error == "") != (want != "") {
					t.Errorf("token: %v %+v", err, review)
				}
			}
		})
	}
}
