package storetest

import (
	"database/sql"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/rowlock/rowlock/sqlstore"
)

// sqlDocObjects is the cluster for the queries of the documentation.
var sqlDocObjects = []struct{ resource, namespace, name, value string }{
	{"deployments.apps", "default", "web", `{"metadata":{"name":"web","uid":"d1","labels":{"app":"web"},"managedFields":[{"manager":"kubectl","operation":"Apply","time":"2026-03-01T10:00:00Z"}]},"spec":{"template":{"spec":{"containers":[{"image":"web:1"}]}}}}`},
	{"pods", "default", "web-1", `{"metadata":{"labels":{"app":"web"}},"spec":{"nodeName":"n1","initContainers":[{"image":"init:1"}],"containers":[{"image":"web:1"},{"image":"proxy:2"}],"volumes":[{"secret":{"secretName":"tls"}}]},"status":{"phase":"Running"}}`},
	{"pods", "default", "web-2", `{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"image":"web:1"},{"image":"web:1"}]},"status":{"phase":"Pending"}}`},
	{"secrets", "default", "tls", `{"metadata":{"name":"tls"},"type":"kubernetes.io/tls"}`},
	{"secrets", "default", "spare", `{"metadata":{"name":"spare"},"type":"Opaque"}`},
	{"secrets", "other", "tls", `{"metadata":{"name":"tls"},"type":"Opaque"}`},
	{"configmaps", "default", "stuck", `{"metadata":{"deletionTimestamp":"2026-03-01T11:00:00Z","finalizers":["a/b"]}}`},
	{"clusterrolebindings.rbac.authorization.k8s.io", "", "admins", `{"roleRef":{"name":"cluster-admin"},"subjects":[{"kind":"Group","name":"ops"},{"kind":"ServiceAccount","namespace":"ci","name":"bot"}]}`},
	{"clusterrolebindings.rbac.authorization.k8s.io", "", "viewers", `{"roleRef":{"name":"view"},"subjects":[{"kind":"Group","name":"all"}]}`},
	{"configmaps", "default", "damaged", `{"cut`},
	{"configmaps", "default", "gone", `{"metadata":{"uid":"g1"}}`},
}

// sqlDocWant has the answer of each query: rows joined by newlines, columns by |. An answer that ends in *
// has only the beginning of a time or value.
var sqlDocWant = map[string]string{
	"What is stored":    "pods|2|*",
	"Images in use":     "web:1|2\ninit:1|1\nproxy:2|1",
	"Objects per label": "app|web|3",
	"Secrets that no pod, service account or ingress names": "default|spare|Opaque\nother|tls|Opaque",
	"Who changed what, and when":                            "2026-03-01T12:00:00Z|kubectl|Apply||deployments.apps|default|web\n2026-03-01T10:00:00Z|kubectl|Apply||deployments.apps|default|web",
	"Pods on each node, by phase":                           "(none)|Pending|1\nn1|Running|1",
	"The busiest resources of the kept history":             "configmaps|create|3|*",
	"One object as it was at a revision":                    "1|TIME|{*",
	"How a deployment's images changed":                     "1|TIME|create|web:1\n12|TIME|update|web:2",
	"What was deleted":                                      "TIME|configmaps|default|gone|g1|25",
	"Who may do everything":                                 "clusterrolebindings.rbac.authorization.k8s.io|admins|ServiceAccount|ci|bot\nclusterrolebindings.rbac.authorization.k8s.io|admins|Group||ops",
	"Deletions that wait for a finalizer":                   `configmaps|default|stuck|2026-03-01T11:00:00Z|["a/b"]`,
	"Which keys are still needed":                           "vaults.example.com||1\nvaults.example.com|aesgcm:key%201|1",
	"Values that are damaged":                               "configmaps|default|damaged|10|5",
}

