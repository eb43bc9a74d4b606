package e2e

import (
	"database/sql"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

const migrationsPath = "/apis/storagemigration.k8s.io/v1alpha1/storageversionmigrations"

// storedIn counts the objects of a resource by the API version that they are stored in.
func storedIn(t testing.TB, db *sql.DB, resource string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), `SELECT value ->> 'apiVersion', count(*) FROM objects WHERE resource = '`+resource+`' GROUP BY 1 ORDER BY 1`)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var found []string
	for rows.Next() {
		var version string
		var n int
		if err := rows.Scan(&version, &n); err != nil {
			t.Fatal(err)
		}
		found = append(found, fmt.Sprint(n, " in ", version))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(found, ", ")
}

// TestStorageVersions moves custom objects to another storage version, as operators do it: by
// a command while the server runs where versions differ by name alone, by a StorageVersionMigration
// where a webhook converts. The old version then leaves the definition.
func TestStorageVersions(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for name, url := range map[string]string{"SQLite": "sqlite:" + t.TempDir() + "/rowlock.db", "PostgreSQL": createDB(t, pg, "versions")} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Store: url, Args: []string{
				"--runtime-config=storagemigration.k8s.io/v1alpha1", "--feature-gates=StorageVersionMigrator=true", "--controllers=*,storage-version-migrator-controller",
			}})
			a, db := newAPI(t, s), openSQL(t, url)
			// grow makes a definition with 30 objects of v1, and has v2 stored from then on.
			grow := func(plural, kind string, webhook bool) (group string) {
				group = plural + ".example.com"
				crd := definition(group, plural, kind, "v1", "v2")
				if webhook {
					crd.Spec.Conversion = treeConversion(t, &atomic.Bool{})
				}
				defined(t, a, crd)
				for i := range 30 {
					body := fmt.Sprintf(`{"apiVersion":"%s/v1","kind":%q,"metadata":{"name":"a%d"},"meters":%d}`, group, kind, i, i)
					want(t, a, http.StatusCreated, http.MethodPost, "/apis/"+group+"/v1/namespaces/default/"+plural, "application/json", body)
				}
				want(t, a, http.StatusOK, http.MethodPatch, definitionsPath+"/"+crd.Name, "application/json-patch+json",
					`[{"op":"replace","path":"/spec/versions/0/storage","value":false},{"op":"replace","path":"/spec/versions/1/storage","value":true}]`)
				return group
			}
			check := func(step, resource, want string) {
				t.Helper()
				if got := storedIn(t, db, resource); got != want {
					t.Errorf("%s: stored are %s, want %s", step, got, want)
				}
			}
			// drop takes v1 out of the definition, and reads an object.
			drop := func(group, plural, text string) {
				t.Helper()
				path := definitionsPath + "/" + plural + "." + group
				want(t, a, http.StatusOK, http.MethodPatch, path+"/status", "application/merge-patch+json", `{"status":{"storedVersions":["v2"]}}`)
				want(t, a, http.StatusOK, http.MethodPatch, path, "application/json-patch+json", `[{"op":"remove","path":"/spec/versions/0"}]`)
				if got := string(want(t, a, http.StatusOK, http.MethodGet, "/apis/"+group+"/v2/namespaces/default/"+plural+"/a7", "", "")); !strings.Contains(got, text) {
					t.Errorf("%s lacks %s", got, text)
				}
			}

			logs := grow("logs", "Log", false)
			check("before", "logs."+logs, "30 in "+logs+"/v1")
			var done struct{ Objects, Written, Left int64 }
			for _, written := range []int64{30, 0} {
				if store(t, &done, "rewrite", "--resource", "logs."+logs, "--store", url); done.Objects != 30 || done.Written != written || done.Left != 0 {
					t.Errorf("rewritten: %+v, want %d written", done, written)
				}
			}
			check("rewritten", "logs."+logs, "30 in "+logs+"/v2")
			drop(logs, "logs", `"meters":7`)

			trees := grow("trees", "Tree", true)
			if out, errOut, err := storeCommand(t, "rewrite", "--resource", "trees."+trees, "--store", url); err == nil ||
				!strings.Contains(out, "a webhook converts it to trees.example.com/v2: create a StorageVersionMigration on a running server") || !strings.Contains(errOut, "30 objects cannot be read or converted") {
				t.Errorf("a rewrite without the webhook: %v\n%s%s", err, out, errOut)
			}
			check("without the webhook", "trees."+trees, "30 in "+trees+"/v1")
			want(t, a, http.StatusCreated, http.MethodPost, migrationsPath, "application/json", `{"metadata":{"name":"trees"},"spec":{"resource":{"group":"`+trees+`","version":"v2","resource":"trees"}}}`)
			s.Kubectl(t).Run("wait", "--for=condition=Succeeded", "--timeout=120s", "storageversionmigration/trees")
			check("migrated", "trees."+trees, "30 in "+trees+"/v2")
			drop(trees, "trees", `"size":{"meters":7}`)
		})
	}
}
