package suites

import (
	"bytes"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
)

// cases are files with e2e cases of Kubernetes that need an API server alone, by package; "*" stands for all
// files of a package but etcd_failure.go. Other files of these packages are left out, as they need a kubelet's packages,
// and twice the time to compile.
var cases = map[string]string{
	"apimachinery":    "*",
	"apps":            "cronjob framework util types",
	"auth":            "certificates framework node_authz selfsubjectreviews service_accounts subjectreviews",
	"common/node":     "configmap container lease podtemplates secrets runtimeclass framework",
	"instrumentation": "core_events events",
	"network":         "endpoints endpointslice fixture ingress ingressclass service_cidrs service util apiserver doc",
	"node":            "node_lifecycle framework",
	"scheduling":      "limit_range predicates preemption workload framework events",
	"storage":         "csistoragecapacity csi_node csi_inline storageclass volume_attachment volumeattributesclass constants",
}

// focused are the cases that run, and unfocused those of them that need more: kubelets, a
// kube-controller-manager, images, or minutes.
const (
	focused = "CSR API operations|SelfSubjectReview API|lifecycle of a ServiceAccount|kube-root-ca.crt exist|should update a ServiceAccount|create a serviceAccountToken|SubjectReview API|" +
		"no secret-based service account|NodeAuthorizer|LimitRange by collection|LimitRange with defaults|PriorityClass endpoints|API availability|CSIStorageCapacities API|lifecycle of a csinode|" +
		"CSIVolumeSource in Pod API|lifecycle of a CSIDriver|lifecycle of a StorageClass|lifecycle of a VolumeAttachment|changes to a volumeattachment status|lifecycle of a VolumeAttributesClass|" +
		"ConfigMap lifecycle|create ConfigMap with empty key|lease API|lifecycle of PodTemplates|collection of pod templates|replace a pod template|empty secret key|patch a secret|RuntimeClasses API|" +
		"reject a Pod requesting a non-existent|creating EndpointSlice API|creating Ingress API|creating IngressClass API|ServiceCIDR API|IPAddress API|lifecycle of an Endpoint|secure master service|" +
		"pointing to API Server|service from listing all namespaces|service status lifecycle|collection of services|lifecycle of a node|CronJob API operations|of events|an event|Events API|" +
		"aggregated discovery|ServerSideApply|API chunking should return|CRD|[Cc]ustom ?[Rr]esource|FieldValidation|FlowSchema API|PriorityLevelConfiguration API|dependency circle|" +
		"MutatingAdmissionPolicy|ValidatingAdmissionPolicy|patch a Namespace|namespace status|update to a Namespace|finalizer to a Namespace|all services are removed|OpenAPI V3|request timeout|" +
		"ResourceQuota|server version|Table transformation|Watchers|API Streaming|Discovery should|StorageVersion"
	unfocused = "Slow|consumable|drowned out|watch on custom resource definition objects|[Ww]ebhook|running pods|concurrent watches|Aggregator|CRDs of same group|identity|by-node|session|terminating scopes|with different volume attributes class|type check|Flaky|Aggregated APIServer|OIDC|claim with a storage class|StorageVersionAPI|CustomResourceFieldSelectors"
)

// atLeastCases is a little less than how many cases there are, so that the pattern does not come to match nothing.
const atLeastCases = 160

// TestCasesOfKubernetes: Kubernetes' own e2e cases of 1.36 that need an API server alone pass.
func TestCasesOfKubernetes(t *testing.T) {
	m := module{path: "k8s.io/kubernetes", version: "v1.36.2"}
	binary := m.compileCases(t)
	kubeconfig := serveCases(t)
	report := filepath.Join(t.TempDir(), "report.json")
	cmd := exec.Command(binary, "-test.timeout=20m", "-kubeconfig="+kubeconfig, "-provider=skeleton", "-allowed-not-ready-nodes=-1", "-dump-logs-on-failure=false",
		"-e2e-output-dir="+t.TempDir(), "--ginkgo.no-color", "--ginkgo.timeout=20m", "--ginkgo.json-report="+report, "--ginkgo.focus="+focused, "--ginkgo.skip="+unfocused)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v\n%s", err, tail(out))
	}
	if passed := passedIn(t, report); passed < atLeastCases {
		t.Errorf("%d cases passed, and there were %d", passed, atLeastCases)
	}
}

// passedIn counts the cases that passed by the report of Ginkgo.
func passedIn(t *testing.T, report string) int {
	t.Helper()
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var runs []struct {
		SpecReports []struct{ LeafNodeType, State string }
	}
	if err := json.Unmarshal(text, &runs); err != nil {
		t.Fatal(err)
	}
	passed := 0
	for _, run := range runs {
		for _, spec := range run.SpecReports {
			if spec.LeafNodeType == "It" && spec.State == "passed" {
				passed++
			}
		}
	}
	return passed
}

// casesMain runs them. The suite of Kubernetes itself would wait for nodes first.
const casesMain = `package cases

import (
	"flag"
	"os"
	"testing"

	"github.com/onsi/ginkgo/v2"
	"github.com/onsi/gomega"
	"k8s.io/kubernetes/test/e2e/framework"
	"k8s.io/kubernetes/test/e2e/framework/config"
	"k8s.io/kubernetes/test/e2e/framework/testfiles"
	e2etestingmanifests "k8s.io/kubernetes/test/e2e/testing-manifests"

%s)

func TestMain(m *testing.M) {
	config.CopyFlags(config.Flags, flag.CommandLine)
	framework.RegisterCommonFlags(flag.CommandLine)
	framework.RegisterClusterFlags(flag.CommandLine)
	flag.Parse()
	testfiles.AddFileSource(e2etestingmanifests.GetE2ETestingManifestsFS())
	framework.AfterReadingAllFlags(&framework.TestContext)
	os.Exit(m.Run())
}

func TestCases(t *testing.T) {
	gomega.RegisterFailHandler(framework.Fail)
	suite, reporter := framework.CreateGinkgoConfig()
	ginkgo.RunSpecs(t, "cases", suite, reporter)
}
`

