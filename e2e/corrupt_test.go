package e2e

import (
	"context"
	"database/sql"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
)

// tamper replaces text in live values behind the servers' backs.
func tamper(t *testing.T, store, from, to, where string) {
	t.Helper()
	statement := `UPDATE kv SET value = replace(value, '` + from + `', '` + to + `') WHERE superseded_revision IS NULL AND (` + where + ")"
	if strings.HasPrefix(store, "postgres") {
		conn, err := pgx.Connect(t.Context(), store)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		statement = strings.NewReplacer("replace(value,", "convert_to(replace(convert_from(value, 'UTF8'),", ") WHERE", "), 'UTF8') WHERE").Replace(statement)
		if _, err := conn.Exec(t.Context(), statement); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
		return
	}
	db, err := sql.Open("sqlite", strings.TrimPrefix(store, "sqlite:")+"?_pragma=busy_timeout(10000)")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	// Without its checksum a row is read as it was written by hand.
	if _, err := db.Exec(strings.Replace(statement, "SET value", "SET checksum = NULL, value", 1)); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// TestCorruptObjects damages the cluster's own objects and a user's while no server
// runs. A server starts all the same, names them, and is whole again without a restart
// once a command repairs them while it runs.
func TestCorruptObjects(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for name, url := range map[string]string{"SQLite": "sqlite:" + t.TempDir() + "/rowlock.db", "PostgreSQL": newDatabase(t, pg)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Store: url})
			a := newAPI(t, s)
			want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"bad"},"data":{"v":"first"}}`)
			want(t, a, 200, http.MethodPatch, configMaps+"/bad", "application/merge-patch+json", `{"data":{"v":"second"}}`)
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			tamper(t, url, `"second"`, `2`, `resource = 'configmaps' AND name = 'bad'`)
			tamper(t, url, `"metadata"`, `"labels"`, `resource = 'namespaces' AND name IN ('default', 'kube-system') `+
				`OR resource LIKE '%.rbac.authorization.k8s.io' AND name IN ('edit', 'system:basic-user') OR name IN ('catch-all', 'system') AND resource LIKE '%.flowcontrol.apiserver.k8s.io' `+
				`OR resource IN ('services', 'endpoints', 'endpointslices.discovery.k8s.io') AND name = 'kubernetes' OR name = 'system-node-critical'`)
			s, err := s.Again(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Kill)
			a = newAPI(t, s)
			verbose := string(want(t, a, 200, http.MethodGet, "/readyz?verbose", "", ""))
			for _, key := range []string{"namespaces/default", "namespaces/kube-system", "clusterroles.rbac.authorization.k8s.io/edit", "services/default/kubernetes"} {
				logged(t, s, key)
				if !strings.Contains(verbose, "[!]corrupt-objects: ") || !strings.Contains(verbose, key) {
					t.Errorf("%s is not named in %s", key, verbose)
				}
			}
			if strings.Contains(verbose, "default/bad") {
				t.Errorf("every client sees %s", verbose)
			}
			if single := string(want(t, a, 500, http.MethodGet, "/readyz/corrupt-objects", "", "")); !strings.Contains(single, "configmaps/default/bad at revision ") {
				t.Errorf("the check by itself says %s", single)
			}
			if m := string(want(t, a, 200, http.MethodGet, "/metrics", "", "")); !strings.Contains(m, `rowlock_corrupt_objects{resource="configmaps"} 1`) {
				t.Error("no metric counts it")
			}
			for _, c := range []struct{ method, contentType, body string }{
				{http.MethodGet, "", ""}, {http.MethodPut, "application/json", `{"metadata":{"name":"bad"}}`},
				{http.MethodPatch, "application/merge-patch+json", `{"data":{"v":"third"}}`}, {http.MethodDelete, "", ""},
			} {
				if b := string(want(t, a, 500, c.method, configMaps+"/bad", c.contentType, c.body)); !strings.Contains(b, "corrupt object") {
					t.Errorf("%s: %s", c.method, b)
				}
			}
			var found []struct {
				Key                    string
				Revision, GoodRevision int64
			}
			store(t, &found, "repair", "--list", "--store", url)
			if len(found) < 10 {
				t.Errorf("%d are listed: %v", len(found), found)
			}
			var done struct {
				Action, Reason                string
				GoodRevision, WrittenRevision int64
			}
			store(t, &done, "repair", "--dry-run", "--rollback", "configmaps/default/bad", "--store", url)
			if done.Action != "rollback" || done.GoodRevision == 0 || done.WrittenRevision != 0 {
				t.Errorf("%+v", done)
			}
			for _, one := range found {
				what := "--delete"
				if one.GoodRevision > 0 {
					what = "--rollback"
				}
				out, log, err := storeCommand(t, "repair", what, one.Key, "--store", url)
				if err != nil || !strings.Contains(out, ", by revision ") || !strings.Contains(log, "key="+one.Key) {
					t.Errorf("%v of %+v: %v %s%s", what, one, err, out, log)
				}
			}
			storeFails(t, "can be read", "repair", "--delete", "configmaps/default/bad", "--store", url)
			storeFails(t, "not found", "repair", "--delete", "configmaps/default/none", "--store", url)
			storeFails(t, "want one of", "repair", "--store", url)
			if b := string(want(t, a, 200, http.MethodGet, configMaps+"/bad", "", "")); !strings.Contains(b, `"first"`) {
				t.Errorf("rolled back to %s", b)
			}
			for deadline := time.Now().Add(patience); ; time.Sleep(200 * time.Millisecond) {
				verbose := string(want(t, a, 200, http.MethodGet, "/readyz?verbose", "", ""))
				code, _, err := a.do(context.Background(), http.MethodGet, "/api/v1/namespaces/default/services/kubernetes", "", "") // the last that is written
				if err == nil && code == 200 && strings.Contains(verbose, "[+]corrupt-objects ok") {
					break
				}
				if time.Now().After(deadline) {
					t.Fatalf("after the repair: %s", verbose)
				}
			}
			want(t, a, 200, http.MethodGet, "/api/v1/namespaces/kube-system", "", "")
			want(t, a, 200, http.MethodGet, "/apis/rbac.authorization.k8s.io/v1/clusterroles/edit", "", "")
			if code, b, err := a.do(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"new"}}`); err != nil || code != 201 {
				t.Errorf("a write after the repair: %d %s %v", code, b, err)
			}
		})
	}
}

