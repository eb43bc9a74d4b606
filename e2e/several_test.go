package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
)

// want returns a request that must be answered with a code.
func want(t testing.TB, a *api, code int, method, path, contentType, body string) []byte {
	t.Helper()
	got, answer, err := a.do(context.Background(), method, path, contentType, body)
	if err != nil || got != code {
		t.Fatalf("%s %s on %s: %d %v, want %d\n%s", method, path, a.s.URL, got, err, code, answer)
	}
	return answer
}

// wantRead is want of a read as of now by a client that retries if the answer asks for it, as it does after
// seconds without an answer by a database whose machine is busy.
func wantRead(t testing.TB, a *api, code int, path string) []byte {
	t.Helper()
	refused := 0
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		got, header, answer, err := a.send(context.Background(), http.MethodGet, path, "", "")
		if err == nil && got == http.StatusServiceUnavailable && header.Get("Retry-After") != "" && time.Now().Before(deadline) {
			refused++
			continue
		}
		if refused > 0 {
			leniency.Note(t, "GET %s on %s was answered with 503 %d times before %d", path, a.s.URL, refused, got)
		}
		if err != nil || got != code {
			t.Fatalf("GET %s on %s: %d %v, want %d\n%s", path, a.s.URL, got, err, code, answer)
		}
		return answer
	}
}

func clients(t testing.TB, c *cluster) []*api {
	t.Helper()
	var list []*api
	for i := range c.all {
		a, err := c.client(i)
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, a)
	}
	return list
}

func TestTwoServersActAsOne(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	stores := map[string]string{"PostgreSQL": newDatabase(t, pg), "SQLite": "sqlite:" + t.TempDir() + "/shared.db"}
	for name, store := range stores {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args []string
			if name == "PostgreSQL" {
				args = []string{"--postgres-poll-interval=1h"} // a server hears of writes, or never
			}
			c := startCluster(t, store, 2, args...)
			t.Run("reads see the other's writes at once", func(t *testing.T) { readAfterWrite(t, clients(t, c)) })
			t.Run("addresses of services are unique", func(t *testing.T) { uniqueAddresses(t, clients(t, c)) })
			t.Run("a watch hears of the other's writes soon", func(t *testing.T) { watchLatency(t, c) })
		})
	}
}

func readAfterWrite(t *testing.T, a []*api) {
	for i := range 60 {
		writer, reader := a[i%2], a[(i+1)%2]
		path := fmt.Sprintf("%s/read-%d", configMaps, i)
		var made, got configMap
		if err := json.Unmarshal(want(t, writer, 201, http.MethodPost, configMaps, "application/json", fmt.Sprintf(`{"metadata":{"name":"read-%d"},"data":{"v":"1"}}`, i)), &made); err != nil {
			t.Fatal(err)
		}
		if err := json.Unmarshal(wantRead(t, reader, 200, path), &got); err != nil || got.Metadata.ResourceVersion != made.Metadata.ResourceVersion {
			t.Fatalf("the other server has %+v, %v; want %+v", got, err, made)
		}
		// Each server changes what it saw of the other's work.
		update := fmt.Sprintf(`{"metadata":{"name":"read-%d","resourceVersion":%q},"data":{"v":"2"}}`, i, made.Metadata.ResourceVersion)
		want(t, reader, 200, http.MethodPut, path, "application/json", update)
		want(t, writer, 409, http.MethodPut, path, "application/json", update)
		want(t, writer, 200, http.MethodDelete, path, "", "")
		wantRead(t, reader, 404, path)
		if list := wantRead(t, reader, 200, configMaps); strings.Contains(string(list), fmt.Sprintf(`"read-%d"`, i)) {
			t.Fatalf("a deleted object is listed: %s", list)
		}
	}
}