// staged are the lines of Kubernetes' go.mod that point into its repository: those modules are published of their own.
var staged = regexp.MustCompile(`(?m)=> \./staging/src/(.*)$`)

// compileCases compiles the cases in a module that selects what Kubernetes itself does.
func (m module) compileCases(t *testing.T) string {
	out := m.tool(t, t.TempDir(), "mod", "download", "-json", m.path+"@"+m.version)
	var downloaded struct{ Dir string }
	if err := json.Unmarshal(out, &downloaded); err != nil || downloaded.Dir == "" {
		t.Fatalf("download of %s: %v\n%s", m.path, err, out)
	}
	dir := t.TempDir()
	source := filepath.Join(dir, "source")
	if err := os.CopyFS(source, os.DirFS(downloaded.Dir)); err != nil {
		t.Fatal(err)
	}
	var imports strings.Builder
	for name, files := range cases {
		fmt.Fprintf(&imports, "\t_ \"k8s.io/kubernetes/test/e2e/%s\"\n", name)
		found, err := filepath.Glob(filepath.Join(source, "test", "e2e", name, "*.go"))
		if err != nil || len(found) == 0 {
			t.Fatalf("%s: %v, %d files", name, err, len(found))
		}
		for _, path := range found {
			file := strings.TrimSuffix(filepath.Base(path), ".go")
			keep := files == "*" && file != "etcd_failure" || slices.Contains(strings.Fields(files), file)
			if keep {
				continue
			}
			if err := os.Remove(path); err != nil {
				t.Fatal(err)
			}
		}
	}
	mod, err := os.ReadFile(filepath.Join(source, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	text := strings.Replace(string(mod), "module k8s.io/kubernetes", "module cases", 1)
	text = strings.Replace(text, "require (", "require (\n\tk8s.io/kubernetes "+m.version, 1)
	text = strings.Replace(text, "replace (", "replace (\n\tk8s.io/kubernetes => ./source", 1)
	text = staged.ReplaceAllString(text, "=> $1 "+strings.Replace(m.version, "v1.", "v0.", 1))
	sums, err := os.ReadFile(filepath.Join(source, "go.sum"))
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string]string{"go.mod": text, "go.sum": string(sums), "cases_test.go": fmt.Sprintf(casesMain, imports.String())} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	binary := filepath.Join(dir, "cases.test")
	m.tool(t, dir, "test", "-c", "-mod=mod", "-o", binary, ".")
	return binary
}

// serveCases starts a server of the release with what clusters of Kubernetes' own tests have, one node among it, and
// returns its kubeconfig. Its controllers are named, so that they do not wait.
func serveCases(t *testing.T) string {
	port, err := freePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	var logs bytes.Buffer
	cmd := exec.Command(os.Getenv("ROWLOCK_BINARY"), "serve", "--in-memory", "--data-dir", dir, "--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port),
		"--emulated-version=1.36", "--enable-admission-plugins=NodeRestriction", "--feature-gates=GenericWorkload=true", "--runtime-config=scheduling.k8s.io/v1alpha2=true",
		"--controllers=*,namespace,serviceaccount,root-ca-cert-publisher,serviceaccount-token,garbagecollector,resourcequota,csrsigning,csrapproving,clusterrole-aggregation,pv-protection,pvc-protection,podgroup-protection-controller,service-cidr-controller")
	cmd.Stderr = &logs
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Logf("the server's log:\n%s", tail(logs.Bytes()))
		}
	})
	file := func(name string) string { return filepath.Join(dir, name) }
	client := &http.Client{Timeout: patience}
	url := fmt.Sprintf("https://127.0.0.1:%d", port)
	if err := until(func() bool {
		certificate, err := tls.LoadX509KeyPair(file("admin.crt"), file("admin.key"))
		if err != nil {
			return false
		}
		client.Transport = &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true, Certificates: []tls.Certificate{certificate}}}
		return answers(client, url+"/readyz")
	}); err != nil {
		t.Fatal(err)
	}
	for _, write := range []struct{ method, path, contentType, body string }{
		{"POST", "/api/v1/nodes", "application/json", `{"metadata":{"name":"node"}}`},
		{"PATCH", "/api/v1/nodes/node", "application/merge-patch+json", `{"spec":{"taints":null}}`},
		{"PATCH", "/api/v1/nodes/node/status", "application/merge-patch+json", `{"status":{"conditions":[{"type":"Ready","status":"True"}],"allocatable":{"cpu":"4","memory":"8Gi","pods":"110"}}}`},
	} {
		req, err := http.NewRequest(write.method, url+write.path, strings.NewReader(write.body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", write.contentType)
		resp, err := client.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode >= http.StatusMultipleChoices {
			t.Fatalf("%s %s: %d %s, %v", write.method, write.path, resp.StatusCode, answer, err)
		}
	}
	return file("admin.kubeconfig")
}
