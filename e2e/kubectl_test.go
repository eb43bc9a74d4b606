package e2e

import (
	"bufio"
	"context"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

func manifests(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/manifests/*.yaml")
	if err != nil || len(files) < 20 {
		t.Fatalf("manifests: %d, %v", len(files), err)
	}
	return files
}

// linesOf returns the output lines of kubectl, without the warning about Endpoints of servers of later releases.
func linesOf(out string) []string {
	return slices.DeleteFunc(strings.Split(strings.TrimSpace(out), "\n"), func(line string) bool { return strings.HasPrefix(line, "Warning: v1 Endpoints is deprecated") })
}

// TestKubectlManifests applies a whole shop, twice, changes it, and takes it down.
func TestKubectlManifests(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	k := s.Kubectl(t)
	files := manifests(t)
	for _, line := range linesOf(k.Run(ofFiles(files, "apply")...)) {
		if !strings.HasSuffix(line, " created") {
			t.Errorf("first apply says %q", line)
		}
	}
	// A controller sets a condition of the schema once its level exists.
	k.Run("wait", "flowschema/shop-controllers", `--for=jsonpath={.status.conditions[?(@.type=="Dangling")].status}=False`, "--timeout=2m")
	before := versions(k, files)
	nulls := strings.Contains(k.Run("get", "--raw", "/version"), `"minor": "32"`) // later servers do not answer the null that the template of a claim has
	for _, line := range linesOf(k.Run(ofFiles(files, "apply")...)) {
		// kubectl always sends a budget's selector, because by its type it is to be
		// replaced, and prints "configured" whatever the server makes of it.
		if !strings.HasSuffix(line, " unchanged") && !strings.HasPrefix(line, "poddisruptionbudget.policy/") && (nulls || line != "statefulset.apps/postgres configured") {
			t.Errorf("second apply says %q", line)
		}
	}
	if after := versions(k, files); after != before {
		t.Errorf("the second apply changed something:\n%s\n%s", before, after)
	}
	if out, err := k.Try("", ofFiles(files, "diff")...); err != nil || strings.Join(linesOf(out), "") != "" {
		t.Errorf("diff after apply: %v\n%s", err, out)
	}
	k.Run(ofFiles(files, "get", "-o", "yaml")...)
	k.Run(ofFiles(files, "describe")...)
	if out, err := k.Try("", ofFiles(files, "apply", "--server-side", "--force-conflicts", "--dry-run=server")...); err != nil {
		t.Errorf("server-side apply: %v\n%s", err, out)
	}
	// Volumes and claims in use are kept until the controller-manager, which is not
	// here, finds that they are not.
	for _, protected := range []string{"pv/media-0", "pvc/media"} {
		k.Run("patch", "-n", "shop", protected, "--type=merge", "-p", `{"metadata":{"finalizers":null}}`)
	}
	slices.Reverse(files)
	k.Run(ofFiles(files, "delete", "--wait=true", "--timeout=3m")...)
	k.Want([]string{"default", "kube-system"}, "get", "namespaces")
	if out, err := k.Try("", "get", "namespace", "shop"); err == nil {
		t.Errorf("namespace shop is still there:\n%s", out)
	}
}

// versions returns the resource versions of all objects of files, and what quotas ask for: their
// versions rise whenever the controller counts.
func versions(k *harness.Kubectl, files []string) string {
	return k.Run(ofFiles(files, "get", "-o", `jsonpath={range .items[?(@.kind!="ResourceQuota")]}{.kind}/{.metadata.name}={.metadata.resourceVersion} {end}`+
		`{range .items[?(@.kind=="ResourceQuota")]}{.kind}/{.metadata.name}={.metadata.uid} {.metadata.annotations} {.metadata.labels} {.spec} {end}`)...)
}

// ofFiles returns a command of kubectl for all of some files: one process is dearer than what it asks.
func ofFiles(files []string, args ...string) []string {
	for _, f := range files {
		args = append(args, "-f", f)
	}
	return args
}

// TestKubectlEveryday goes through the commands of a normal day.
func TestKubectlEveryday(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	k := s.Kubectl(t)
	k.Want([]string{"Server Version: v1."}, "version")
	k.Run("create", "deployment", "web", "--image=nginx:1.27", "--replicas=2")
	k.Want([]string{"NAME", "READY", "UP-TO-DATE", "AVAILABLE", "AGE", "0/2"}, "get", "deployment", "web")
	k.Want([]string{"nginx:1.27", "app=web"}, "get", "deployment", "web", "-o", "wide")
	k.Want([]string{"replicas: 2", "image: nginx:1.27", "kind: Deployment"}, "get", "deployment", "web", "-o", "yaml")
	k.Want([]string{"Name:", "web", "RollingUpdate", "nginx:1.27"}, "describe", "deployment", "web")
	k.Want([]string{"DESCRIPTION", "maxSurge"}, "explain", "deployment.spec.strategy.rollingUpdate")
	k.Want([]string{"containers", "-required-"}, "explain", "pod.spec")
	k.Want([]string{"podFailurePolicy"}, "explain", "jobs", "--recursive")

	k.Want([]string{"scaled"}, "scale", "deployment/web", "--replicas=5")
	k.Want([]string{"5"}, "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")
	if _, err := k.Try("", "scale", "deployment/web", "--current-replicas=2", "--replicas=6"); err == nil {
		t.Error("scale with a wrong precondition went through")
	}
	k.Want([]string{"labeled"}, "label", "deployment", "web", "tier=front")
	k.Want([]string{"web"}, "get", "deployments", "-l", "tier=front", "-o", "name")
	k.Want([]string{"annotated"}, "annotate", "deployment", "web", "note=hello")
	k.Want([]string{"image updated"}, "set", "image", "deployment/web", "nginx=nginx:1.28")
	k.Want([]string{"env updated"}, "set", "env", "deployment/web", "A=b")
	k.Want([]string{"resource requirements updated"}, "set", "resources", "deployment/web", "--requests=cpu=10m")
	k.Want([]string{"patched"}, "patch", "deployment", "web", "--type=json", "-p", `[{"op":"replace","path":"/spec/replicas","value":1}]`)
	k.Want([]string{"patched"}, "patch", "deployment", "web", "--type=merge", "-p", `{"spec":{"replicas":2}}`)
	k.Want([]string{"patched"}, "patch", "deployment", "web", "-p", `{"spec":{"template":{"spec":{"containers":[{"name":"nginx","imagePullPolicy":"Always"}]}}}}`)
	k.Want([]string{"deployment.apps/web"}, "rollout", "history", "deployment/web")
	k.Want([]string{"restarted"}, "rollout", "restart", "deployment/web")
	k.Want([]string{"paused"}, "rollout", "pause", "deployment/web")
	k.Want([]string{"resumed"}, "rollout", "resume", "deployment/web")

	edit := filepath.Join(t.TempDir(), "edit.sh")
	if err := os.WriteFile(edit, []byte("#!/bin/sh\nsed -i 's/replicas: 2/replicas: 4/' \"$1\"\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	k.With("KUBE_EDITOR="+edit).Want([]string{"edited"}, "edit", "deployment", "web")
	k.Want([]string{"4"}, "get", "deployment", "web", "-o", "jsonpath={.spec.replicas}")

	k.Want([]string{"exposed"}, "expose", "deployment", "web", "--port=80")
	k.Want([]string{"ClusterIP", "80/TCP"}, "get", "service", "web")
	k.Run("create", "configmap", "settings", "--from-literal=a=1", "--from-literal=b=2")
	k.Want([]string{"DATA", "2"}, "get", "configmap", "settings")
	k.Run("create", "secret", "generic", "pw", "--from-literal=password=x")
	k.Want([]string{"Opaque"}, "get", "secret", "pw")
	k.Run("create", "job", "once", "--image=busybox", "--", "true")
	k.Run("create", "cronjob", "often", "--image=busybox", "--schedule=*/5 * * * *")
	k.Run("create", "quota", "q", "--hard=pods=10")
	k.Run("create", "serviceaccount", "robot")
	k.Run("autoscale", "deployment", "web", "--min=1", "--max=3", "--cpu-percent=50")
	k.Run("create", "ingress", "in", "--rule=example.com/*=web:80")
	k.Run("create", "poddisruptionbudget", "web", "--selector=app=web", "--min-available=1")
	k.Run("create", "priorityclass", "high", "--value=1000")
	k.Run("create", "namespace", "extra")
	k.Run("run", "shell", "--image=busybox", "--", "sleep", "1")
	k.Want([]string{"shell", "Pending"}, "get", "pods")
	k.Want([]string{"deployment.apps/web", "service/web", "pod/shell", "cronjob.batch/often"}, "get", "all")
	k.Want([]string{"condition met"}, "wait", "--for=jsonpath={.status.phase}=Pending", "pod/shell", "--timeout=2m")
	k.Want([]string{"nodes", "true", "Deployment", "cronjobs", "cj"}, "api-resources")
	k.Want([]string{"apps/v1", "autoscaling/v2", "policy/v1"}, "api-versions")
	k.Want([]string{"is running at"}, "cluster-info")
	k.Run("get", "events", "-A")
	k.Run("get", "nodes")
	k.Want([]string{"kubernetes"}, "get", "endpointslices,services", "-A")
	k.Want([]string{"deleted"}, "delete", "pod", "shell", "--grace-period=0", "--force")
	k.Want([]string{"deleted"}, "delete", "deployment,service", "web")
	k.Want([]string{"deleted"}, "delete", "namespace", "extra", "--timeout=2m")
	if out, err := k.Try("", "create", "deployment", "bad", "--image="); err == nil {
		t.Errorf("a deployment without image was created: %s", out)
	}
	if out, err := k.Try("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndatta: {}\n", "apply", "-f", "-"); err == nil || !strings.Contains(out, `unknown field "datta"`) {
		t.Errorf("an unknown field went through: %v %s", err, out)
	}
}

// TestKubectlWatch sees changes as they come, across a restart of the server.
func TestKubectlWatch(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{})
	k := s.Kubectl(t)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := k.Command(ctx, "get", "configmaps", "-w", "--output-watch-events", "-l", "watched=yes")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 64)
	go func() {
		defer close(lines)
		for sc := bufio.NewScanner(out); sc.Scan(); {
			lines <- sc.Text()
		}
	}()
	expect := func(pattern string) {
		t.Helper()
		re := regexp.MustCompile(pattern)
		for {
			select {
			case line, ok := <-lines:
				if !ok {
					t.Fatalf("the watch ended before %q", pattern)
				}
				if re.MatchString(line) {
					return
				}
			case <-ctx.Done():
				t.Fatalf("no %q", pattern)
			}
		}
	}
	k.Run("create", "configmap", "a")
	k.Run("label", "configmap", "a", "watched=yes")
	expect(`^ADDED +a `)
	k.Run("patch", "configmap", "a", "--type=merge", "-p", `{"data":{"k":"v"}}`)
	expect(`^MODIFIED +a +1 `)
	k.Run("label", "configmap", "a", "watched-")
	expect(`^DELETED +a `)
	cancel()
	_ = cmd.Wait() // it was killed
}
