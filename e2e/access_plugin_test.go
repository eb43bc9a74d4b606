package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// plugIn uses kubectl with kubeconfigs that rowlock writes: a certificate, and the
// credential plugin for a service account and for a node that joins with a bootstrap
// token.
func plugIn(t *testing.T, a *access) {
	k := a.s.Kubectl(t)
	dir := t.TempDir()
	write := func(name string, args ...string) string {
		t.Helper()
		file := filepath.Join(dir, name)
		if out, errOut, code := rowlock(t, append([]string{"kubeconfig", "--data-dir", a.s.DataDir, "--output", file}, args...)...); code != 0 {
			t.Fatalf("%s: %d %s%s", name, code, out, errOut)
		}
		if info, err := os.Stat(file); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", name, info, err)
		}
		return file
	}
	whoami := func(file string, want ...string) {
		t.Helper()
		out, err := k.Try("", "--kubeconfig", file, "auth", "whoami", "-o", "json")
		for _, text := range want {
			if err != nil || !strings.Contains(out, text) {
				t.Fatalf("%s: no %s in %s %v", filepath.Base(file), text, out, err)
			}
		}
	}
	whoami(write("user", "--user", "jill", "--group", "devs"), `"username": "jill"`, `"devs"`, "X509SHA256=")
	a.namespace(t, "plug")
	const accounts, account = "/api/v1/namespaces/plug/serviceaccounts", `{"metadata":{"name":"robot"}}`
	a.admin(t, "POST", accounts, account)
	robot := write("robot", "--service-account", "robot", "--namespace", "plug")
	whoami(robot, `"username": "system:serviceaccount:plug:robot"`, "JTI=")
	// The account is recreated: the token that the plugin caches is invalid.
	a.admin(t, "DELETE", accounts+"/robot", "")
	a.admin(t, "POST", accounts, account)
	whoami(robot, `"username": "system:serviceaccount:plug:robot"`)

	a.admin(t, "POST", "/api/v1/namespaces/kube-system/secrets", `{"metadata":{"name":"bootstrap-token-abcdef"},"type":"bootstrap.kubernetes.io/token","stringData":{"token-id":"abcdef","token-secret":"0123456789abcdef","usage-bootstrap-authentication":"true"}}`)
	for _, role := range []string{"system:node-bootstrapper", "system:certificates.k8s.io:certificatesigningrequests:nodeclient"} {
		a.admin(t, "POST", rbacPath+"/clusterrolebindings", fmt.Sprintf(
			`{"metadata":{"generateName":"join-"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":%q},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:bootstrappers"}]}`, role))
	}
	token := filepath.Join(dir, "token")
	if err := os.WriteFile(token, []byte("abcdef.0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	base := write("bootstrap", "--token-file", token)
	whoami(base, `"username": "system:bootstrap:abcdef"`, `"system:bootstrappers"`)
	whoami(write("node", "--node", "n7", "--base-kubeconfig", base), `"username": "system:node:n7"`, `"system:nodes"`)
	a.admin(t, "PATCH", "/api/v1/namespaces/kube-system/secrets/bootstrap-token-abcdef", `{"stringData":{"expiration":"2020-01-01T00:00:00Z"}}`)
	eventually(t, "a bootstrap token that has ended is refused", func() bool { return a.who(t, call{token: "abcdef.0123456789abcdef"}) == "401" })
	if got := a.who(t, call{token: "abcdef.0123456789abcdee"}); got != "401" {
		t.Errorf("another secret: taken as %s", got)
	}
}
