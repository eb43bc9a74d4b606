package admission_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/server/admission"
)

func TestLoadConfigs(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	write("limits.yaml", "limits: []\n")
	const head = "apiVersion: apiserver.config.k8s.io/v1\nkind: AdmissionConfiguration\n"
	configs, err := admission.LoadConfigs(write("good.yaml", head+`plugins:
- name: EventRateLimit
  path: limits.yaml
- name: PodSecurity
  configuration: {kind: PodSecurityConfiguration, defaults: {enforce: baseline}}
- name: EventRateLimit
  configuration: {second: true}
`))
	if err != nil {
		t.Fatal(err)
	}
	if got := string(configs["EventRateLimit"]); got != "limits: []\n" {
		t.Errorf("the part in a file is %q", got)
	}
	if got := string(configs["PodSecurity"]); !strings.Contains(got, "enforce: baseline") {
		t.Errorf("the part inside is %q", got)
	}
	for name, text := range map[string]string{
		"unknown field": head + "plugin: []\n",
		"kind":          "apiVersion: apiserver.config.k8s.io/v1\nkind: Other\n",
		"version":       "apiVersion: v1\nkind: AdmissionConfiguration\n",
		"missing file":  head + "plugins: [{name: A, path: nowhere.yaml}]\n",
		"no YAML":       "{",
	} {
		if got, err := admission.LoadConfigs(write("bad.yaml", text)); err == nil {
			t.Errorf("%s: %v", name, got)
		}
	}
	if _, err := admission.LoadConfigs(filepath.Join(dir, "none.yaml")); err == nil {
		t.Error("a file that is not there was read")
	}
}
