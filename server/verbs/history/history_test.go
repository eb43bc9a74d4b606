package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/e2e/needs"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/history"
	kindshistory "github.com/rowlock/rowlock/server/kinds/history"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/memory"
	"github.com/rowlock/rowlock/sqlstore/postgres"
	"github.com/rowlock/rowlock/sqlstore/postgres/pgtest"
	"github.com/rowlock/rowlock/sqlstore/sqlite"
)

const root = "/apis/history.rowlock.dev/v1"

// served is an option: the server serves the past.
func served(c *server.Config) {
	c.Catalogue.Set(append(c.Catalogue.Known(), kindshistory.Resources()...))
}

// stores are the databases that the past is read from.
var stores = map[string]func(t *testing.T) sqlstore.Driver{
	"memory": func(*testing.T) sqlstore.Driver { return memory.New(memory.Config{MaxBytes: 1 << 28}).Open() },
	"sqlite": func(t *testing.T) sqlstore.Driver {
		d, err := sqlite.Open(t.Context(), t.TempDir()+"/db", sqlite.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	},
	"postgres": func(t *testing.T) sqlstore.Driver {
		needs.PostgreSQL(t)
		server, err := postgresql()
		if err != nil {
			t.Fatal(err)
		}
		url, err := server.CreateDB(t.Context(), fmt.Sprintf("t%d", databases.Add(1)))
		if err != nil {
			t.Fatal(err)
		}
		d, err := postgres.Open(t.Context(), url, postgres.Config{})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { d.Close() })
		return d
	},
}

// postgresql is the one server of this package's tests; the first test that needs it starts it.
var (
	started    *pgtest.Server
	databases  atomic.Int64
	postgresql = sync.OnceValues(func() (s *pgtest.Server, err error) {
		started, err = pgtest.Start(context.Background(), pgtest.Options{Settings: map[string]string{"fsync": "off"}})
		return started, err
	})
)

func TestMain(m *testing.M) {
	code := m.Run()
	if started != nil {
		started.Stop()
	}
	os.Exit(code)
}

// onStores runs a test on a server for each kind of store.
func onStores(t *testing.T, test func(t *testing.T, s *servertest.Server)) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(open(t), sqlstore.Config{}))
			s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
			test(t, s)
		})
	}
}

func list(ns, resource, name, more string) string {
	path := root + "/clusterrevisions"
	if ns != "" {
		path = root + "/namespaces/" + ns + "/revisions"
	}
	return path + "?fieldSelector=" + url.QueryEscape("object.resource="+resource+",object.name="+name) + more
}

// read decodes an answer that has to be of a code.
func read[T any](t *testing.T, s *servertest.Server, path string, header ...string) (out T) {
	t.Helper()
	if err := json.Unmarshal(s.Must("GET", path, "", header...), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// refused makes a request that must be refused, and returns the error's text.
func refused(t *testing.T, s *servertest.Server, path string, code int, words ...string) {
	t.Helper()
	w := s.Do("GET", path, "")
	var st metav1.Status
	if w.Code != code || json.Unmarshal(w.Body.Bytes(), &st) != nil && code != http.StatusNotFound {
		t.Errorf("GET %s: %d %s, want %d", path, w.Code, w.Body, code)
		return
	}
	for _, word := range words {
		if !strings.Contains(st.Message, word) {
			t.Errorf("GET %s: %q lacks %q", path, st.Message, word)
		}
	}
}

// deployment is web with an image and a number of replicas.
func deployment(image string, replicas int) string {
	return fmt.Sprintf(`{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"web","namespace":"shop"},"spec":{"replicas":%d,
		"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[
		{"name":"side","image":"side:1"},{"name":"web","image":%q}]}}}}`, replicas, image)
}

const deployments = "/apis/apps/v1/namespaces/shop/deployments"

// TestRevisions: each write is listed, the newest first, with what it did and what changed.
func TestRevisions(t *testing.T) {
	onStores(t, func(t *testing.T, s *servertest.Server) {
		s.Must("POST", deployments+"?fieldManager=maker", deployment("web:1", 1))
		s.Must("PUT", deployments+"/web?fieldManager=changer", deployment("web:2", 1))
		s.Must("PATCH", deployments+"/web/scale?fieldManager=scaler", `{"spec":{"replicas":5}}`, "Content-Type", "application/merge-patch+json")
		s.Must("DELETE", deployments+"/web", "")
		s.Must("POST", deployments+"?fieldManager=maker", deployment("web:3", 1))
		got := read[history.RevisionList](t, s, list("shop", "deployments.apps", "web", ""))
		var lines []string
		for _, r := range got.Items {
			var managers []string
			for _, m := range r.Managers {
				managers = append(managers, m.Manager+"/"+m.Operation+"/"+m.Subresource)
			}
			lines = append(lines, r.Change+" "+strings.Join(managers, ",")+" "+strings.Join(r.ChangedFields, ","))
		}
		want := []string{
			"create maker/Update/ ",
			"delete  ",
			"update scaler/Update/scale spec.replicas",
			`update changer/Update/ spec.template.spec.containers[name="web"].image`,
			"create maker/Update/ ",
		}
		if strings.Join(lines, "\n") != strings.Join(want, "\n") {
			t.Errorf("got\n%s\nwant\n%s", strings.Join(lines, "\n"), strings.Join(want, "\n"))
		}
	})
}

// TestUntilBeforeWhatIsKept: of a time that is older than all that is kept nothing is listed, and
// not the write that held when the past begins.
func TestUntilBeforeWhatIsKept(t *testing.T) {
	for name, open := range stores {
		t.Run(name, func(t *testing.T) {
			d := open(t)
			s := servertest.Start(t, servertest.Plain(nil), served, servertest.On(d, sqlstore.Config{}))
			s.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
			s.Must("POST", deployments, deployment("web:1", 1))
			made := read[history.RevisionList](t, s, list("shop", "deployments.apps", "web", "")).Items[0].WrittenAt.Time // by the clock of the database
			for after, want := range map[time.Time]int{made.Add(-time.Millisecond): 0, made.Add(time.Millisecond): 1} {
				b, err := d.Bounds(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if _, err := d.Trim(t.Context(), b.Head, 1<<20); err != nil {
					t.Fatal(err)
				}
				got := read[history.RevisionList](t, s, list("shop", "deployments.apps", "web", "&until="+url.QueryEscape(after.Format(time.RFC3339Nano))))
				if len(got.Items) != want {
					t.Errorf("until %v, of which nothing is kept: %d, want %d: %+v", after, len(got.Items), want, got.Items)
				}
			}
		})
	}
}

// retained keeps the past for some time, and often checks for older versions.
func retained(d time.Duration) sqlstore.Config {
	return sqlstore.Config{Retention: d, CompactEvery: time.Millisecond}
}
