package e2e

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// era is a database of an earlier build: the URL, and how to open it by SQL.
type era struct{ url, driver, source string }

func (e era) exec(t *testing.T, statement string) {
	t.Helper()
	db, err := sql.Open(e.driver, e.source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(statement); err != nil {
		t.Fatal(err)
	}
}

// openEra restores a database of an earlier build.
func openEra(t *testing.T, file string) era {
	t.Helper()
	content := storetest.EarlierBuildFile(t, "testdata/eras/"+file)
	if strings.HasSuffix(file, ".db.gz") {
		path := filepath.Join(t.TempDir(), "rowlock.db")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return era{"sqlite:" + path, "sqlite", path}
	}
	url := createDB(t, sharedPostgres(t), "era")
	e := era{url, "pgx", url + "?default_query_exec_mode=simple_protocol"}
	if strings.Contains(url, "?") {
		e.source = url + "&default_query_exec_mode=simple_protocol"
	}
	e.exec(t, string(content))
	return e
}

// live returns the keys of the live rows that do not expire, but for those of the server itself.
func (e era) live(t *testing.T) (keys []string) {
	t.Helper()
	db, err := sql.Open(e.driver, e.source)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	deleted := "deleted = 0"
	if e.driver == "pgx" {
		deleted = "NOT deleted"
	}
	rows, err := db.Query(`SELECT resource, namespace, name FROM kv WHERE superseded_revision IS NULL AND expires_at IS NULL AND resource NOT LIKE '~%' AND ` + deleted)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var resource, namespace, name string
		if err := rows.Scan(&resource, &namespace, &name); err != nil {
			t.Fatal(err)
		}
		keys = append(keys, resource+"/"+namespace+"/"+name)
	}
	return keys
}

// allListed lists all resources that are served.
func allListed(t *testing.T, a *api) map[string]bool {
	t.Helper()
	found := map[string]bool{}
	for _, root := range []string{"/api", "/apis"} {
		_, _, text, err := a.accepting(t, root, "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		if err != nil {
			t.Fatal(err)
		}
		var groups struct {
			Items []struct {
				Metadata metav1.ObjectMeta
				Versions []struct {
					Version   string
					Resources []struct {
						Resource string
						Verbs    []string
					}
				}
			}
		}
		if err := json.Unmarshal(text, &groups); err != nil || len(groups.Items) == 0 {
			t.Fatalf("discovery: %v\n%s", err, text)
		}
		for _, g := range groups.Items {
			for _, v := range g.Versions {
				for _, r := range v.Resources {
					if !strings.Contains(fmt.Sprint(r.Verbs), "list") {
						continue
					}
					path, key := root+"/"+v.Version+"/"+r.Resource, r.Resource
					if root == "/apis" {
						path, key = root+"/"+g.Metadata.Name+"/"+v.Version+"/"+r.Resource, r.Resource+"."+g.Metadata.Name
					}
					var list metav1.PartialObjectMetadataList
					if err := json.Unmarshal(want(t, a, http.StatusOK, http.MethodGet, path, "", ""), &list); err != nil {
						t.Fatalf("%s: %v", path, err)
					}
					for _, o := range list.Items {
						found[key+"/"+o.Namespace+"/"+o.Name] = true
					}
				}
			}
		}
	}
	return found
}

func (a *api) accepting(t *testing.T, path, accept string) (int, http.Header, []byte, error) {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, a.s.URL+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	req.Header.Set("Accept", accept)
	resp, err := a.c.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	var text bytes.Buffer
	_, err = text.ReadFrom(resp.Body)
	return resp.StatusCode, resp.Header, text.Bytes(), err
}

