package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

// past is a server, and the commands about the past as a user runs them.
type past struct {
	t   *testing.T
	k   *harness.Kubectl
	env []string
	bin string
}

// onBoth runs a test against servers on SQLite and on PostgreSQL.
func onBoth(t *testing.T, test func(p *past)) {
	t.Helper()
	pg := sharedPostgres(t)
	for name, store := range map[string]string{"sqlite": "", "postgres": createDB(t, pg, "past")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Store: store, Args: []string{"--history-retention=1h"}})
			bin, err := harness.Binary()
			if err != nil {
				t.Fatal(err)
			}
			test(&past{t: t, k: s.Kubectl(t), bin: bin, env: append(os.Environ(), "KUBECONFIG="+s.Kubeconfig, "LC_ALL=C.UTF-8", "COLUMNS=", "TZ=UTC")})
		})
	}
}

// run returns one command: what it prints, and its exit code.
func (p *past) run(args ...string) (string, int) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, p.bin, args...)
	cmd.Env = p.env
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatalf("%v: %v", args, err)
	}
	return string(out), cmd.ProcessState.ExitCode()
}

// wants runs a command that has to end with a code and to print each of some texts.
func (p *past) wants(code int, texts []string, args ...string) string {
	p.t.Helper()
	out, got := p.run(args...)
	if got != code {
		p.t.Errorf("%v: exit code %d, want %d\n%s", args, got, code, out)
	}
	for _, text := range texts {
		if !strings.Contains(out, text) {
			p.t.Errorf("%v: no %q in\n%s", args, text, out)
		}
	}
	return out
}

// moment returns a time between earlier and later writes.
func (p *past) moment() string {
	time.Sleep(200 * time.Millisecond) // a server may know the database's clock, which is this machine's, by as much
	at := time.Now().UTC().Format(time.RFC3339Nano)
	time.Sleep(200 * time.Millisecond)
	return at
}

// apply creates an object of a manifest, and returns its UID.
func (p *past) apply(manifest string) string {
	p.t.Helper()
	out, err := p.k.Try(manifest, "create", "-f", "-", "-o", "json")
	if err != nil {
		p.t.Fatal(err)
	}
	var obj struct{ Metadata struct{ UID string } }
	if err := json.Unmarshal([]byte(out), &obj); err != nil {
		p.t.Fatal(err)
	}
	return obj.Metadata.UID
}

// shop fills a namespace: a Deployment that owns a ReplicaSet that owns a Pod, by hand,
// because no controller-manager runs; a ConfigMap and a Secret.
func (p *past) shop() {
	p.t.Helper()
	p.k.Run("create", "namespace", "shop")
	p.k.Run("create", "-n", "shop", "deployment", "web", "--image=nginx:1")
	owner := p.k.Run("get", "-n", "shop", "deploy/web", "-o", "jsonpath={.metadata.uid}")
	template := `"selector":{"matchLabels":{"app":"web"}},"template":{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"n","image":"nginx"}]}}`
	set := p.apply(`{"apiVersion":"apps/v1","kind":"ReplicaSet","metadata":{"name":"web-1","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"Deployment","name":"web","uid":"` + owner + `","controller":true}]},"spec":{` + template + `}}`)
	p.apply(`{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1-a","namespace":"shop","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web-1","uid":"` + set + `","controller":true}]},"spec":{"containers":[{"name":"n","image":"nginx"}]}}`)
	p.k.Run("create", "-n", "shop", "configmap", "settings", "--from-literal=color=red")
	p.k.Run("create", "-n", "shop", "secret", "generic", "pw", "--from-literal=password=quiet")
}

// TestPastCommands goes through a day with changes and deletions.
func TestPastCommands(t *testing.T) {
	t.Parallel()
	onBoth(t, func(p *past) {
		p.shop()
		then := p.moment()
		p.k.Run("set", "image", "-n", "shop", "deploy/web", "nginx=nginx:2")
		p.k.Run("scale", "-n", "shop", "deploy/web", "--replicas=3")
		p.k.Run("patch", "-n", "shop", "cm/settings", "-p", `{"data":{"color":"blue"}}`)
		p.looks(then)
		p.undeletes()
		p.restores(then)
		p.denies()
		p.plugin()
	})
}

