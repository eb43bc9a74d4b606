package convert

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

const oldIngress = `apiVersion: extensions/v1beta1
kind: Ingress
metadata: {name: web}
spec: {backend: {serviceName: web, servicePort: 80}}
`

// TestConvertFiles: files, folders and standard input, lists, documents, both outputs.
func TestConvertFiles(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "deeper"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"a.yaml":        oldIngress + "---\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\n",
		"b.json":        `{"apiVersion":"batch/v1beta1","kind":"CronJobList","items":[{"metadata":{"name":"tick"},"spec":{"schedule":"* * * * *","jobTemplate":{"spec":{"template":{"spec":{}}}}}}]}`,
		"notes.txt":     "no manifest",
		"deeper/c.yaml": "apiVersion: v1\nkind: List\nitems:\n- {apiVersion: v1, kind: Secret, metadata: {name: two}}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct {
		args []string
		in   string
		want []string
		not  string
	}{
		{[]string{"-f", dir}, "", []string{"kind: List", "networking.k8s.io/v1\n", "batch/v1\n", "name: one", "defaultBackend"}, "name: two"},
		{[]string{"-f", dir, "-R"}, "", []string{"name: two"}, "no manifest"},
		{[]string{"-f", "-", "-o", "json"}, oldIngress, []string{`"apiVersion": "networking.k8s.io/v1"`, `"number": 80`}, "List"},
		{[]string{"-f", "-", "--output-version", "networking.k8s.io/v1beta1"}, oldIngress, []string{"networking.k8s.io/v1beta1", "servicePort: 80"}, "defaultBackend"},
	} {
		cmd := Command()
		var out strings.Builder
		cmd.SetArgs(tc.args)
		cmd.SetIn(strings.NewReader(tc.in))
		cmd.SetOut(&out)
		cmd.SetErr(&out)
		if err := cmd.Execute(); err != nil {
			t.Fatal(tc.args, err)
		}
		for _, want := range tc.want {
			if !strings.Contains(out.String(), want) {
				t.Errorf("%q: no %q in %s", tc.args, want, out.String())
			}
		}
		if strings.Contains(out.String(), tc.not) {
			t.Errorf("%q: %q in %s", tc.args, tc.not, out.String())
		}
	}
	for _, tc := range []struct {
		args []string
		want string
	}{
		{nil, "must specify one of -f and -k"},
		{[]string{"-f", filepath.Join(dir, "none.yaml")}, "no such file"},
		{[]string{"-f", filepath.Join(dir, "notes.txt")}, "cannot unmarshal"},
		{[]string{"-f", dir, "-o", "wide"}, "want yaml or json"},
		{[]string{"-f", dir, "--output-version", "a/b/c"}, "--output-version"},
		{[]string{"-f", "-"}, "no objects passed to convert"},
	} {
		cmd := Command()
		cmd.SetArgs(tc.args)
		cmd.SetIn(strings.NewReader(""))
		cmd.SetOut(&strings.Builder{})
		cmd.SetErr(&strings.Builder{})
		if err := cmd.Execute(); err == nil || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%q: %v", tc.args, err)
		}
	}
}

// TestConvertCustom: a definition is asked of the server, and its webhook through the
// server's proxy.
func TestConvertCustom(t *testing.T) {
	answer := func(r *apiextensionsv1.ConversionReview) *apiextensionsv1.ConversionResponse {
		converted := runtime.RawExtension{Raw: []byte(`{"apiVersion":"e.io/v2","kind":"W","metadata":{"name":"w"},"spec":{"by":"webhook"}}`)}
		return &apiextensionsv1.ConversionResponse{UID: r.Request.UID, ConvertedObjects: []runtime.RawExtension{converted}}
	}
	success := true
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/apis/apiextensions.k8s.io/v1/customresourcedefinitions":
			port, path := int32(8443), "/convert"
			d := apiextensionsv1.CustomResourceDefinition{Spec: apiextensionsv1.CustomResourceDefinitionSpec{
				Group: "e.io", Names: apiextensionsv1.CustomResourceDefinitionNames{Kind: "W"},
				Versions: []apiextensionsv1.CustomResourceDefinitionVersion{{Name: "v1"}, {Name: "v2", Storage: true}},
				Conversion: &apiextensionsv1.CustomResourceConversion{Strategy: apiextensionsv1.WebhookConverter, Webhook: &apiextensionsv1.WebhookConversion{
					ClientConfig: &apiextensionsv1.WebhookClientConfig{Service: &apiextensionsv1.ServiceReference{Namespace: "n", Name: "s", Port: &port, Path: &path}},
				}},
			}}
			_ = json.NewEncoder(w).Encode(apiextensionsv1.CustomResourceDefinitionList{Items: []apiextensionsv1.CustomResourceDefinition{d}})
		case "/api/v1/namespaces/n/services/https:s:8443/proxy/convert":
			var review apiextensionsv1.ConversionReview
			if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
				t.Error(err)
				return
			}
			review.Response = answer(&review)
			if review.Response.Result.Status = "Success"; !success {
				review.Response.Result.Status, review.Response.Result.Message = "Failure", "not today"
			}
			_ = json.NewEncoder(w).Encode(review)
		default:
			http.NotFound(w, r)
		}
	}))
	defer server.Close()
	kubeconfig := filepath.Join(t.TempDir(), "config")
	text := "apiVersion: v1\nkind: Config\ncurrent-context: c\ncontexts: [{name: c, context: {cluster: c}}]\nclusters: [{name: c, cluster: {server: \"" + server.URL + "\"}}]\n"
	if err := os.WriteFile(kubeconfig, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	run := func() (string, error) {
		cmd := Command()
		var out strings.Builder
		cmd.SetArgs([]string{"-f", "-", "--kubeconfig", kubeconfig})
		cmd.SetIn(strings.NewReader("apiVersion: e.io/v1\nkind: W\nmetadata: {name: w}\n"))
		cmd.SetOut(&out)
		cmd.SetErr(&strings.Builder{})
		err := cmd.Execute()
		return out.String(), err
	}
	if out, err := run(); err != nil || !strings.Contains(out, "by: webhook") {
		t.Errorf("%s %v", out, err)
	}
	success = false
	if _, err := run(); err == nil || !strings.Contains(err.Error(), "the webhook says: not today") {
		t.Error(err)
	}
}