// TestRepairedNamespaceKeepsItsObjects removes corrupt Namespaces while a server runs,
// which saw one of them whole and one of them never. Nothing that was in them goes: neither
// while they are missing nor when they are there again.
func TestRepairedNamespaceKeepsItsObjects(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	for name, url := range map[string]string{"SQLite": "sqlite:" + t.TempDir() + "/rowlock.db", "PostgreSQL": newDatabase(t, pg)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Store: url})
			a := newAPI(t, s)
			namespaces := []string{"default", "shop", "yard"} // the first is made again by the server
			for _, ns := range namespaces {
				if ns != "default" {
					want(t, a, 201, http.MethodPost, "/api/v1/namespaces", "application/json", `{"metadata":{"name":"`+ns+`"}}`)
				}
				want(t, a, 201, http.MethodPost, "/api/v1/namespaces/"+ns+"/configmaps", "application/json", `{"metadata":{"name":"kept"}}`)
				want(t, a, 201, http.MethodPost, "/api/v1/namespaces/"+ns+"/secrets", "application/json", `{"metadata":{"name":"held","finalizers":["example.com/hold"]}}`)
			}
			if err := s.Stop(); err != nil {
				t.Fatal(err)
			}
			tamper(t, url, `"metadata"`, `"labels"`, `resource = 'namespaces' AND name IN ('default', 'shop')`)
			s, err := s.Again(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(s.Kill)
			a = newAPI(t, s)
			tamper(t, url, `"metadata"`, `"labels"`, `resource = 'namespaces' AND name = 'yard'`)
			for _, ns := range namespaces {
				if out, log, err := storeCommand(t, "repair", "--delete", "namespaces/"+ns, "--store", url); err != nil || !strings.Contains(out, ", by revision ") {
					t.Fatalf("%s: %v %s%s", ns, err, out, log)
				}
			}
			time.Sleep(4 * time.Second) // what a namespace leaves is looked for at once, and after one second and two
			there := func(when string) {
				t.Helper()
				for _, ns := range namespaces {
					want(t, a, 200, http.MethodGet, "/api/v1/namespaces/"+ns+"/configmaps/kept", "", "")
					if b := string(want(t, a, 200, http.MethodGet, "/api/v1/namespaces/"+ns+"/secrets/held", "", "")); strings.Contains(b, "deletionTimestamp") {
						t.Errorf("%s: %s", when, b)
					}
				}
			}
			there("while the namespaces are missing")
			for _, ns := range namespaces {
				deadline := time.Now().Add(patience)
				for {
					code, b, err := a.do(context.Background(), http.MethodPost, "/api/v1/namespaces", "application/json", `{"metadata":{"name":"`+ns+`"}}`)
					if err == nil && (code == 201 || code == 409) {
						break
					}
					if time.Now().After(deadline) {
						t.Fatalf("%s is not made again: %d %s %v", ns, code, b, err)
					}
					time.Sleep(200 * time.Millisecond)
				}
			}
			time.Sleep(3 * time.Second)
			there("when they were made again")
		})
	}
}
