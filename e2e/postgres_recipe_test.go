package e2e

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
)

var sqlBlock = regexp.MustCompile("(?s)```sql\n(.*?)```")

// TestRecipeOfRoles runs the SQL of docs/postgres.md, "Roles and grants", as an administrator would, and then serves and runs the
// commands of `rowlock store` as the role that it makes, which owns nothing.
func TestRecipeOfRoles(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/postgres.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, _ := strings.Cut(string(page), "## Roles and grants")
	section, _, _ = strings.Cut(section, "\n## ")
	blocks := sqlBlock.FindAllStringSubmatch(section, -1)
	if len(blocks) != 4 {
		t.Fatalf("the page has %d blocks of SQL, and this test knows what to do with 4", len(blocks))
	}
	pg := startPostgres(t)
	as := func(user, database string) string {
		u, err := url.Parse(pg.URL(database))
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.User(user)
		return u.String()
	}
	run := func(at, text string) {
		t.Helper()
		conn, err := pgx.Connect(t.Context(), at)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(context.Background())
		for _, statement := range strings.Split(strings.TrimSpace(text), ";\n") {
			if _, err := conn.Exec(t.Context(), statement); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
	}
	owner, serving := as("rowlock", "rowlock"), as("rowlock_serve", "rowlock")
	run(as("postgres", "postgres"), blocks[0][1])
	run(as("postgres", "postgres"), blocks[1][1])
	if out, errOut, err := storeCommand(t, "migrate", "--store", owner); err != nil {
		t.Fatalf("migrate: %v\n%s%s", err, out, errOut)
	}
	run(owner, blocks[2][1])
	run(as("postgres", "postgres"), "CREATE ROLE auditor LOGIN")
	run(owner, blocks[3][1])

	s := harness.StartT(t, harness.Options{Store: serving, Args: []string{"--history-retention=1h", "--relaxed-durability=leases"}})
	a := newAPI(t, s)
	want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"a"}}`)
	for i := range 3 {
		want(t, a, 200, http.MethodPatch, configMaps+"/a", "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":"%d"}}`, i))
	}
	for _, check := range []string{"store-writes", "store-reads"} {
		want(t, a, 200, http.MethodGet, "/readyz/"+check, "", "")
	}
	backup := filepath.Join(t.TempDir(), "backup")
	for _, args := range [][]string{{"verify"}, {"compact", "--keep", "0s"}, {"backup", backup}, {"rewrite", "--all"}, {"repair", "--list"}, {"export", "--yaml"}} {
		if out, errOut, err := storeCommand(t, append(args, "--store", serving)...); err != nil {
			t.Errorf("%v as a role that owns nothing: %v\n%s%s", args, err, out, errOut)
		}
	}
	run(as("auditor", "rowlock"), "SELECT count(value) FROM objects;\nSELECT count(value) FROM history")
}
