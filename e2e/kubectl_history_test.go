package e2e

import (
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// TestKubectlHistory: kubectl lists and shows the past of an object, and who may do so.
func TestKubectlHistory(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	k := s.Kubectl(t)
	k.Run("create", "namespace", "shop")
	k.Run("create", "deployment", "web", "--image=web:1", "-n", "shop")
	k.Run("set", "image", "deployment/web", "*=web:2", "-n", "shop")
	const selector = "--field-selector=object.resource=deployments.apps,object.name=web"
	lines := strings.Split(strings.TrimSpace(k.Run("get", "revisions", "-n", "shop", selector)), "\n")
	if got := strings.Join(strings.Fields(lines[0]), " "); got != "REVISION CHANGE WHEN MANAGERS CHANGED" || len(lines) != 3 {
		t.Fatalf("got\n%s", strings.Join(lines, "\n"))
	}
	newest, oldest := strings.Fields(lines[1]), strings.Fields(lines[2])
	if newest[1] != "update" || newest[3] != "kubectl-set" || newest[4] != `spec.template.spec.containers[name="web"].image` || oldest[1] != "create" || oldest[3] != "kubectl-create" {
		t.Errorf("got\n%s", strings.Join(lines, "\n"))
	}
	k.Want([]string{"kind: Revision", "image: web:1", "change: create", "supersededBy: \"" + newest[0] + "\""}, "get", "rev", "deployments.apps:web:"+oldest[0], "-n", "shop", "-o", "yaml")
	k.Want([]string{"deployments.apps:web:" + newest[0]}, "get", "rev", "-n", "shop", selector, "-o", "name")
	k.Want([]string{`"op":"replace"`, `"from":"web:1"`, `"to":"web:2"`, `"manager":"kubectl-set"`}, "get", "--raw", "/apis/history.rowlock.dev/v1/namespaces/shop/revisions/deployments.apps:web:"+newest[0]+"/diff?from="+oldest[0])
	k.Want([]string{"yes"}, "auth", "can-i", "list", "revisions", "-n", "shop")
	k.Want([]string{"changedFields"}, "explain", "revisions")
	k.Run("create", "role", "looker", "--verb=get,list", "--resource=revisions.history.rowlock.dev", "-n", "shop")
	k.Run("create", "rolebinding", "looker", "--role=looker", "--user=jane", "-n", "shop")
	k.Want([]string{"yes"}, "auth", "can-i", "list", "revisions", "-n", "shop", "--as=jane")
	out, err := k.Try("", "get", "revisions", "-n", "shop", selector, "--as=jane")
	if err == nil || !strings.Contains(err.Error(), `deployments.apps "web" is forbidden`) || !strings.Contains(err.Error(), `cannot get resource "deployments"`) {
		t.Errorf("%s %v", out, err)
	}
}
