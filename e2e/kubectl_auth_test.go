package e2e

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

const grants = `apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata: {name: reader, namespace: team}
rules:
- {apiGroups: [""], resources: [pods, pods/log], verbs: [get, list]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata: {name: readers, namespace: team}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: Role, name: reader}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: jane}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: watcher}
rules:
- {nonResourceURLs: [/custom/*], verbs: [get]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: watchers}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: watcher}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: Group, name: watchers}
`

// TestKubectlAccess goes through the commands that ask about access, and change it.
func TestKubectlAccess(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	k := s.Kubectl(t)
	k.Run("create", "namespace", "team")
	k.Run("create", "serviceaccount", "robot", "-n", "team")
	reconcile(t, k)
	canI(t, k)
	k.Want([]string{"Username", "jane", "[g system:authenticated]"}, "auth", "whoami", "--as=jane", "--as-group=g", "--as-uid=u1")
	createGrants(t, k)
	defaultRoles(t, k)
	createToken(t, s, k)
}

// reconcile grants by file, and takes away only when that is asked for.
func reconcile(t *testing.T, k *harness.Kubectl) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "grants.yaml")
	if err := os.WriteFile(file, []byte(grants), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Want([]string{"role.rbac.authorization.k8s.io/reader reconciled", "rolebinding.rbac.authorization.k8s.io/readers reconciled", "clusterrole.rbac.authorization.k8s.io/watcher reconciled"}, "auth", "reconcile", "-f", file)
	// A narrower role loses nothing unless that is asked for.
	narrow := strings.Replace(grants, "pods, pods/log", "pods", 1)
	if err := os.WriteFile(file, []byte(narrow), 0o600); err != nil {
		t.Fatal(err)
	}
	k.Run("auth", "reconcile", "-f", file)
	k.Want([]string{"pods/log"}, "get", "role", "reader", "-n", "team", "-o", "jsonpath={.rules[*].resources}")
	k.Run("auth", "reconcile", "--remove-extra-permissions", "-f", file)
	if out := k.Run("get", "role", "reader", "-n", "team", "-o", "jsonpath={.rules[*].resources}"); strings.Contains(out, "pods/log") {
		t.Errorf("the extra permission stayed: %s", out)
	}
}

func canI(t *testing.T, k *harness.Kubectl) {
	t.Helper()
	for _, tc := range []struct {
		as, question string
		want         bool
	}{
		{"--as=jane", "list pods -n team", true},
		{"--as=jane", "get pods/web -n team", true},
		{"--as=jane", "get pods --subresource=log -n team", false},
		{"--as=jane", "delete pods -n team", false},
		{"--as=jane", "list pods -n default", false},
		{"--as=jane", "get /version", true},
		{"--as=jane", "get /custom/x", false},
		{"--as=jane --as-group=watchers", "get /custom/x", true},
		{"", "* *", true},
	} {
		args := append([]string{"auth", "can-i"}, strings.Fields(tc.question+" "+tc.as)...)
		out, err := k.Try("", args...)
		if answer := strings.HasPrefix(strings.TrimSpace(lastLine(out)), "yes"); answer != tc.want || (err == nil) != tc.want {
			t.Errorf("%v: %q %v", args, out, err)
		}
	}
	k.Want([]string{"selfsubjectreviews.authentication.k8s.io", "pods", "[get list]", "/version"}, "auth", "can-i", "--list", "-n", "team", "--as=jane")
	k.Want([]string{"*.*", "[*]"}, "auth", "can-i", "--list")
}