// TestServesEras serves databases of earlier builds: all that they held is there, with its resource versions, watches continue from
// these, and it can be changed.
func TestServesEras(t *testing.T) {
	t.Parallel()
	first := map[string]string{"/api/v1/namespaces/shop/configmaps/c1": "21", "/apis/apps/v1/namespaces/shop/deployments/web": "26", "/api/v1/namespaces/shop/services/web": "27"}
	for file, objects := range map[string]map[string]string{
		"first.db.gz": first, "first.sql.gz": first,
		"schema5.db.gz": {"/apis/example.com/v1/namespaces/shop/widgets/w": ""},
		"schema9.db.gz": {"/api/v1/namespaces/shop/configmaps/c1": "209", "/apis/apps/v1/namespaces/shop/deployments/web": "214", "/api/v1/namespaces/shop/services/web": "215",
			"/apis/example.com/v1/namespaces/shop/widgets/w": "227"},
		"many9.db.gz":  {"/api/v1/namespaces/shop/configmaps/c1": "262", "/api/v1/namespaces/shop/secrets/bot-token": "", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/lead": ""},
		"many9.sql.gz": {"/api/v1/namespaces/shop/configmaps/c1": "267", "/api/v1/namespaces/shop/secrets/bot-token": "", "/apis/coordination.k8s.io/v1/namespaces/shop/leases/lead": ""},
	} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			e := openEra(t, file)
			keys := e.live(t)
			s := harness.StartT(t, harness.Options{Store: e.url})
			a := newAPI(t, s)
			var before metav1.PartialObjectMetadataList
			if err := json.Unmarshal(want(t, a, http.StatusOK, http.MethodGet, "/api/v1/namespaces/shop/configmaps", "", ""), &before); err != nil {
				t.Fatal(err)
			}
			for path, revision := range objects {
				var o metav1.PartialObjectMetadata
				if err := json.Unmarshal(want(t, a, http.StatusOK, http.MethodGet, path, "", ""), &o); err != nil || revision != "" && o.ResourceVersion != revision {
					t.Errorf("%s has resource version %s, %v", path, o.ResourceVersion, err)
				}
			}
			found := allListed(t, a)
			for _, key := range keys {
				if !found[key] {
					t.Errorf("%s is in the table, and in no list", key)
				}
			}
			want(t, a, http.StatusOK, http.MethodPatch, "/api/v1/namespaces/shop/configmaps/c1", "application/merge-patch+json", `{"data":{"k":"of today"}}`)
			want(t, a, http.StatusCreated, http.MethodPost, "/api/v1/namespaces/shop/configmaps", "application/json", `{"metadata":{"name":"of-today"}}`)
			want(t, a, http.StatusOK, http.MethodDelete, "/api/v1/namespaces/shop/configmaps/of-today", "", "")
			if got := eventsAfter(t, a, before.ResourceVersion, 3); fmt.Sprint(got) != "[MODIFIED c1 ADDED of-today DELETED of-today]" {
				t.Errorf("a watch from before sees %v", got)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			wantClean(t, e.url)
			again := allListed(t, newAPI(t, harness.StartT(t, s.Options())))
			for _, key := range keys {
				if !again[key] {
					t.Errorf("%s is not there after another start", key)
				}
			}
		})
	}
}

// eventsAfter returns the first n events of the namespace's ConfigMaps after a resource version, but not of the one that a
// controller corrects as soon as the server has started.
func eventsAfter(t *testing.T, a *api, version string, n int) (events []string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, a.s.URL+"/api/v1/namespaces/shop/configmaps?watch=1&fieldSelector=metadata.name!%3Dkube-root-ca.crt&resourceVersion="+version, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := a.c.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); len(events) < 2*n && lines.Scan(); {
		var e struct {
			Type   string
			Object metav1.PartialObjectMetadata
		}
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		events = append(events, e.Type, e.Object.Name)
	}
	return events
}

// TestServesNewer: a server uses the database of a newer build, unless that holds what only newer builds can read; then it ends with
// one line.
func TestServesNewer(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"first.db.gz", "first.sql.gz"} {
		t.Run(file, func(t *testing.T) {
			t.Parallel()
			e := openEra(t, file)
			runBinary(t, "store", "migrate", "--store", e.url)
			e.exec(t, "CREATE TABLE kv_later (n bigint); ALTER TABLE kv ADD COLUMN later bigint; UPDATE schema_migrations SET version = 999")
			s := harness.StartT(t, harness.Options{Store: e.url})
			a := newAPI(t, s)
			want(t, a, http.StatusOK, http.MethodPatch, "/api/v1/namespaces/shop/configmaps/c1", "application/merge-patch+json", `{"data":{"k":"of an older build"}}`)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			wantClean(t, e.url)
			column := map[string]string{"sqlite": "value", "pgx": "number"}[e.driver]
			e.exec(t, "UPDATE kv_meta SET "+column+" = 998 WHERE key = 'schema_compatible'")
			bin, err := harness.Binary()
			if err != nil {
				t.Fatal(err)
			}
			var errOut bytes.Buffer
			cmd := exec.CommandContext(t.Context(), bin, "serve", "--data-dir", s.DataDir, "--secure-port", fmt.Sprint(s.Port), "--bind-address", "127.0.0.1", "--store", e.url)
			cmd.Stderr = &errOut
			if err := cmd.Run(); err == nil || cmd.ProcessState.ExitCode() != 1 {
				t.Errorf("the server ended with %v", err)
			}
			if text := errOut.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, "migration 998") || !strings.Contains(text, "use the newer version") {
				t.Errorf("the output is\n%s", text)
			}
		})
	}
}
