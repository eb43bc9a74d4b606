package encryption_test

import (
	"encoding/base64"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/sqlstore/encryption"
)

const (
	top  = "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources:\n"
	none = "identity: {}"
)

// secret is of so many bytes, all alike.
func secret(size int, of byte) string {
	return base64.StdEncoding.EncodeToString([]byte(strings.Repeat(string(of), size)))
}

// with returns a provider with one key.
func with(kind, name, secret string) string {
	return fmt.Sprintf("%s: {keys: [{name: %q, secret: %q}]}", kind, name, secret)
}

// rule returns an entry of a file.
func rule(resources string, providers ...string) string {
	return fmt.Sprintf("- resources: [%s]\n  providers: [{%s}]\n", resources, strings.Join(providers, "}, {"))
}

func write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// opened returns the set of a file.
func opened(t testing.TB, text string, change func(*encryption.Config)) (*encryption.Set, error) {
	t.Helper()
	cfg := encryption.Config{Path: filepath.Join(t.TempDir(), "config.yaml"), ServerHash: "sha256:server"}
	if change != nil {
		change(&cfg)
	}
	write(t, cfg.Path, text)
	s, err := encryption.Open(t.Context(), cfg)
	if err == nil {
		t.Cleanup(func() {
			if err := s.Close(); err != nil {
				t.Error(err)
			}
		})
	}
	return s, err
}

