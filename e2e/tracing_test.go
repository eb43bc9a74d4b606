package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/server/tracing/tracingtest"
)

// The binary sends a collector what became of a request, at the latest as it ends.
func TestTracing(t *testing.T) {
	t.Parallel()
	collector := tracingtest.Start(t)
	path := filepath.Join(t.TempDir(), "tracing.yaml")
	text := fmt.Sprintf("apiVersion: apiserver.config.k8s.io/v1beta1\nkind: TracingConfiguration\nendpoint: %s\nsamplingRatePerMillion: 1000000\n", collector.Address)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	s := harness.StartT(t, harness.Options{Args: []string{"--tracing-config-file=" + path}})
	client, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.URL+"/api/v1/namespaces/default?pretty=true", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Audit-Id", "traced")
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatal(resp.Status)
	}
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	parents := map[string]string{}
	for _, span := range collector.Spans("audit-id", "traced") {
		parents[span.Name] = span.Parent
		if target := span.Texts["http.target"]; span.Parent == "" && target != "/api/v1/namespaces/default" {
			t.Errorf("the target is %q", target)
		}
	}
	// A namespace is in itself, as far as a stock server is concerned.
	const request = "GET /api/v1/namespaces/{:namespace}/namespaces/{:name}"
	for name, parent := range map[string]string{request: "", "authentication": request, "authorization": request} {
		if got, ok := parents[name]; !ok || got != parent {
			t.Errorf("spans and those above them: %q; %q is to be below %q", parents, name, parent)
		}
	}
}