func uniqueAddresses(t *testing.T, a []*api) {
	const services = "/api/v1/namespaces/default/services"
	var mu sync.Mutex
	var wg sync.WaitGroup
	owners := map[string]string{}
	for w := range 8 {
		wg.Go(func() {
			for i := range 6 {
				name := fmt.Sprintf("svc-%d-%d", w, i)
				code, body, err := a[w%2].do(context.Background(), http.MethodPost, services, "application/json",
					fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"type":"NodePort","ports":[{"port":80}],"selector":{"a":"b"}}}`, name))
				var s struct {
					Spec struct {
						ClusterIP string
						Ports     []struct{ NodePort int }
					}
				}
				if err != nil || code != http.StatusCreated || json.Unmarshal(body, &s) != nil || s.Spec.ClusterIP == "" || len(s.Spec.Ports) != 1 {
					t.Errorf("creating %s: %d %v %s", name, code, err, body)
					return
				}
				mu.Lock()
				for _, key := range []string{s.Spec.ClusterIP, fmt.Sprint(s.Spec.Ports[0].NodePort)} {
					if owners[key] != "" {
						t.Errorf("%s belongs to %s and %s", key, owners[key], name)
					}
					owners[key] = name
				}
				mu.Unlock()
			}
		})
	}
	wg.Wait()
}

// watchLatency measures how long after its answer a write on one server shows in a
// watch on the other.
func watchLatency(t *testing.T, c *cluster) {
	w := newWatcher(c, 1)
	w.mu.Lock()
	w.times = make(chan time.Time, 100)
	w.mu.Unlock()
	a := clients(t, c)[0]
	want(t, a, 201, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"latency"}}`)
	<-w.times
	var took []time.Duration
	for i := range 30 {
		began := time.Now()
		want(t, a, 200, http.MethodPatch, configMaps+"/latency", "application/merge-patch+json", fmt.Sprintf(`{"data":{"v":"%d"}}`, i))
		select {
		case at := <-w.times:
			took = append(took, at.Sub(began))
		case <-time.After(patience):
			t.Fatal("a write on one server does not reach a watch on the other")
		}
	}
	slices.Sort(took)
	median := took[len(took)/2]
	t.Logf("from the request to the event on the other server: median %v, worst %v", median, took[len(took)-1])
	// 5 to 50 ms on an idle machine; without a hint it would be an hour.
	w.stop()
}

// TestRollingRestart restarts two servers one after the other, as an upgrade does.
func TestRollingRestart(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	c := startCluster(t, newDatabase(t, pg), 2)
	l := startLoad(c, 6)
	for round := range 4 {
		time.Sleep(500 * time.Millisecond)
		if err := c.server(round).Stop(); err != nil {
			t.Errorf("SIGTERM: %v\n%s", err, c.server(round).Log())
		}
		c.again(round % 2)
	}
	l.end()
}

// TestTwoProcessesOnOneFile runs the same load on one SQLite file, and kills one process.
func TestTwoProcessesOnOneFile(t *testing.T) {
	t.Parallel()
	c := startCluster(t, "sqlite:"+t.TempDir()+"/shared.db", 2)
	l := startLoad(c, 6)
	for round := range 2 {
		time.Sleep(time.Second)
		c.server(round).Kill()
		c.again(round % 2)
	}
	l.end()
}

// TestLeadMoves kills the server that does what one server alone may do. The other
// takes all of it over, and finishes what waits.
func TestLeadMoves(t *testing.T) {
	t.Parallel()
	pg := sharedPostgres(t)
	url := newDatabase(t, pg)
	c := startCluster(t, url, 1)
	before := leads(t, url)
	for deadline := time.Now().Add(patience); len(before) < 2; before = leads(t, url) {
		if time.Now().After(deadline) {
			t.Fatalf("the first server leads only in %v", before)
		}
		time.Sleep(20 * time.Millisecond)
	}
	c.all = append(c.all, nil)
	c.start(1, url)
	a := clients(t, c)
	want(t, a[0], 201, http.MethodPost, "/api/v1/namespaces", "application/json", `{"metadata":{"name":"doomed"}}`)
	want(t, a[0], 201, http.MethodPost, "/api/v1/namespaces/doomed/configmaps", "application/json", `{"metadata":{"name":"a","finalizers":["e2e.test/wait"]}}`)
	want(t, a[0], 200, http.MethodDelete, "/api/v1/namespaces/doomed", "", "")
	c.server(0).Kill()
	killed := time.Now()
	want(t, a[1], 200, http.MethodPatch, "/api/v1/namespaces/doomed/configmaps/a", "application/merge-patch+json", `{"metadata":{"finalizers":null}}`)
	for deadline := killed.Add(patience); ; time.Sleep(20 * time.Millisecond) {
		now := leads(t, url)
		moved := 0
		for name, holder := range before {
			if now[name] != "" && process(now[name]) != process(holder) {
				moved++
			}
		}
		if moved == len(before) {
			t.Logf("%d leads moved within %v", moved, time.Since(killed).Round(time.Millisecond))
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the leads were %v and are %v", before, now)
		}
	}
	for deadline := time.Now().Add(patience); ; time.Sleep(20 * time.Millisecond) {
		code, body, err := a[1].do(context.Background(), http.MethodGet, "/api/v1/namespaces/doomed", "", "")
		if err == nil && code == http.StatusNotFound {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the namespace stays: %d %s %v", code, body, err)
		}
	}
}

// process returns the part of a holder's name that identifies its process.
func process(holder string) string {
	name, _, _ := strings.Cut(holder, "/")
	return name
}

// leads reads the present leaders.
func leads(t *testing.T, url string) map[string]string {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	rows, err := conn.Query(t.Context(), "SELECT name, holder FROM kv_lead WHERE until > now()")
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	var name, holder string
	if _, err := pgx.ForEachRow(rows, []any{&name, &holder}, func() error { found[name] = holder; return nil }); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestServersShareKeys: a server whose keys are not those of the others on its database is refused, with an error
// that names the remedy. Where their keys are lost, it may take over.
func TestServersShareKeys(t *testing.T) {
	t.Parallel()
	url := newDatabase(t, sharedPostgres(t))
	first := harness.StartT(t, harness.Options{Store: url})
	port, err := harness.FreePort()
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(t.TempDir(), "data")
	serve := []string{"serve", "--store", url, "--data-dir", dir, "--bind-address", "127.0.0.1", "--secure-port", strconv.Itoa(port)}
	_, errOut, code := rowlock(t, serve...)
	if mend := "rowlock init --data-dir " + dir + " --from "; code != 1 || !strings.Contains(errOut, mend) || !strings.Contains(errOut, "certificate authority") {
		t.Fatalf("exit code %d, %s; want %q", code, errOut, mend)
	}
	if err := os.RemoveAll(dir); err != nil {
		t.Fatal(err)
	}
	if _, errOut, code := rowlock(t, "init", "--data-dir", dir, "--from", first.DataDir); code != 0 {
		t.Fatal(errOut)
	}
	second := harness.StartT(t, harness.Options{Store: url, DataDir: dir})
	for _, s := range []*harness.Server{first, second} {
		cert, err := tls.LoadX509KeyPair(filepath.Join(first.DataDir, "admin.crt"), filepath.Join(first.DataDir, "admin.key"))
		if err != nil {
			t.Fatal(err)
		}
		client, err := s.Client()
		if err != nil {
			t.Fatal(err)
		}
		client.Transport.(*http.Transport).TLSClientConfig.Certificates = []tls.Certificate{cert}
		resp, err := client.Get(s.URL + "/api/v1/namespaces")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s answers the administrator of the first with %d", s.URL, resp.StatusCode)
		}
	}
	harness.StartT(t, harness.Options{Store: url, DataDir: filepath.Join(t.TempDir(), "other"), Args: []string{"--replace-cluster-keys"}})
}
