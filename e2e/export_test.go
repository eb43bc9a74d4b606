package e2e

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/sqlstore/foreign/kine/mariadbtest"
)

// exported is the JSON answer of an export.
type exported struct {
	Target                                            string
	DryRun                                            bool
	Revision, Objects, Decrypted, Claims, Undecodable int64
	Problems                                          []struct{ Key, Reason string }
	Resources                                         []struct {
		Resource string
		Objects  int64
	}
}

// export runs one that must succeed.
func export(t *testing.T, args ...string) (a exported) {
	t.Helper()
	out, errOut, code := rowlock(t, append([]string{"export", "--output=json"}, args...)...)
	if code != 0 {
		t.Fatalf("export %v: %d\n%s%s", args, code, out, errOut)
	}
	if err := json.Unmarshal([]byte(out), &a); err != nil {
		t.Fatalf("export %v: %v in\n%s", args, err, out)
	}
	if !a.DryRun && !strings.Contains(errOut, "nothing in it is encrypted") {
		t.Errorf("export %v does not warn: %q", args, errOut)
	}
	return a
}

// rowsOf returns the objects of a store by key, with their revisions, but for those that each
// server keeps for itself.
func rowsOf(t *testing.T, url, keys string) map[string]any {
	t.Helper()
	file := filepath.Join(t.TempDir(), "rows.db")
	args := []string{"export", "--sql", "--store", url}
	if keys != "" {
		args = append(args, "--encryption-provider-config", keys)
	}
	out, errOut, code := rowlock(t, args...)
	if code != 0 {
		t.Fatal(code, errOut)
	}
	db, err := sql.Open("sqlite", "file:"+file)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(out); err != nil {
		t.Fatal(err)
	}
	rows, err := db.Query("SELECT resource, namespace, name, revision, value FROM objects WHERE resource NOT LIKE '~%'")
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	all := map[string]any{}
	for rows.Next() {
		var resource, namespace, name, value string
		var revision int64
		if err := rows.Scan(&resource, &namespace, &name, &revision, &value); err != nil {
			t.Fatal(err)
		}
		if name == "kubernetes" && strings.HasPrefix(resource, "endpoint") || strings.HasPrefix(name, "apiserver-") {
			continue
		}
		var object any
		if err := json.Unmarshal([]byte(value), &object); err != nil {
			t.Fatal(err)
		}
		all[fmt.Sprintf("%s %s/%s", resource, namespace, name)] = object
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// ofManyKinds are objects whose stored forms differ: Protobuf, JSON, custom, encrypted,
// with a lease, with an address, with characters that SQL and JSON escape.
const ofManyKinds = `
{"apiVersion": "v1", "kind": "List", "items": [
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}},
{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop-a"}},
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "odd", "namespace": "shop"}, "data": {"text": "it's \\ \"ä\" \u0001\n"}, "binaryData": {"b": "AP+A"}},
{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "same", "namespace": "shop-a"}},
{"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s", "namespace": "shop"}, "stringData": {"password": "hunter2"}},
{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"type": "NodePort", "selector": {"a": "b"}, "ports": [{"port": 80}]}},
{"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"}, "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "0.1"}}}]}}}},
{"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler", "metadata": {"name": "h", "namespace": "shop"}, "spec": {"maxReplicas": 3, "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}}},
{"apiVersion": "v1", "kind": "Event", "metadata": {"name": "e", "namespace": "shop"}, "involvedObject": {"kind": "Pod", "name": "p", "namespace": "shop"}, "reason": "Tried"},
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "View", "namespace": "shop"}, "rules": []},
{"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": {"name": "view", "namespace": "shop"}, "rules": []},
{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": "widgets.example.com"}, "spec": {"group": "example.com", "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"}, "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": true}}}]}}
]}`

const aWidget = `{"apiVersion": "example.com/v1", "kind": "Widget", "metadata": {"name": "w", "namespace": "shop"}, "spec": {"n": 9007199254740993, "f": 1.50}}`

// TestExportRoundTrip: out of each database, into each form of a foreign store, and back
// into the other database, everything is what it was.
func TestExportRoundTrip(t *testing.T) {
	t.Parallel()
	needs.MariaDB(t)
	pg := sharedPostgres(t)
	maria, err := mariadbtest.Start(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := maria.Stop(); err != nil {
			t.Error(err)
		}
	})
	for _, from := range []string{"sqlite", "postgres"} {
		t.Run(from, func(t *testing.T) {
			t.Parallel()
			url, keys := filled(t, from, createDB(t, pg, "from_"+from))
			want := rowsOf(t, url, keys)
			flags := []string{"--store", url}
			if keys != "" {
				flags = append(flags, "--encryption-provider-config", keys)
				wantSealedExport(t, url)
			}
			db, mariaURL, err := maria.Create(t.Context(), "from_"+from)
			if err != nil {
				t.Fatal(err)
			}
			defer db.Close()
			dir := t.TempDir()
			for i, form := range []struct{ kind, target, source string }{
				{"etcd-snapshot", filepath.Join(dir, "s.db"), "etcd-snapshot:" + filepath.Join(dir, "s.db")},
				{"kine", "sqlite:" + filepath.Join(dir, "k.db"), "kine+sqlite:" + filepath.Join(dir, "k.db")},
				{"kine", mariaURL, "kine+" + mariaURL},
			} {
				args := append([]string{form.kind, form.target}, flags...)
				dry := export(t, append(args, "--dry-run")...)
				a := export(t, args...)
				if dry.Objects != a.Objects || a.Objects < int64(len(want)) || a.Undecodable > 0 || a.Claims == 0 || (keys != "") != (a.Decrypted > 0) || !dry.DryRun {
					t.Errorf("%+v\n%+v", dry, a)
				}
				into := "sqlite:" + filepath.Join(dir, fmt.Sprint("into", i, ".db"))
				if from == "sqlite" {
					into = createDB(t, pg, fmt.Sprint("into", i))
				}
				if out, errOut, code := rowlock(t, "import", form.source, "--store", into, "--events", "--data-dir", filepath.Join(dir, fmt.Sprint("data", i))); code != 0 {
					t.Fatal(form.source, code, out, errOut)
				}
				if diff := cmp.Diff(want, rowsOf(t, into, "")); diff != "" {
					t.Errorf("%s:\n%s", form.source, diff)
				}
				wantClean(t, into)
			}
		})
	}
}

// filled returns a database that a server filled, and the key file of its encrypted values; "" for none.
func filled(t *testing.T, kind, postgres string) (url, keys string) {
	o := harness.Options{}
	if kind == "postgres" {
		o.Store = postgres
	} else {
		keys = filepath.Join(t.TempDir(), "keys.yaml")
		text := "apiVersion: apiserver.config.k8s.io/v1\nkind: EncryptionConfiguration\nresources: [{resources: [secrets, configmaps], providers: [{aesgcm: {keys: [{name: k, secret: AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=}]}}]}]\n"
		if err := os.WriteFile(keys, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		o.Args = []string{"--encryption-provider-config", keys}
	}
	s := harness.StartT(t, o)
	k := s.Kubectl(t)
	if out, err := k.Try(ofManyKinds, "create", "-f", "-"); err != nil {
		t.Fatal(err, out)
	}
	eventually(t, "the definition is served", func() bool {
		_, err := k.Try(aWidget, "create", "-f", "-")
		return err == nil
	})
	k.Run("scale", "-n", "shop", "deployment/web", "--replicas=2")
	k.Run("create", "configmap", "gone")
	k.Run("delete", "configmap", "gone")
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if url = postgres; kind != "postgres" {
		url = "sqlite:" + filepath.Join(s.DataDir, "rowlock.db")
	}
	return url, keys
}

// wantSealedExport checks that an export without the keys writes nothing, and that its error names the missing keys.
func wantSealedExport(t *testing.T, url string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "s.db")
	out, errOut, code := rowlock(t, "export", "etcd-snapshot", file, "--store", url)
	if code != 1 || !strings.Contains(errOut, "--encryption-provider-config") || strings.Contains(out+errOut, "hunter2") {
		t.Errorf("without keys: %d\n%s%s", code, out, errOut)
	}
	if left, err := os.ReadDir(filepath.Dir(file)); err != nil || len(left) > 0 {
		t.Errorf("left are %v, %v", left, err)
	}
}

// TestExportRefuses invalid exports, and names the problem.
func TestExportRefuses(t *testing.T) {
	t.Parallel()
	url, keys := filled(t, "sqlite", "")
	path, _ := strings.CutPrefix(url, "sqlite:")
	for _, c := range []struct {
		contains string
		args     []string
	}{
		{"arg(s)", []string{"etcd-snapshot"}},
		{"exists", []string{"kine", "sqlite:" + path}},
		{"want sqlite:FILE", []string{"kine", "nats://u:hunter2@h"}},
		{"--revision -1", []string{"etcd-snapshot", "f", "--revision=-1"}},
		{"future", []string{"etcd-snapshot", "f", "--revision=99999"}},
		{"not a directory", []string{"etcd-snapshot", path + "/f"}},
		{"either --sql or", nil},
		{"--output", []string{"etcd-snapshot", "f", "--output=xml"}},
		{"kine PostgreSQL database", []string{"kine", "postgres://u:hunter2@127.0.0.1:1/db"}},
	} {
		args := append(append([]string{"export"}, c.args...), "--store", url, "--encryption-provider-config", keys)
		_, errOut, code := rowlock(t, args...)
		if code != 1 || strings.Count(errOut, "\n") != 1 || !strings.Contains(errOut, c.contains) || strings.Contains(errOut, "hunter2") {
			t.Errorf("export %v: %d, %q, want one line with %q", c.args, code, errOut, c.contains)
		}
	}
}
