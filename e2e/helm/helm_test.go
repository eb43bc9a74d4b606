// Package helm runs Helm 4 and the newest Helm 3, built from their public modules, against the built binary.
// It is a module of its own: Helm wants newer libraries than the server. `make long` runs it.
package helm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/clientcmd"

	"github.com/rowlock/rowlock/e2e/harness"
)

// patience bounds how long a busy machine may take for one command of Helm.
const patience = 5 * time.Minute

var (
	greetings   = schema.GroupVersionResource{Group: "example.test", Version: "v1", Resource: "greetings"}
	definitions = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}
)

// programs are the paths of Helm 3 and Helm 4.
var programs = map[string]string{}

// TestMain builds both releases of Helm; ROWLOCK_HELM_V3 and ROWLOCK_HELM_V4 name programs that are ready.
func TestMain(m *testing.M) { os.Exit(run(m)) }

func run(m *testing.M) int {
	dir, err := os.MkdirTemp("", "rowlock-helm-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	build := func(name, what string) (string, error) {
		path := filepath.Join(dir, name)
		cmd := exec.Command("go", "build", "-o", path, what)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
		if out, err := cmd.CombinedOutput(); err != nil {
			return "", fmt.Errorf("building %s: %w\n%s", what, err, out)
		}
		return path, nil
	}
	defer harness.Cleanup()
	for _, major := range []string{"v3", "v4"} {
		if programs[major] = os.Getenv("ROWLOCK_HELM_" + strings.ToUpper(major)); programs[major] != "" {
			continue
		}
		if programs[major], err = build("helm-"+major, "helm.sh/helm/"+major+"/cmd/helm"); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	return m.Run()
}

// bed is a server with a chart for it, and what does the work of controllers and kubelets there.
type bed struct {
	*kubernetes.Clientset
	dynamic    *dynamic.DynamicClient
	release    string
	kubeconfig string
	home       string
	chart      string
}

// TestHelm: Helm handles a release as on a stock server.
func TestHelm(t *testing.T) {
	releases := []string{"1.32", "1.36"}
	if only := os.Getenv("ROWLOCK_RELEASE"); only != "" {
		releases = []string{only}
	}
	for _, release := range releases {
		t.Run(release, func(t *testing.T) {
			b := start(t, release)
			t.Run("Helm 4", func(t *testing.T) { helm4(t, b) })
			t.Run("from Helm 3", func(t *testing.T) { fromHelm3(t, b) })
		})
	}
}

func start(t *testing.T, release string) *bed {
	t.Helper()
	s := harness.StartT(t, harness.Options{Args: []string{"--emulated-version=" + release}})
	cfg, err := clientcmd.BuildConfigFromFlags("", s.Kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	cfg.QPS = -1
	b := &bed{release: release, kubeconfig: s.Kubeconfig, home: t.TempDir()}
	if b.Clientset, err = kubernetes.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	if b.dynamic, err = dynamic.NewForConfig(cfg); err != nil {
		t.Fatal(err)
	}
	b.chart = b.makeChart(t)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		b.work(ctx, t)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return b
}

// chartFiles are the files of the chart in addition to those of `helm create`: a definition with an object of
// it, a hook, and templates that query the server.
var chartFiles = map[string]string{
	"crds/greetings.yaml": `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: greetings.example.test}
spec:
  group: example.test
  scope: Namespaced
  names: {plural: greetings, singular: greeting, kind: Greeting, listKind: GreetingList}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              text: {type: string, minLength: 1}
              times: {type: integer, default: 2}
`,
	"templates/greeting.yaml": `apiVersion: example.test/v1
kind: Greeting
metadata: {name: hello}
spec: {text: {{ .Values.greeting | default "hello" | quote }}}
`,
	"templates/seen.yaml": `{{- $before := lookup "v1" "ConfigMap" .Release.Namespace "seen" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: seen}
data:
  release: {{ .Capabilities.KubeVersion.Version }}
  kind: {{ .Capabilities.APIVersions.Has "example.test/v1/Greeting" | quote }}
  namespace: {{ (lookup "v1" "Namespace" "" .Release.Namespace).metadata.uid }}
  greetings: {{ len (lookup "example.test/v1" "Greeting" .Release.Namespace "").items | quote }}
  renders: {{ if $before }}{{ add1 (int $before.data.renders) | quote }}{{ else }}"1"{{ end }}
`,
	"templates/migrate.yaml": `apiVersion: batch/v1
kind: Job
metadata:
  name: migrate
  annotations:
    helm.sh/hook: pre-install,pre-upgrade
    helm.sh/hook-delete-policy: before-hook-creation,hook-succeeded
spec:
  template:
    spec:
      restartPolicy: Never
      containers: [{name: migrate, image: migrate}]
`,
}

func (b *bed) makeChart(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	b.helm("v4").run(t, "create", filepath.Join(dir, "web"))
	for name, text := range chartFiles {
		path := filepath.Join(dir, "web", name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, "web")
}

// work does what controllers and kubelets do, until it is stopped: rollouts, Jobs and Pods succeed.
func (b *bed) work(ctx context.Context, t *testing.T) {
	tick := time.NewTicker(200 * time.Millisecond)
	defer tick.Stop()
	for {
		if err := b.workOnce(ctx); err != nil && ctx.Err() == nil && !apierrors.IsConflict(err) && !apierrors.IsNotFound(err) {
			t.Errorf("in the place of controllers: %v", err)
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func (b *bed) workOnce(ctx context.Context) error {
	deployments, err := b.AppsV1().Deployments("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, d := range deployments.Items {
		if d.Status.ObservedGeneration == d.Generation {
			continue
		}
		n := *d.Spec.Replicas
		d.Status = appsv1.DeploymentStatus{
			ObservedGeneration: d.Generation, Replicas: n, UpdatedReplicas: n, ReadyReplicas: n, AvailableReplicas: n,
			Conditions: []appsv1.DeploymentCondition{
				{Type: appsv1.DeploymentAvailable, Status: corev1.ConditionTrue, Reason: "MinimumReplicasAvailable"},
				{Type: appsv1.DeploymentProgressing, Status: corev1.ConditionTrue, Reason: "NewReplicaSetAvailable"},
			},
		}
		if _, err := b.AppsV1().Deployments(d.Namespace).UpdateStatus(ctx, &d, metav1.UpdateOptions{FieldManager: "controllers"}); err != nil {
			return err
		}
	}
	jobs, err := b.BatchV1().Jobs("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, j := range jobs.Items {
		if j.Status.Succeeded > 0 {
			continue
		}
		now := metav1.Now()
		j.Status.StartTime, j.Status.CompletionTime, j.Status.Succeeded = &now, &now, 1
		for _, kind := range []batchv1.JobConditionType{batchv1.JobSuccessCriteriaMet, batchv1.JobComplete} {
			j.Status.Conditions = append(j.Status.Conditions, batchv1.JobCondition{Type: kind, Status: corev1.ConditionTrue, LastTransitionTime: now})
		}
		if _, err := b.BatchV1().Jobs(j.Namespace).UpdateStatus(ctx, &j, metav1.UpdateOptions{FieldManager: "controllers"}); err != nil {
			return err
		}
	}
	pods, err := b.CoreV1().Pods("").List(ctx, metav1.ListOptions{})
	if err != nil {
		return err
	}
	for _, p := range pods.Items {
		if p.Status.Phase == corev1.PodSucceeded {
			continue
		}
		p.Status.Phase = corev1.PodSucceeded
		if _, err := b.CoreV1().Pods(p.Namespace).UpdateStatus(ctx, &p, metav1.UpdateOptions{FieldManager: "controllers"}); err != nil {
			return err
		}
	}
	return nil
}

// namespace makes a namespace, and waits for the account that its Pods run as.
func (b *bed) namespace(t *testing.T, name string) {
	t.Helper()
	ns := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if _, err := b.CoreV1().Namespaces().Create(t.Context(), ns, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	until(t, func() error {
		_, err := b.CoreV1().ServiceAccounts(name).Get(t.Context(), "default", metav1.GetOptions{})
		return err
	})
}

func until(t *testing.T, so func() error) {
	t.Helper()
	for deadline := time.Now().Add(patience); ; time.Sleep(50 * time.Millisecond) {
		err := so()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			t.Fatal(err)
		}
	}
}

// runner runs one release of Helm.
type runner struct {
	program string
	env     []string
}

func (b *bed) helm(major string) runner {
	return runner{program: programs[major], env: append(os.Environ(), "HOME="+b.home, "KUBECONFIG="+b.kubeconfig,
		"HELM_CACHE_HOME="+filepath.Join(b.home, major, "cache"), "HELM_CONFIG_HOME="+filepath.Join(b.home, major, "config"),
		"HELM_DATA_HOME="+filepath.Join(b.home, major, "data"), "HELM_DRIVER=secret")}
}

// try runs Helm and returns what it printed, standard error behind standard output.
func (r runner) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	cmd := exec.CommandContext(ctx, r.program, args...)
	cmd.Env = r.env
	var out, errOut strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &errOut
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("helm %s: %w\n%s%s", strings.Join(args, " "), err, out.String(), errOut.String())
	}
	return out.String() + errOut.String(), nil
}

func (r runner) run(t *testing.T, args ...string) string {
	t.Helper()
	out, err := r.try(args...)
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// wants runs Helm and looks for texts in what it printed.
func (r runner) wants(t *testing.T, texts []string, args ...string) {
	t.Helper()
	out := r.run(t, args...)
	for _, text := range texts {
		if !strings.Contains(out, text) {
			t.Errorf("helm %s: no %q in:\n%s", strings.Join(args, " "), text, out)
		}
	}
}

// fails runs Helm, which has to fail with these texts.
func (r runner) fails(t *testing.T, texts []string, args ...string) {
	t.Helper()
	out, err := r.try(args...)
	if err == nil {
		t.Fatalf("helm %s did not fail:\n%s", strings.Join(args, " "), out)
	}
	for _, text := range texts {
		if !strings.Contains(err.Error(), text) {
			t.Errorf("no %q in: %v", text, err)
		}
	}
}

// history returns "REVISION STATUS" of each revision.
func (r runner) history(t *testing.T, name, namespace string) (revisions []string) {
	t.Helper()
	var list []struct {
		Revision int
		Status   string
	}
	if err := json.Unmarshal([]byte(r.run(t, "history", name, "-n", namespace, "-o", "json")), &list); err != nil {
		t.Fatal(err)
	}
	for _, one := range list {
		revisions = append(revisions, fmt.Sprint(one.Revision, " ", one.Status))
	}
	return revisions
}

func (b *bed) deployment(t *testing.T, namespace, name string) *appsv1.Deployment {
	t.Helper()
	d, err := b.AppsV1().Deployments(namespace).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// owners returns the managers, with their operation, of the number of replicas.
func owners(d *appsv1.Deployment) (list []string) {
	for _, m := range d.ManagedFields {
		var fields struct {
			Spec map[string]any `json:"f:spec"`
		}
		if m.FieldsV1 == nil || json.Unmarshal(m.FieldsV1.Raw, &fields) != nil {
			continue
		}
		if _, has := fields.Spec["f:replicas"]; has {
			list = append(list, m.Manager+" "+string(m.Operation))
		}
	}
	slices.Sort(list)
	return list
}

func (b *bed) replicas(t *testing.T, namespace, name string, want int32, owned ...string) {
	t.Helper()
	d := b.deployment(t, namespace, name)
	if *d.Spec.Replicas != want || !slices.Equal(owners(d), owned) {
		t.Errorf("%d replicas, which %q own; want %d and %q", *d.Spec.Replicas, owners(d), want, owned)
	}
}

// seen returns the values that the chart's templates read from the server.
func (b *bed) seen(t *testing.T, namespace string) map[string]string {
	t.Helper()
	m, err := b.CoreV1().ConfigMaps(namespace).Get(t.Context(), "seen", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return m.Data
}

func (b *bed) checkSeen(t *testing.T, namespace, renders, greetings string) {
	t.Helper()
	ns, err := b.CoreV1().Namespaces().Get(t.Context(), namespace, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	seen := b.seen(t, namespace)
	if !strings.HasPrefix(seen["release"], "v"+b.release+".") || seen["kind"] != "true" || seen["namespace"] != string(ns.UID) ||
		seen["renders"] != renders || seen["greetings"] != greetings {
		t.Errorf("the templates saw %v, want %s renders, %s greetings and the namespace %s", seen, renders, greetings, ns.UID)
	}
}

func same(t *testing.T, what string, got, want []string) {
	t.Helper()
	if !slices.Equal(got, want) {
		t.Errorf("%s: %q, want %q", what, got, want)
	}
}

func helm4(t *testing.T, b *bed) {
	const ns = "shop"
	h := b.helm("v4")
	b.namespace(t, ns)
	common := func(args ...string) []string { return append(args, "-n", ns, "--timeout", "4m") }
	upgrade := func(more ...string) []string { return common(append([]string{"upgrade", "web", b.chart}, more...)...) }

	h.run(t, common("install", "web", b.chart, "--wait")...)
	b.replicas(t, ns, "web", 1, "helm Apply")
	b.checkSeen(t, ns, "1", "0")
	h.wants(t, []string{`"phase":"Succeeded"`}, "status", "web", "-n", ns, "-o", "json")
	greeting, err := b.dynamic.Resource(greetings).Namespace(ns).Get(t.Context(), "hello", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if times, _, _ := unstructured.NestedInt64(greeting.Object, "spec", "times"); times != 2 {
		t.Errorf("the default of the definition was not set: %v", greeting.Object)
	}
	jobs, err := b.BatchV1().Jobs(ns).List(t.Context(), metav1.ListOptions{})
	if err != nil || len(jobs.Items) != 0 {
		t.Errorf("the Job of the hook stayed: %v, %v", jobs.Items, err)
	}
	h.fails(t, []string{"cannot reuse a name"}, common("install", "web", b.chart)...)
	h.fails(t, []string{"exists and cannot be imported"}, common("install", "web2", b.chart, "--set", "fullnameOverride=web", "--dry-run=server")...)

	// A dry run asks the server and changes nothing.
	before := b.deployment(t, ns, "web").ResourceVersion
	h.wants(t, []string{"replicas: 3", `renders: "2"`, `greetings: "1"`}, upgrade("--set", "replicaCount=3", "--dry-run=server")...)
	template := func(more ...string) []string {
		return append([]string{"template", "web", b.chart, "--validate", "-n", "default"}, more...)
	}
	h.wants(t, []string{"replicas: 3", "release: v" + b.release + "."}, template("--set", "replicaCount=3")...)
	h.fails(t, []string{`no matches for kind "HTTPRoute"`}, template("--set", "httpRoute.enabled=true")...)
	if after := b.deployment(t, ns, "web").ResourceVersion; after != before {
		t.Error("a dry run changed the Deployment")
	}
	same(t, "history after dry runs", h.history(t, "web", ns), []string{"1 deployed"})

	h.run(t, upgrade("--wait", "--set", "replicaCount=3")...)
	b.replicas(t, ns, "web", 3, "helm Apply")
	b.checkSeen(t, ns, "2", "1")
	same(t, "history after an upgrade", h.history(t, "web", ns), []string{"1 superseded", "2 deployed"})
	h.wants(t, []string{"STATUS: deployed", "REVISION: 2", "UP-TO-DATE", "3/3", "CLUSTER-IP", "v1/Greeting"}, "status", "web", "-n", ns)
	h.wants(t, []string{"web", ns, "deployed"}, "list", "-A")
	h.wants(t, []string{`"replicaCount":3`}, "get", "values", "web", "-n", ns, "-o", "json")

	// A refused object fails the release, and the next upgrade repairs it.
	h.fails(t, []string{"spec.ports[0].port", "Invalid value", "65535"}, upgrade("--set", "service.port=70000")...)
	same(t, "history after a failure", h.history(t, "web", ns), []string{"1 superseded", "2 deployed", "3 failed"})
	h.fails(t, []string{"spec.ports[0].port"}, upgrade("--set", "service.port=70000", "--rollback-on-failure")...)
	same(t, "history after a rollback on failure", h.history(t, "web", ns), []string{"1 superseded", "2 superseded", "3 failed", "4 failed", "5 deployed"})
	h.fails(t, []string{"resources.limit", "field not declared in schema"}, upgrade("--set-json", `resources={"limit":{"cpu":"1"}}`)...)
	b.replicas(t, ns, "web", 3, "helm Apply")

	// More kinds; the replicas, which then have no owner, are the default.
	h.run(t, upgrade("--wait", "--set", "autoscaling.enabled=true,ingress.enabled=true,replicaCount=3")...)
	b.replicas(t, ns, "web", 1)
	if _, err := b.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	if _, err := b.NetworkingV1().Ingresses(ns).Get(t.Context(), "web", metav1.GetOptions{}); err != nil {
		t.Error(err)
	}
	h.run(t, common("rollback", "web", "2", "--wait")...)
	b.replicas(t, ns, "web", 3, "helm Apply")
	if _, err := b.AutoscalingV2().HorizontalPodAutoscalers(ns).Get(t.Context(), "web", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("the autoscaler after the rollback: %v", err)
	}

	// Another manager takes the replicas.
	force := true
	if _, err := b.AppsV1().Deployments(ns).Patch(t.Context(), "web", types.ApplyYAMLPatchType, []byte("apiVersion: apps/v1\nkind: Deployment\nspec: {replicas: 5}\n"),
		metav1.PatchOptions{FieldManager: "kubectl", Force: &force}); err != nil {
		t.Fatal(err)
	}
	b.replicas(t, ns, "web", 5, "kubectl Apply")
	h.fails(t, []string{`conflict with "kubectl"`, ".spec.replicas"}, upgrade("--set", "replicaCount=4")...)
	b.replicas(t, ns, "web", 5, "kubectl Apply")
	h.run(t, upgrade("--wait", "--set", "replicaCount=4", "--force-conflicts")...)
	b.replicas(t, ns, "web", 4, "helm Apply")

	h.wants(t, []string{"Phase:          Succeeded"}, common("test", "web")...)
	b.uninstall(t, "web", ns)
}

// uninstall removes a release, which waits for an object that something holds back.
func (b *bed) uninstall(t *testing.T, name, ns string) {
	t.Helper()
	h, objects := b.helm("v4"), b.dynamic.Resource(greetings).Namespace(ns)
	patch := func(finalizers string) {
		t.Helper()
		if _, err := objects.Patch(t.Context(), "hello", types.MergePatchType, []byte(`{"metadata":{"finalizers":`+finalizers+`}}`), metav1.PatchOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	patch(`["example.test/hold"]`)
	done := make(chan error, 1)
	go func() {
		_, err := h.try("uninstall", name, "-n", ns, "--wait", "--timeout", "4m")
		done <- err
	}()
	until(t, func() error {
		g, err := objects.Get(t.Context(), "hello", metav1.GetOptions{})
		if err == nil && g.GetDeletionTimestamp() == nil {
			err = errors.New("the greeting is not deleted yet")
		}
		return err
	})
	select {
	case err := <-done:
		t.Fatalf("the uninstallation did not wait: %v", err)
	default:
	}
	patch(`null`)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if list, err := objects.List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("greetings stayed: %v, %v", list, err)
	}
	if list, err := b.AppsV1().Deployments(ns).List(t.Context(), metav1.ListOptions{}); err != nil || len(list.Items) != 0 {
		t.Errorf("Deployments stayed: %v, %v", list, err)
	}
	if list, err := b.CoreV1().Secrets(ns).List(t.Context(), metav1.ListOptions{FieldSelector: "type=helm.sh/release.v1"}); err != nil || len(list.Items) != 0 {
		t.Errorf("records of the release stayed: %v, %v", list, err)
	}
	if _, err := b.dynamic.Resource(definitions).Get(t.Context(), "greetings.example.test", metav1.GetOptions{}); err != nil {
		t.Errorf("the definition, which Helm never removes: %v", err)
	}
	h.fails(t, []string{"release: not found"}, "history", name, "-n", ns)
}

// fromHelm3: a release of Helm 3 is upgraded by Helm 4, by patches as before and then by server-side apply.
func fromHelm3(t *testing.T, b *bed) {
	const ns = "old"
	h3, h4 := b.helm("v3"), b.helm("v4")
	b.namespace(t, ns)
	upgrade := func(more ...string) []string {
		return append([]string{"upgrade", "old", b.chart, "--set", "fullnameOverride=old", "-n", ns, "--timeout", "4m"}, more...)
	}
	h3.run(t, "install", "old", b.chart, "--set", "fullnameOverride=old", "-n", ns, "--timeout", "4m")
	b.replicas(t, ns, "old", 1, "helm Update")
	b.checkSeen(t, ns, "1", "0")
	h3.run(t, upgrade("--set", "replicaCount=2")...)
	b.replicas(t, ns, "old", 2, "helm Update")
	h3.wants(t, []string{"STATUS: deployed", "REVISION: 2", "UP-TO-DATE"}, "status", "old", "-n", ns, "--show-resources")

	h4.run(t, upgrade("--wait", "--set", "replicaCount=3")...)
	b.replicas(t, ns, "old", 3, "helm Update")
	h4.run(t, upgrade("--wait", "--set", "replicaCount=4", "--server-side=true")...)
	b.replicas(t, ns, "old", 4, "helm Apply")
	b.checkSeen(t, ns, "4", "1")
	for _, m := range b.deployment(t, ns, "old").ManagedFields {
		if m.Manager == "helm" && m.Operation != metav1.ManagedFieldsOperationApply {
			t.Errorf("Helm still owns fields by %s of %q", m.Operation, m.Subresource)
		}
	}
	// A field that the newest chart omits is removed: it had no other owner.
	h4.run(t, upgrade("--wait", "--set", "autoscaling.enabled=true")...)
	b.replicas(t, ns, "old", 1)
	h4.run(t, "rollback", "old", "2", "-n", ns, "--wait", "--timeout", "4m")
	if d := b.deployment(t, ns, "old"); *d.Spec.Replicas != 2 {
		t.Errorf("%d replicas after a rollback to the revision of Helm 3", *d.Spec.Replicas)
	}
	same(t, "history", h4.history(t, "old", ns), []string{"1 superseded", "2 superseded", "3 superseded", "4 superseded", "5 superseded", "6 deployed"})
	b.uninstall(t, "old", ns)
}
