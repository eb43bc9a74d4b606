package rowlocktest

import (
	"context"
	"crypto/rand"
	"fmt"
	"net/http"
	"sync"

	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/authx"
)

// tokens are the bearer tokens of a test's users.
type tokens struct {
	mu    sync.Mutex
	users map[string]*authx.Identity
}

// AuthenticateToken implements authx.TokenAuthenticator.
func (k *tokens) AuthenticateToken(_ context.Context, token string, _ []string) (*authx.Authenticated, bool, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	who := k.users[token]
	return &authx.Authenticated{Identity: who}, who != nil, nil
}

// Token returns a bearer token of a user in groups.
func (s *Server) Token(user string, groups ...string) string {
	s.tokens.mu.Lock()
	defer s.tokens.mu.Unlock()
	if s.tokens.users == nil {
		s.tokens.users = map[string]*authx.Identity{}
	}
	token := rand.Text()
	s.tokens.users[token] = &authx.Identity{Name: user, Groups: groups}
	return token
}

// Allow grants rules to a user, or to a group as "group:NAME", in a namespace; cluster-wide if namespace is
// "". It creates a role and a binding.
func (s *Server) Allow(subject, namespace string, rules ...rbacv1.PolicyRule) {
	s.t.Helper()
	who := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: subject}
	if group, ok := cutGroup(subject); ok {
		who.Kind, who.Name = rbacv1.GroupKind, group
	}
	name := metav1.ObjectMeta{Name: "rowlocktest-" + rand.Text()[:10], Namespace: namespace}
	root := "/apis/rbac.authorization.k8s.io/v1/"
	var err error
	if namespace == "" {
		err = s.post(root+"clusterroles", &rbacv1.ClusterRole{ObjectMeta: name, Rules: rules})
	} else {
		root += "namespaces/" + namespace + "/"
		err = s.post(root+"roles", &rbacv1.Role{ObjectMeta: name, Rules: rules})
	}
	if err == nil && namespace == "" {
		err = s.post(root+"clusterrolebindings", &rbacv1.ClusterRoleBinding{
			ObjectMeta: name, Subjects: []rbacv1.Subject{who}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: name.Name},
		})
	} else if err == nil {
		err = s.post(root+"rolebindings", &rbacv1.RoleBinding{
			ObjectMeta: name, Subjects: []rbacv1.Subject{who}, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name.Name},
		})
	}
	if err != nil {
		s.t.Fatalf("rowlocktest: allowing %s something: %v", subject, err)
	}
}

func cutGroup(subject string) (string, bool) {
	const mark = "group:"
	if len(subject) > len(mark) && subject[:len(mark)] == mark {
		return subject[len(mark):], true
	}
	return "", false
}

// Rule returns a rule for Allow: verbs on resources of a group, such as "pods" or "pods/status".
func Rule(group string, resources []string, verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: resources, Verbs: verbs}
}

// post writes for the test itself, past faults and records.
func (s *Server) post(path string, obj any) error {
	if err := s.plane.Server.Call(s.t.Context(), "rowlocktest", http.MethodPost, path, "application/json", obj, nil); err != nil {
		return fmt.Errorf("POST %s: %w", path, err)
	}
	return nil
}

// Namespace makes a namespace.
func (s *Server) Namespace(name string) {
	s.t.Helper()
	obj := map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}
	if err := s.post("/api/v1/namespaces", obj); err != nil {
		s.t.Fatalf("rowlocktest: %v", err)
	}
}
