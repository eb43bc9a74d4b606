package e2e

import (
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/harness"
)

// asMeant returns an object without what a server fills in, with its owners by name alone.
func asMeant(object any) any {
	o, _ := object.(map[string]any)
	if o == nil {
		return nil
	}
	delete(o, "status")
	meta := o["metadata"].(map[string]any)
	for _, name := range []string{"uid", "resourceVersion", "creationTimestamp", "generation", "managedFields"} {
		delete(meta, name)
	}
	owners, _ := meta["ownerReferences"].([]any)
	for _, owner := range owners {
		delete(owner.(map[string]any), "uid")
	}
	return o
}

// copied are the resources of liveObjects by which both servers are compared.
var copied = []string{
	"/api/v1/secrets shop/", "/api/v1/services shop/", "/api/v1/pods shop/", "/api/v1/persistentvolumes ", "/api/v1/configmaps shop/c", "/apis/apps/v1/deployments ", "/apis/apps/v1/replicasets ",
	"/apis/batch/v1/cronjobs ", "/apis/rbac.authorization.k8s.io/v1/roles shop/", "/apis/networking.k8s.io/v1/networkpolicies ", "/apis/example.com/v1/widgets ", "/apis/example.com/v2/widgets ",
}

func wantCopied(t *testing.T, source, target *harness.Server) {
	t.Helper()
	want, got := everything(t, source), everything(t, target)
	found := map[string]int{}
	for name, object := range want {
		for _, prefix := range copied {
			if strings.HasPrefix(name, prefix) {
				found[prefix]++
				if diff := cmp.Diff(asMeant(object), asMeant(got[name])); diff != "" {
					t.Errorf("%s: %s", name, diff)
				}
			}
		}
	}
	for _, prefix := range copied {
		if found[prefix] == 0 {
			t.Errorf("nothing of %q was compared", prefix)
		}
	}
}

// TestCopy: the objects of a live cluster, or of a database, are copied into another cluster through its
// API, owners with their new UIDs, also after a run that was killed; a second run changes
// nothing; fields of other owners and forbidden objects are named and left alone.
func TestCopy(t *testing.T) {
	t.Parallel()
	postgres := sharedPostgres(t)
	store := "sqlite:" + filepath.Join(t.TempDir(), "from.db")
	source := liveCluster(t, store)
	source.Kubectl(t).Run("patch", "deployment", "web", "-n", "shop", "--subresource=status", "--type=merge", "-p", `{"status":{"replicas":5}}`)
	for name, c := range map[string]struct {
		to     string
		from   []string
		killed bool
	}{
		"cluster to postgres": {createDB(t, postgres, "copied"), []string{"--from-kubeconfig", source.Kubeconfig}, true},
		"database to sqlite":  {"", []string{"--store", store}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			target := harness.StartT(t, harness.Options{Store: c.to})
			kubectl := target.Kubectl(t)
			args := append([]string{"--to-kubeconfig", target.Kubeconfig}, c.from...)
			a, errOut, err := copyInto(t, append(args, "--dry-run")...)
			if err != nil || a.Total.Created < 50 || a.Total.Failed > 0 {
				t.Fatalf("trial: %v, %+v, %s", err, a.Total, errOut)
			}
			for name := range everything(t, target) {
				if strings.Contains(name, " shop/") || strings.HasSuffix(name, "/shop") || strings.HasSuffix(name, "/disk") || strings.Contains(name, "widgets") {
					t.Errorf("a trial made %s", name)
				}
			}
			before := int64(0)
			if c.killed {
				copyKilled(t, target, args)
				before = 20
			}
			if a, errOut, err = copyInto(t, args...); err != nil || a.Total.Unchanged < before || a.Total.Created+a.Total.Unchanged < 50 || a.Total.Changed > 0 || a.Total.Conflicts+a.Total.Failed > 0 || !a.hasDetail("apiservices.apiregistration.k8s.io", "v1.", "skipped") {
				t.Fatalf("%v, %+v, %s", err, a, errOut)
			}
			wantCopied(t, source, target)
			owner := kubectl.Run("get", "deployment", "web", "-n", "shop", "-o", "jsonpath={.metadata.uid}")
			if of := kubectl.Run("get", "replicaset", "web-1", "-n", "shop", "-o", "jsonpath={.metadata.ownerReferences[0].uid}"); of != owner {
				t.Errorf("the owner has UID %s and is named by %s", owner, of)
			}
			if a, errOut, err = copyInto(t, args...); err != nil || a.Total.Created+a.Total.Changed > 0 || a.Total.Unchanged < 50 {
				t.Errorf("again: %v, %+v, %s", err, a.Total, errOut)
			}
			if !c.killed { // each costs time
				copyChosen(t, kubectl, args)
			}
			copyRefused(t, target, kubectl, args)
		})
	}
}

