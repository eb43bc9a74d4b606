//go:build realworld

package realworld

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/rowlock/rowlock/e2e/harness"
)

// modules lists modules with definitions, and samples of them.
var modules = []string{
	"github.com/argoproj/argo-rollouts@v1.10.0",
	"github.com/argoproj/argo-workflows/v4@v4.0.5",
	"github.com/cert-manager/cert-manager@v1.21.2",
	"github.com/kedacore/keda/v2@v2.21.0",
	"github.com/kyverno/kyverno@v1.19.1",
	"github.com/prometheus-operator/prometheus-operator@v0.85.0",
	"github.com/traefik/traefik/v3@v3.7.13",
	"github.com/vmware-tanzu/velero@v1.18.3",
	"istio.io/api@v1.32.0",
	"sigs.k8s.io/cluster-api@v1.14.2",
	"sigs.k8s.io/external-dns@v0.21.0",
	"sigs.k8s.io/gateway-api@v1.6.3",
	"sigs.k8s.io/karpenter@v1.14.0",
	"sigs.k8s.io/kueue@v0.17.0",
}

// mostSamples bounds the samples of one kind: some modules have thousands of test cases.
const mostSamples = 40

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// object is any object.
type object map[string]any

func (o object) text(path ...string) string {
	var v any = map[string]any(o)
	for _, key := range path {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	s, _ := v.(string)
	return s
}

// kind is a definition that is installed, with its samples.
type kind struct {
	name, group, plural, kind string
	namespaced                bool
	served                    []string
	samples                   []object
}

func (k *kind) path(version string) string {
	if k.namespaced {
		return "/apis/" + k.group + "/" + version + "/namespaces/default/" + k.plural
	}
	return "/apis/" + k.group + "/" + version + "/" + k.plural
}

// world is a server, and the downloads for it.
type world struct {
	*testing.T
	server  *harness.Server
	client  *http.Client
	kubectl *harness.Kubectl
	kinds   map[string]*kind // by group and kind
	figures struct{ definitions, refusedDefinitions, versions, samples, writes, accepted int }
}

// TestRealWorld: a dry run of a sample has the same answer as the write, in every served
// version; nothing differs afterwards, and tables, descriptions and `kubectl explain` are there for every kind.
func TestRealWorld(t *testing.T) {
	s := harness.StartT(t, harness.Options{})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, server: s, client: client, kubectl: s.Kubectl(t), kinds: map[string]*kind{}}
	var all []object
	for _, module := range modules {
		found := documents(t, fetch(t, module))
		t.Logf("%s: %d documents", module, len(found))
		all = append(all, found...)
	}
	for _, o := range all {
		if o.text("kind") == "CustomResourceDefinition" && o.text("apiVersion") == "apiextensions.k8s.io/v1" {
			w.install(o)
		}
	}
	for _, o := range all {
		group, _, _ := strings.Cut(o.text("apiVersion"), "/")
		if k := w.kinds[group+"/"+o.text("kind")]; k != nil && len(k.samples) < mostSamples {
			k.samples = append(k.samples, o)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(w.kinds)) {
		w.try(w.kinds[name])
	}
	f := w.figures
	t.Logf("%d modules, %d definitions (%d refused) with %d served versions, %d samples, %d writes compared with their dry runs, %d of them accepted",
		len(modules), f.definitions, f.refusedDefinitions, f.versions, f.samples, f.writes, f.accepted)
	if f.definitions < 100 || f.samples < 100 || f.accepted < 100 {
		t.Error("that is too little to say anything")
	}
}

// fetch has a module in the module cache, and is its folder.
func fetch(t *testing.T, module string) string {
	t.Helper()
	cmd := exec.Command("go", "mod", "download", "-json", module)
	cmd.Dir = t.TempDir() // in no module
	out, err := cmd.Output()
	var got struct{ Dir, Error string }
	if jerr := json.Unmarshal(out, &got); err != nil || jerr != nil || got.Dir == "" {
		t.Fatalf("%s: %v %v %s", module, err, jerr, got.Error)
	}
	return got.Dir
}

var separator = regexp.MustCompile(`(?m)^---.*$`)

// documents returns the objects in the YAML files of a folder, in the order of their paths. Templates are none.
func documents(t *testing.T, dir string) (all []object) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) != ".yaml" && filepath.Ext(path) != ".yml" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, doc := range separator.Split(string(data), -1) {
			var o object
			if len(doc) > 1<<20 || strings.Contains(doc, "{{-") || yaml.Unmarshal([]byte(doc), &o) != nil || o.text("apiVersion") == "" || o.text("kind") == "" {
				continue
			}
			all = append(all, o)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// do sends a request, and is its answer.
func (w *world) do(method, path, contentType string, body any, accept string) (int, []byte) {
	w.Helper()
	data, err := json.Marshal(body)
	if err != nil {
		w.Fatal(err)
	}
	r, err := http.NewRequestWithContext(w.Context(), method, w.server.URL+path, bytes.NewReader(data))
	if err != nil {
		w.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	r.Header.Set("Content-Type", contentType)
	r.Header.Set("Accept", accept)
	answer, err := w.client.Do(r)
	if err != nil {
		w.Fatal(err)
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		w.Fatal(err)
	}
	return answer.StatusCode, text
}

const (
	asJSON  = "application/json"
	asApply = "application/apply-patch+yaml"
	asTable = "application/json;as=Table;g=meta.k8s.io;v=v1"
)

// install makes a definition, once; its webhook for conversions is elsewhere, so it has none.
func (w *world) install(o object) {
	w.Helper()
	spec, _ := o["spec"].(map[string]any)
	name := o.text("metadata", "name")
	k := &kind{name: name, group: o.text("spec", "group"), plural: o.text("spec", "names", "plural"), kind: o.text("spec", "names", "kind"), namespaced: o.text("spec", "scope") == "Namespaced"}
	if spec == nil || k.group == "" /* a patch of one */ || w.kinds[k.group+"/"+k.kind] != nil {
		return
	}
	delete(spec, "conversion")
	code, text := w.do("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", asJSON, o, asJSON)
	if code != http.StatusCreated {
		w.figures.refusedDefinitions++
		w.Logf("definition %s: %d %.300s", name, code, text)
		return
	}
	versions, _ := spec["versions"].([]any)
	for _, v := range versions {
		v, _ := v.(map[string]any)
		if served, _ := v["served"].(bool); served {
			k.served = append(k.served, object(v).text("name"))
		}
	}
	if len(k.served) == 0 {
		return
	}
	for deadline := time.Now().Add(2 * time.Minute); ; time.Sleep(5 * time.Millisecond) {
		if code, text = w.do("GET", k.path(k.served[0]), asJSON, nil, asJSON); code == http.StatusOK {
			break
		}
		if time.Now().After(deadline) {
			w.Fatalf("%s is not served: %d %s", name, code, text)
		}
	}
	w.kinds[k.group+"/"+k.kind] = k
	w.figures.definitions++
	w.figures.versions += len(k.served)
}

var incidental = regexp.MustCompile(`,"resourceVersion":"\d*"|"resourceVersion":"\d*",?|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{4}-\d\d-\d\dT[0-9:.]+Z`)

// same compares a write with its dry run, and reports whether it was accepted.
func (w *world) same(method, path, contentType string, body any) bool {
	w.Helper()
	question := "?"
	if strings.Contains(path, "?") {
		question = "&"
	}
	dryCode, dry := w.do(method, path+question+"dryRun=All", contentType, body, asJSON)
	code, text := w.do(method, path, contentType, body, asJSON)
	w.figures.writes++
	if a, b := incidental.ReplaceAllString(string(dry), ""), incidental.ReplaceAllString(string(text), ""); dryCode != code || code < 300 && a != b { // errors of an object come in no fixed order
		w.Errorf("%s %s: the dry run is answered\n%d %.2000s\nand the write\n%d %.2000s", method, path, dryCode, a, code, b)
	}
	if code < 300 {
		w.figures.accepted++
	}
	return code < 300
}

// try writes the samples of a kind in each version, and checks its tables, OpenAPI schema and explain output.
func (w *world) try(k *kind) {
	w.Helper()
	for _, version := range k.served {
		var there []object
		written := 0
		for i, sample := range k.samples {
			metadata, _ := sample["metadata"].(map[string]any)
			name := fmt.Sprintf("sample-%d", i)
			o := object{}
			for key, value := range sample {
				o[key] = value
			}
			o["apiVersion"], o["metadata"] = k.group+"/"+version, map[string]any{"name": name, "labels": metadata["labels"], "annotations": metadata["annotations"]}
			w.figures.samples++
			if !w.same("POST", k.path(version), asJSON, o) {
				continue
			}
			written++
			at := k.path(version) + "/" + name
			if w.same("PATCH", at+"?fieldManager=again&force=true", asApply, o) { // which may not have unknown fields
				there = append(there, o)
			}
			w.same("PATCH", at, "application/merge-patch+json", object{"metadata": object{"annotations": object{"changed": "yes"}}})
		}
		if code, text := w.do("GET", k.path(version), asJSON, nil, asTable); code != http.StatusOK || bytes.Count(text, []byte(`"cells":`)) != written {
			w.Errorf("%s %s as a table: %d, of %d objects %.500s", k.name, version, code, written, text)
		}
		w.unchanged(k, version, there)
		for i := range k.samples {
			w.same("DELETE", fmt.Sprintf("%s/sample-%d", k.path(version), i), asJSON, nil)
		}
		if out, err := w.kubectl.Try("", "explain", k.plural, "--api-version="+k.group+"/"+version); err != nil || !strings.Contains(out, k.kind) {
			w.Errorf("explain %s %s: %v %s", k.name, version, err, out)
		}
		code, text := w.do("GET", "/openapi/v3/apis/"+k.group+"/"+version, asJSON, nil, asJSON)
		if code != http.StatusOK || !bytes.Contains(text, []byte(`"kind":"`+k.kind+`"`)) {
			w.Errorf("OpenAPI of %s/%s: %d, without %s", k.group, version, code, k.kind)
		}
	}
}

// unchanged checks that kubectl diff shows no difference between the stored samples and the applied ones.
func (w *world) unchanged(k *kind, version string, there []object) {
	w.Helper()
	if len(there) == 0 {
		return
	}
	data, err := json.Marshal(object{"apiVersion": "v1", "kind": "List", "items": there})
	if err != nil {
		w.Fatal(err)
	}
	if out, err := w.kubectl.Try(string(data), "diff", "--server-side", "--force-conflicts", "--field-manager=again", "-n", "default", "-f", "-"); err != nil {
		w.Errorf("kubectl diff of %s %s: %v %.2000s", k.name, version, err, out)
	}
}