func set(t testing.TB, text string) *encryption.Set {
	t.Helper()
	s, err := opened(t, text, nil)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestFile: each rule of the file, and its errors.
func TestFile(t *testing.T) {
	gcm := with("aesgcm", "a", secret(16, 'x'))
	kms2 := func(more string) string {
		return "kms: {apiVersion: v2, name: p, endpoint: 'unix:///nowhere'" + more + "}"
	}
	kms1 := func(more string) string { return "kms: {name: p, endpoint: 'unix:///nowhere'" + more + "}" }
	const overlap = "using overlapping resources such as 'secrets' and '*.' in the same resource list is not allowed as they will be masked"
	const twice = "the same resource cannot be specified multiple times"
	for _, c := range []struct{ name, text, want string }{
		{"all well", top + rule("secrets, configmaps, pandas.awesome.bears.example", gcm, with("aescbc", "a", secret(24, 'x')), with("secretbox", "a", secret(32, 'x')), none), ""},
		{"old name", strings.NewReplacer("apiserver.config.k8s.io/", "", "EncryptionConfiguration", "EncryptionConfig").Replace(top) + rule("secrets", none), ""},
		{"json", `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"EncryptionConfiguration","resources":[{"resources":["secrets"],"providers":[{"identity":{}}]}]}`, ""},
		{"empty", "", "error while parsing file: error while loading file: encryption provider configuration file"},
		{"no yaml", "{", "error decoding encryption provider configuration file"},
		{"no kind", "kinds: EncryptionConfiguration\n", "Object 'Kind' is missing"},
		{"other kind", strings.Replace(top, "Configuration", "Configurations", 1) + rule("secrets", none), `no kind "EncryptionConfigurations" is registered for version "apiserver.config.k8s.io/v1"`},
		{"other version", strings.Replace(top, "/v1", "/v2", 1) + rule("secrets", none), `is registered for version "apiserver.config.k8s.io/v2"`},
		{"unknown field", top + rule("secrets", kms2(", pandas: best")), `strict decoding error: unknown field "resources[0].providers[0].kms.pandas"`},
		{"said twice", top + rule("secrets", none) + "kind: EncryptionConfiguration\n", `strict decoding error: yaml: unmarshal errors:`},
		{"case", top + rule("secrets", "AESGCM: {}"), `unknown field "resources[0].providers[0].AESGCM"`},

		{"no resources", top, "resources: Required value: at least one resources is required"},
		{"no names", top + rule("", none), "resources[0].resources: Required value: at least one resources[0].resources is required"},
		{"no providers", top + "- resources: [secrets]\n", "resources[0].providers: Required value: at least one resources[0].providers is required"},
		{"capital", top + rule("Secrets", none), `resources[0].resources[0]: Invalid value: "Secrets": resource name should not contain capital letters`},
		{"star", top + rule("'*'", none), `Invalid value: "*": use '*.' to encrypt all the resources from core API group or *.* to encrypt all resources`},
		{"no API", top + rule("serviceipallocations", none), "resources which do not have REST API/s cannot be encrypted"},
		{"no API either", top + rule("servicenodeportallocations, apiserveripinfo", none), "resources[0].resources[1]: Invalid value: \"apiserveripinfo\": resources which do not have REST API/s cannot be encrypted"},
		{"events", top + rule("events.events.k8s.io", none), "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. Use 'events' instead in the config file"},
		{"all events", top + rule("'*.events.k8s.io'", none), "Use 'events' instead"},
		{"extensions", top + rule("ingresses.extensions", none), "'extensions' group has been removed and cannot be used for encryption"},
		{"across groups", top + rule("'secrets.*'", none), `Invalid value: "secrets.*": encrypting the same resource across groups is not supported`},
		{"twice", top + rule("secrets, secrets", none), `resources[0].resources: Invalid value: ["secrets","secrets"]: ` + twice},
		{"twice by wildcard", top + rule("'*.apps', '*.apps'", none), overlap},
		{"overlap", top + rule("secrets, '*.'", none), `Invalid value: ["secrets","*."]: ` + overlap},
		{"overlap in a group", top + rule("deployments.apps, '*.apps'", none), overlap},
		{"overlap with all", top + rule("'*.*', secrets", none), overlap},
		{"no overlap", top + rule("deployments.apps, '*.batch', '*.'", none), ""},
		{"masked", top + rule("'*.'", none) + rule("secrets", none), `error while building transformers: resource "secrets" is masked by earlier rule "*."`},
		{"masked in a group", top + rule("'*.apps'", none) + rule("deployments.apps", none), `resource "deployments.apps" is masked by earlier rule "*.apps"`},
		{"masked by all", top + rule("'*.*'", none) + rule("deployments.apps", none), `resource "deployments.apps" is masked by earlier rule "*.*"`},
		{"masked by itself", top + rule("'*.apps'", none) + rule("'*.apps'", none), `resource "*.apps" is masked by earlier rule "*.apps"`},
		{"not masked", top + rule("events", none) + rule("secrets", gcm) + rule("secrets", none) + rule("'*.'", none) + rule("'*.*'", none), ""},

		{"no provider", top + "- resources: [secrets]\n  providers: [{}]\n", "resources[0].providers[0]: Invalid value: \"\": provider does not contain any of the expected providers: KMS, AESGCM, AESCBC, Secretbox, Identity"},
		{"two providers", top + rule("secrets", gcm+", "+none), "resources[0].providers[0]: Invalid value: \"aesgcm, identity\": more than one provider specified in a single element, should split into different list elements"},
		{"no keys", top + rule("secrets", "aesgcm: {keys: []}"), "resources[0].providers[0].aesgcm.keys: Required value: at least one keys is required"},
		{"no key name", top + rule("secrets", with("aescbc", "", secret(16, 'x'))), "resources[0].providers[0].aescbc.keys[0].name: Required value: name is a mandatory field for a key"},
		{"no secret", top + rule("secrets", with("secretbox", "a", "")), "resources[0].providers[0].secretbox.keys[0].secret: Required value: secret is a mandatory field for a key"},
		{"no base64", top + rule("secrets", with("secretbox", "a", "YmFkIA=")), `resources[0].providers[0].secretbox.keys[0].secret: Invalid value: "REDACTED": secrets must be base64 encoded`},
		{"length", top + rule("secrets", with("aesgcm", "a", secret(33, 'x'))), `Invalid value: "REDACTED": secret is not of the expected length, got 33, expected one of [16 24 32]`},
		{"length of cbc", top + rule("secrets", with("aescbc", "a", secret(15, 'x'))), `got 15, expected one of [16 24 32]`},
		{"length of box", top + rule("secrets", with("secretbox", "a", secret(16, 'x'))), `got 16, expected one of [32]`},
		{"long name", top + rule("secrets", with("aesgcm", strings.Repeat("n", 1025), secret(16, 'x'))), "the name of a key is 1025 bytes long"},

		{"kms", top + rule("secrets", kms2(", timeout: 10ms"), none), ""},
		{"kms of no version", top + rule("secrets", kms1(", apiVersion: v3")), `resources[0].providers[0].kms.apiVersion: Invalid value: "v3": unsupported apiVersion apiVersion for KMS provider, only v1 and v2 are supported`},
		{"kms v1", top + rule("secrets", kms1("")), "error while building transformers: KMSv1 is deprecated and will only receive security updates going forward. Use KMSv2 instead.  Set --feature-gates=KMSv1=true to use the deprecated KMSv1 feature."},
		{"kms without a name", top + rule("secrets", strings.Replace(kms2(""), "name: p, ", "", 1)), "resources[0].providers[0].kms.name: Required value: name is a mandatory field for a provider"},
		{"kms name", top + rule("secrets", strings.Replace(kms2(""), "name: p", "name: 'p:q'", 1)), "invalid KMS provider name p:q, must not contain ':'"},
		{"kms twice", top + rule("secrets", kms2(", timeout: 10ms"), kms2(", timeout: 10ms")), `resources[0].providers[1].kms.name: Invalid value: "p": duplicate KMS provider name p, names must be unique`},
		{"kms twice in the file", top + rule("secrets", kms2("")) + rule("configmaps", kms2("")), `resources[1].providers[0].kms.name: Invalid value: "p": duplicate KMS provider name p`},
		{"kms timeout", top + rule("secrets", kms2(", timeout: 0s")), `resources[0].providers[0].kms.timeout: Invalid value: "0s": timeout should be a positive value`},
		{"kms timeout below", top + rule("secrets", kms2(", timeout: -1s")), "timeout should be a positive value"},
		{"kms cachesize in v2", top + rule("secrets", kms2(", cachesize: 5")), "resources[0].providers[0].kms.cachesize: Invalid value: 5: cachesize is not supported in v2"},
		{"kms cachesize in v1", top + rule("secrets", kms1(", cachesize: 0")), "cachesize should be a positive value, or negative to disable"},
		{"kms without an endpoint", top + rule("secrets", "kms: {apiVersion: v2, name: p}"), `resources[0].providers[0].kms.endpoint: Invalid value: "": endpoint is a mandatory field for a kms`},
		{"kms elsewhere", top + rule("secrets", "kms: {apiVersion: v2, name: p, endpoint: 'tcp://a'}"), `unsupported scheme "tcp" for KMS provider, only unix is supported`},
		{"kms nowhere", top + rule("secrets", "kms: {apiVersion: v2, name: p, endpoint: 'unix:///a%zz'}"), "invalid endpoint for kms provider, error:"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := opened(t, c.text, nil)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Fatalf("%v\nwant %s", err, c.want)
			}
		})
	}
}