// looks: history, diff, blame and at, of what lives.
func (p *past) looks(then string) {
	out := p.wants(0, []string{"deployment.apps/web in namespace shop: 3 writes", "◆", "create  kubectl-create", "kubectl-set", `spec.template.spec.containers[name="nginx"].image`, "spec.replicas"}, "history", "deploy/web", "-n", "shop")
	if strings.Contains(out, "\x1b") {
		p.t.Errorf("colours where there is no terminal:\n%s", out)
	}
	p.wants(0, []string{`"changedFields"`, `"change": "create"`}, "history", "deploy", "web", "-n", "shop", "-o", "json")
	p.wants(0, []string{"1 write,"}, "history", "deploy/web", "-n", "shop", "--until", then)
	p.wants(1, []string{"no state of it is kept"}, "history", "deploy/never", "-n", "shop")
	p.wants(1, []string{"-      - image: nginx:1", "+      - image: nginx:2", "+  replicas: 3"}, "diff", "deploy/web", "-n", "shop", "--from", then)
	p.wants(0, nil, "diff", "secret/pw", "-n", "shop", "--from", then)
	p.wants(2, []string{`--from: "then" is not a time or revision`}, "diff", "deploy/web", "-n", "shop", "--from", "then")
	for _, line := range strings.Split(p.wants(0, nil, "blame", "deploy/web", "-n", "shop"), "\n") {
		for field, by := range map[string]string{"replicas: 3": "kubectl ", "- image: nginx:2": "kubectl-set ", "name: web": "kubectl-create "} {
			if strings.HasSuffix(line, " "+field) && !strings.HasPrefix(line, by) {
				p.t.Errorf("%q is attributed to another user than %s", line, by)
			}
		}
	}
	p.wants(0, []string{"NAME", "web", "0/1"}, "at", then, "--", "get", "deploy", "-n", "shop")
	p.wants(0, []string{"NAME", "web-1-a", "Pending"}, "at", then, "-n", "shop", "--", "get", "pod", "web-1-a")
	p.wants(0, []string{"image: nginx:1", "kind: Deployment"}, "at", then, "--", "get", "deploy/web", "-n", "shop", "-o", "yaml")
	p.wants(1, []string{`configmaps "never" not found`}, "at", then, "--", "get", "cm/never", "-n", "shop")
	p.wants(1, []string{"read-only view of the past"}, "at", then, "--", "delete", "cm/settings", "-n", "shop")
	p.wants(1, []string{"read-only view of the past"}, "at", then, "--", "logs", "web-1-a", "-n", "shop")
	p.wants(7, nil, "at", then, "--program", "sh", "--", "-c", "exit 7")
}

// undeletes: a Deployment and all that it owned come back, with owners that are there.
func (p *past) undeletes() {
	p.k.Run("delete", "-n", "shop", "deploy/web")
	p.gone("pod/web-1-a")
	p.wants(0, []string{"✕"}, "history", "deploy/web", "-n", "shop")
	p.wants(1, []string{"+ create  deployment.apps/web", "standard input is not a terminal", "--yes"}, "undelete", "deploy/web", "-n", "shop", "--with-dependents")
	p.wants(0, []string{"3 to create", "3 done, 0 conflicts, 0 failed"}, "undelete", "deploy/web", "-n", "shop", "--with-dependents", "--yes")
	p.wants(1, []string{"is there: nothing to bring back"}, "undelete", "deploy/web", "-n", "shop", "--yes")
	time.Sleep(time.Second) // a collector that takes them for orphans would have taken them
	p.k.Want([]string{"deployment.apps/web", "replicaset.apps/web-1", "pod/web-1-a"}, "get", "-n", "shop", "deploy,rs,pods", "-o", "name")
	owner := p.k.Run("get", "-n", "shop", "deploy/web", "-o", "jsonpath={.metadata.uid}")
	p.k.Want([]string{owner}, "get", "-n", "shop", "rs/web-1", "-o", "jsonpath={.metadata.ownerReferences[0].uid}")
	p.k.Want([]string{"nginx:2 3"}, "get", "-n", "shop", "deploy/web", "-o", "jsonpath={.spec.template.spec.containers[0].image} {.spec.replicas}")
}