// SQLDoc runs every query of docs/sql.md in a dialect ("sqlite" or "postgres")
// on a database prepared through its driver, and compares the answers.
func SQLDoc(t *testing.T, document, dialect string, d sqlstore.Driver, db *sql.DB) {
	for _, o := range sqlDocObjects {
		must(t, d, create(key(o.resource, o.namespace, o.name), o.value))
	}
	second := strings.NewReplacer("web:1", "web:2", `"managedFields":[`, `"managedFields":[{"manager":"kubectl","operation":"Apply","time":"2026-03-01T12:00:00Z"},`)
	must(t, d, update(key("deployments.apps", "default", "web"), 1, second.Replace(sqlDocObjects[0].value)))
	must(t, d, remove(key("configmaps", "default", "gone"), 11, sqlDocObjects[10].value))
	sealed := string(append([]byte(sqlstore.SealHead("aesgcm", "key 1")), 0, 0xff, ':', 0x80, '{', '}'))
	must(t, d, create(key("vaults.example.com", "other", "sealed"), sealed))
	must(t, d, create(key("vaults.example.com", "other", "headless"), sqlstore.SealedPrefix+"\x00\xff"))
	queries := sqlBlocks(t, document, dialect)
	answers := func() map[string]string {
		all := make(map[string]string)
		for name, query := range queries {
			all[name] = answer(t, db, query)
		}
		all["history"] = answer(t, db, "SELECT resource, name, revision, created_revision, superseded_revision, change, uid, labels, written_at, bytes, value, encrypted, encryption_key FROM history ORDER BY revision")
		return all
	}
	before := answers()
	retain(t, sqlstore.Floors{Log: 15, Past: map[string]int64{"": 0}}, d)
	if packed := packAll(t, d, 10); packed == 0 {
		t.Fatal("nothing was packed")
	}
	for name, text := range answers() {
		if text != before[name] {
			t.Errorf("with packs the answer to %q is\n%s\nwant\n%s", name, text, before[name])
		}
	}
	for name, query := range queries {
		t.Run(name, func(t *testing.T) {
			want, ok := sqlDocWant[name]
			if !ok {
				t.Fatal("no answer to compare with")
			}
			got := answer(t, db, query)
			if begin, cut := strings.CutSuffix(want, "*"); cut {
				if !strings.HasPrefix(got, begin) {
					t.Fatalf("the answer is\n%s\nwant it to begin with\n%s", got, begin)
				}
			} else if got != want {
				t.Fatalf("the answer is\n%s\nwant\n%s", got, want)
			}
		})
	}
	if len(queries) != len(sqlDocWant) {
		t.Errorf("%d queries in %s for %s, want %d", len(queries), document, dialect, len(sqlDocWant))
	}
}

// sqlBlocks finds the fenced blocks of a dialect by the heading above them.
func sqlBlocks(t *testing.T, document, dialect string) map[string]string {
	t.Helper()
	text, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	blocks := make(map[string]string)
	heading, block, inside := "", "", false
	for line := range strings.Lines(string(text)) {
		switch {
		case strings.HasPrefix(line, "### "):
			heading = strings.TrimSpace(line[4:])
		case line == "```sql any\n" || line == "```sql "+dialect+"\n":
			block, inside = "", true
		case inside && strings.HasPrefix(line, "```"):
			blocks[heading], inside = block, false
		case inside:
			block += line
		}
	}
	return blocks
}

func answer(t *testing.T, db *sql.DB, query string) string {
	t.Helper()
	rows, err := db.QueryContext(t.Context(), strings.TrimSuffix(strings.TrimSpace(query), ";"))
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	columns, err := rows.Columns()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for rows.Next() {
		values := make([]any, len(columns))
		for i := range values {
			values[i] = new(any)
		}
		if err := rows.Scan(values...); err != nil {
			t.Fatal(err)
		}
		fields := make([]string, len(columns))
		for i := range values {
			fields[i] = field(columns[i], *values[i].(*any))
		}
		lines = append(lines, strings.Join(fields, "|"))
	}
	if err := rows.Err(); err != nil {
		t.Fatal(err)
	}
	return strings.Join(lines, "\n")
}

func field(column string, v any) string {
	if b, ok := v.([]byte); ok {
		v = string(b)
	}
	if at, ok := v.(time.Time); ok {
		v = at.UTC().Format(time.RFC3339Nano)
	}
	if column == "written_at" && strings.HasPrefix(fmt.Sprint(v), "2026-03-01T12:00:00") {
		return "TIME"
	}
	return fmt.Sprint(v)
}