// TestFileWithReload: plugins of version 1 need names of their own, too.
func TestFileWithReload(t *testing.T) {
	text := top + rule("secrets", "kms: {name: p, endpoint: 'unix:///nowhere', timeout: 10ms}") + rule("configmaps", "kms: {name: p, endpoint: 'unix:///nowhere', timeout: 10ms}")
	for reload, want := range map[bool]string{false: "", true: "duplicate KMS provider name p"} {
		_, err := opened(t, text, func(c *encryption.Config) { c.Reload, c.KMSv1 = reload, true })
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("reload %v: %v", reload, err)
		}
	}
}

// TestFileIsNotShown: no error holds a secret, whatever is wrong.
func TestFileIsNotShown(t *testing.T) {
	hidden := "c2VjcmV0c2VjcmV0"
	for _, text := range []string{
		top + rule("secrets", with("aesgcm", "a", hidden)), top + rule("secrets", with("aesgcm", "a", hidden+"?")),
		top + rule("secrets", with("aesgcm", "", secret(16, 'x'))+", "+with("aescbc", "a", hidden)), top + rule("secrets", "aesgcm: {keys: "+hidden+"}"),
		top + rule("secrets", "aesgcm: "+hidden), top + rule("secrets", "aesgcm: {keys: [{name: a, secret: ["+hidden+"]}]}"), top + hidden, hidden,
		top + rule("secrets", "aesgcm: {keys: [{name: [a], secret: "+hidden+"}]}"), top + rule("secrets", with("aesgcm", "a", hidden)) + "- : " + hidden,
		top + rule("secrets", "aesgcm: {keys: [{name: a, secret: "+hidden+", secret: "+hidden+"}]}"),
	} {
		if _, err := opened(t, text, nil); err == nil || strings.Contains(err.Error(), hidden) || strings.Contains(err.Error(), "secretsecret") {
			t.Errorf("%s: %v", text, err)
		}
	}
}

// TestSlipsAreNotShown: errors do not contain a secret that was written in place of a field's name or as other
// YAML, but still describe the mistake.
func TestSlipsAreNotShown(t *testing.T) {
	hidden := secret(16, 'x')
	for text, want := range map[string]string{
		"aesgcm: {keys: [{name: a, secret:" + hidden + "}]}":                                        `unknown field "resources[0].providers[0].aesgcm.keys[0].secret:REDACTED"`,
		"aesgcm: {keys: [{name: a, " + hidden + "}]}":                                               `keys[0].REDACTED`,
		"aesgcm: {keys: [{name: a, secret: !!int " + hidden + "}]}":                                 "as a !!int",
		"aesgcm: {keys: [{name: a, secret: " + hidden + ", " + hidden + ": 1, " + hidden + ": 2}]}": "REDACTED",
	} {
		if _, err := opened(t, top+rule("secrets", text), nil); err == nil || strings.Contains(err.Error(), hidden[:10]) || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	if _, err := opened(t, "kind: EncryptionConfigurations\napiVersion: v9", nil); err == nil || !strings.Contains(err.Error(), "EncryptionConfiguration") {
		t.Errorf("another kind: %v", err)
	}
}

// FuzzFile: whatever a file contains, it is refused or seals and opens.
func FuzzFile(f *testing.F) {
	f.Add(top + rule("secrets", with("aesgcm", "a", secret(16, 'x')), none))
	f.Add(top + rule("'*.*'", with("secretbox", "a", secret(32, 'x')), with("aescbc", "b", secret(24, 'x'))))
	f.Add(top + rule("secrets, '*.apps'", none) + rule("'*.'", with("aescbc", "a:%", secret(24, 'x'))))
	path := filepath.Join(f.TempDir(), "config")
	f.Fuzz(func(t *testing.T, text string) {
		if strings.Contains(text, "kms") {
			return // would connect
		}
		write(t, path, text)
		s, err := encryption.Open(t.Context(), encryption.Config{Path: path})
		if err != nil {
			return
		}
		defer func() { _ = s.Close() }()
		stored, err := s.Seal(t.Context(), row, []byte(plain))
		if err != nil {
			t.Fatal(err)
		}
		if got, stale, err := s.Open(t.Context(), row, stored); err != nil || stale || string(got) != plain {
			t.Fatal(got, stale, err)
		}
	})
}