func createGrants(t *testing.T, k *harness.Kubectl) {
	t.Helper()
	k.Run("create", "role", "writer", "-n", "team", "--verb=create,update", "--resource=configmaps,deployments.apps/scale", "--resource-name=a")
	k.Want([]string{"deployments/scale"}, "get", "role", "writer", "-n", "team", "-o", "yaml")
	k.Run("create", "rolebinding", "writers", "-n", "team", "--role=writer", "--serviceaccount=team:robot", "--user=jane", "--group=devs")
	k.Run("create", "clusterrole", "prober", "--verb=get", "--non-resource-url=/livez/*")
	k.Run("create", "clusterrole", "all-probers", "--aggregation-rule=probes=yes")
	k.Run("create", "clusterrolebinding", "probers", "--clusterrole=prober", "--group=devs")
	k.Want([]string{"ServiceAccount", "robot", "writer"}, "describe", "rolebinding", "writers", "-n", "team")
	for question, as := range map[string]string{
		"update configmaps/a -n team":                           "--as=system:serviceaccount:team:robot",
		"update deployments.apps/a --subresource=scale -n team": "--as=jane",
		"get /livez/ping":                                       "--as=x --as-group=devs",
	} {
		k.Want([]string{"yes"}, append([]string{"auth", "can-i"}, strings.Fields(question+" "+as)...)...)
	}
	if out, err := k.Try("", "create", "rolebinding", "up", "-n", "team", "--clusterrole=admin", "--user=jane", "--as=jane"); err == nil || !strings.Contains(out, "cannot create resource") {
		t.Errorf("jane grants herself something: %v %s", err, out)
	}
}

// defaultRoles: view, edit and admin are useful on a new server, and include aggregated roles.
func defaultRoles(t *testing.T, k *harness.Kubectl) {
	t.Helper()
	for _, role := range []string{"view", "edit", "admin"} {
		k.Run("create", "rolebinding", role, "-n", "team", "--clusterrole="+role, "--user="+role+"er")
	}
	k.Run("create", "clusterrole", "widgets", "--verb=list", "--resource=configmaps/widgets")
	k.Run("label", "clusterrole", "widgets", "rbac.authorization.k8s.io/aggregate-to-edit=true")
	for _, tc := range []struct {
		user, question string
		want           bool
	}{
		{"viewer", "list pods", true},
		{"viewer", "list secrets", false},
		{"editer", "delete deployments.apps", true},
		{"editer", "create rolebindings", false},
		{"adminer", "create rolebindings", true},
		{"adminer", "create endpoints", false},
		{"adminer", "list configmaps --subresource=widgets", true}, // through edit
	} {
		args := append([]string{"auth", "can-i", "-n", "team", "--as=" + tc.user}, strings.Fields(tc.question)...)
		if out, err := k.Try("", args...); (err == nil) != tc.want {
			t.Errorf("%v: %q %v", args, out, err)
		}
	}
	k.Run("create", "rolebinding", "viewers", "-n", "team", "--clusterrole=view", "--user=jane", "--as=adminer")
	k.Run("delete", "rolebinding", "viewers", "-n", "team") // jane has rights of her own
	k.Want([]string{"pods/log", "bindings"}, "auth", "can-i", "--list", "-n", "team", "--as=viewer")
}

// createToken uses a token until its account is gone.
func createToken(t *testing.T, s *harness.Server, k *harness.Kubectl) {
	t.Helper()
	token := strings.TrimSpace(k.Run("create", "token", "robot", "-n", "team", "--duration=10m", "--audience=https://kubernetes.default.svc"))
	if strings.Count(token, ".") != 2 {
		t.Fatalf("no token: %q", token)
	}
	config := filepath.Join(t.TempDir(), "kubeconfig")
	robot := k.With("KUBECONFIG=" + config)
	robot.Run("config", "set-cluster", "c", "--server="+s.URL, "--certificate-authority="+filepath.Join(s.DataDir, "ca.crt"))
	robot.Run("config", "set-credentials", "u", "--token="+token)
	robot.Run("config", "set-context", "x", "--cluster=c", "--user=u")
	robot.Run("config", "use-context", "x")
	robot.Want([]string{"system:serviceaccount:team:robot", "system:serviceaccounts:team"}, "auth", "whoami")
	k.Run("delete", "serviceaccount", "robot", "-n", "team")
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for {
		out, err := robot.Try("", "auth", "whoami")
		if err != nil && strings.Contains(out, "Unauthorized") {
			return
		}
		if ctx.Err() != nil {
			t.Fatalf("the token outlives its account: %v %s", err, out)
		}
	}
}

func lastLine(text string) string {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
