package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/harness"
)

// asMeant is an object without what a server fills in, with its owners by name alone.
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

// TestCopy: what a live cluster, or a database, has comes into another cluster through its
// API, owners with their new UIDs; a second run changes nothing; what others own and what
// the user may not is named and left.
func TestCopy(t *testing.T) {
	postgres := startPostgres(t)
	store := "sqlite:" + filepath.Join(t.TempDir(), "from.db")
	source := liveCluster(t, store)
	for name, c := range map[string]struct {
		to   string
		from []string
	}{
		"cluster to postgres": {createDB(t, postgres, "copied"), []string{"--from-kubeconfig", source.Kubeconfig}},
		"database to sqlite":  {"", []string{"--store", store}},
	} {
		t.Run(name, func(t *testing.T) {
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
			if a, errOut, err = copyInto(t, args...); err != nil || a.Total.Created < 50 || a.Total.Conflicts+a.Total.Failed > 0 || !a.told("apiservices.apiregistration.k8s.io", "v1.", "skipped") {
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
			copyRefused(t, target, kubectl, args)
		})
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
	if a, errOut, err := copyInto(t, args...); err == nil || a.Total.Conflicts != 1 || !a.told("configmaps", "c1", "conflict") || n() != "mine" {
		t.Errorf("what another owns: %v, %+v, %s, %s", err, a.Total, errOut, n())
	}
	if a, errOut, err := copyInto(t, append(args, "--overwrite")...); err != nil || a.Total.Changed != 1 || n() != "1" {
		t.Errorf("what another owns, overwritten: %v, %+v, %s, %s", err, a.Total, errOut, n())
	}
	kubectl.Run("delete", "secret", "s", "-n", "shop")
	kubectl.Run("delete", "configmap", "c2", "-n", "shop")
	limited := limitedTo(t, target, "limited", "--verb=get,create,patch", "--resource=configmaps")
	a, errOut, err := copyInto(t, append(args, "--to-kubeconfig", limited, "--resources", "configmaps,secrets", "-n", "shop")...)
	if err == nil || a.Total.Created != 1 || a.Total.Failed != 1 || !a.told("secrets", "s", "failed") {
		t.Errorf("a user who may write configmaps alone: %v, %+v, %s", err, a, errOut)
	}
	if strings.Contains(errOut, "AAEC") {
		t.Errorf("the message holds a secret: %s", errOut)
	}
}