func (p *past) gone(name string) {
	p.t.Helper()
	p.k.Run("wait", "-n", "shop", "--for=delete", name, "--timeout=2m")
}

// restores: a namespace goes back to what it was, first as it lives and then when it is gone.
func (p *past) restores(then string) {
	p.k.Run("create", "-n", "shop", "configmap", "extra")
	p.k.Run("delete", "-n", "shop", "secret/pw")
	p.wants(0, []string{"~ change  configmap/settings in namespace shop: data.color", "+ create  secret/pw", "~ change  deployment.apps/web", "made by a controller", "made since (--prune"}, "restore", "-n", "shop", "--to", then, "--dry-run")
	p.k.Want([]string{"blue"}, "get", "-n", "shop", "cm/settings", "-o", "jsonpath={.data.color}")
	p.wants(0, []string{"- delete  configmap/extra", "4 done, 0 conflicts, 0 failed"}, "restore", "-n", "shop", "--to", then, "--prune", "--yes")
	p.wants(0, []string{"0 to create, 0 to change, 0 to adopt, 0 to delete"}, "restore", "-n", "shop", "--to", then, "--dry-run", "--prune")
	p.k.Want([]string{"red"}, "get", "-n", "shop", "cm/settings", "-o", "jsonpath={.data.color}")
	p.k.Run("delete", "namespace", "shop", "--timeout=2m")
	p.wants(0, []string{"+ create  namespace/shop", "+ create  deployment.apps/web", "0 conflicts, 0 failed"}, "restore", "-n", "shop", "--to", then, "--yes")
	p.k.Want([]string{"nginx:1"}, "get", "-n", "shop", "deploy/web", "-o", "jsonpath={.spec.template.spec.containers[0].image}")
	p.k.Want([]string{"quiet"}, "get", "-n", "shop", "secret/pw", "-o", "go-template={{.data.password|base64decode}}")
}

// denies: a user without the right to read an object cannot read its past with any of the commands.
func (p *past) denies() {
	p.k.Run("create", "-n", "shop", "role", "looker", "--verb=get,list", "--resource=revisions.history.rowlock.dev,configmaps")
	p.k.Run("create", "-n", "shop", "rolebinding", "looker", "--role=looker", "--user=ann")
	p.wants(0, []string{"configmap/settings"}, "history", "cm/settings", "-n", "shop", "--as", "ann")
	for _, args := range [][]string{
		{"history", "secret/pw"}, {"blame", "secret/pw"}, {"undelete", "secret/pw"}, {"at", "1", "--", "get", "secrets", "-n", "shop"}, {"restore", "--to", "1m"},
	} {
		// Flags go before the dashes, behind which is another program's line.
		args = append([]string{args[0], "-n", "shop", "--as", "ann"}, args[1:]...)
		out := p.wants(1, []string{"orbidden"}, args...)
		if strings.Contains(out, "quiet") || strings.Contains(out, "cXVpZXQ") {
			p.t.Errorf("%v shows the Secret:\n%s", args, out)
		}
	}
	p.wants(2, []string{"forbidden"}, "diff", "secret/pw", "-n", "shop", "--as", "ann", "--since", "1m")
}

// plugin: kubectl finds the program, and completes its commands.
func (p *past) plugin() {
	dir := p.t.TempDir()
	p.wants(0, []string{"is not on the PATH"}, "plugin", "install", dir)
	p.wants(0, []string{"is there"}, "plugin", "install", dir)
	k := p.k.With("PATH=" + dir + ":" + os.Getenv("PATH"))
	k.Want([]string{"deployment.apps/web in namespace shop"}, "rowlock", "history", "deploy/web", "-n", "shop")
	k.Want([]string{"undelete", "restore"}, "rowlock", "--help")
	k.Want([]string{"history\t", "blame\t"}, "__complete", "rowlock", "")
	if err := os.WriteFile(filepath.Join(dir, "kubectl-other"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	other := p.t.TempDir()
	if err := os.WriteFile(filepath.Join(other, "kubectl-rowlock"), nil, 0o600); err != nil {
		p.t.Fatal(err)
	}
	p.wants(1, []string{"FOLDER", "--force replaces it"}, "plugin", "install", other)
	p.wants(0, nil, "plugin", "install", other, "--force")
}