// copyKilled runs the command until it has written something, holds it there, and kills it. No
// file of it stays.
func copyKilled(t *testing.T, target *harness.Server, args []string) {
	t.Helper()
	bin, err := harness.Binary()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	g := startGate(t, target, "shop")
	cmd := exec.Command(bin, append([]string{"copy", "--workers", "1", "--exclude", "*.rbac.authorization.k8s.io"}, args...)...)
	cmd.Dir, cmd.Env = dir, append(os.Environ(), "TMPDIR="+dir)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	get := asAdministrator(t, target)
	for held := false; !held; {
		select {
		case <-g.asked: // about the next ConfigMap: nothing is written until the gate opens
		case err := <-ended:
			t.Fatalf("a run that was to be killed had ended: %v", err)
		}
		if code, _ := get("/api/v1/namespaces/shop/configmaps/c20"); code == http.StatusOK {
			held = true
			continue
		}
		g.opens <- struct{}{}
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatalf("a run that was to be killed had ended: %v, %v", err, <-ended)
	}
	<-ended
	close(g.opens)
	if a := asAdmin(t, target, "DELETE", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations/gate", ""); a.code != http.StatusOK {
		t.Fatal(a)
	}
	if code, _ := get("/api/v1/namespaces/shop/pods/p"); code != http.StatusNotFound {
		t.Errorf("a run that was killed midway had copied everything: %d", code)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("the run that was killed leaves %v, %v", files, err)
	}
}

// copyChosen goes on with a target in which all is copied: the status, labels, addresses.
func copyChosen(t *testing.T, kubectl *harness.Kubectl, args []string) {
	t.Helper()
	only := func(more ...string) []string { return append(append([]string{}, args...), more...) }
	if a, errOut, err := copyInto(t, only("--with-status", "--resources", "deployments.apps")...); err != nil || a.Total.Changed != 1 {
		t.Errorf("the status: %v, %+v, %s", err, a.Total, errOut)
	}
	if got := kubectl.Run("get", "deployment", "web", "-n", "shop", "-o", "jsonpath={.status.replicas}"); got != "5" {
		t.Errorf("the status has %s replicas", got)
	}
	kubectl.Run("delete", "service", "web", "-n", "shop")
	if _, err := kubectl.Try(`{"apiVersion":"v1","kind":"Service","metadata":{"name":"other","namespace":"shop"},"spec":{"type":"NodePort","clusterIP":"10.96.7.7","ports":[{"port":80,"nodePort":30123}]}}`, "create", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	a, errOut, err := copyInto(t, only("--resources", "services", "-n", "shop")...)
	if err != nil || a.Total.Created != 1 || !a.hasDetail("services", "web", "noted") {
		t.Errorf("an address that is taken: %v, %+v, %s", err, a, errOut)
	}
	if got := kubectl.Run("get", "service", "web", "-n", "shop", "-o", "jsonpath={.spec.clusterIP} {.spec.ports[0].nodePort}"); strings.Contains(got, "10.96.7.7") || strings.Contains(got, "30123") {
		t.Errorf("the Service has %s", got)
	}
	if a, errOut, err := copyInto(t, only("-l", "kubernetes.io/metadata.name=shop", "-n", "shop")...); err != nil || a.Total.Unchanged != 1 || a.Total.Created+a.Total.Changed > 0 {
		t.Errorf("by a label that the namespace has: %v, %+v, %s", err, a.Total, errOut)
	}
}

// copyRefused goes on with a target in which all is copied.
func copyRefused(t *testing.T, target *harness.Server, kubectl *harness.Kubectl, args []string) {
	t.Helper()
	mine := `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c1","namespace":"shop"},"data":{"n":"mine"}}`
	if _, err := kubectl.Try(mine, "apply", "--server-side", "--force-conflicts", "-f", "-"); err != nil {
		t.Fatal(err)
	}
	n := func() string { return kubectl.Run("get", "configmap", "c1", "-n", "shop", "-o", "jsonpath={.data.n}") }
	if a, errOut, err := copyInto(t, args...); err == nil || a.Total.Conflicts != 1 || !a.hasDetail("configmaps", "c1", "conflict") || n() != "mine" {
		t.Errorf("what another owns: %v, %+v, %s, %s", err, a.Total, errOut, n())
	}
	if a, errOut, err := copyInto(t, append(args, "--overwrite")...); err != nil || a.Total.Changed != 1 || n() != "1" {
		t.Errorf("what another owns, overwritten: %v, %+v, %s, %s", err, a.Total, errOut, n())
	}
	kubectl.Run("delete", "secret", "s", "-n", "shop")
	kubectl.Run("delete", "configmap", "c2", "-n", "shop")
	limited := limitedTo(t, target, "limited", "--verb=get,create,patch", "--resource=configmaps")
	a, errOut, err := copyInto(t, append(args, "--to-kubeconfig", limited, "--resources", "configmaps,secrets", "-n", "shop")...)
	if err == nil || a.Total.Created != 1 || a.Total.Failed != 1 || !a.hasDetail("secrets", "s", "failed") {
		t.Errorf("a user who may write configmaps alone: %v, %+v, %s", err, a, errOut)
	}
	if strings.Contains(errOut, "AAEC") {
		t.Errorf("the message holds a secret: %s", errOut)
	}
}
