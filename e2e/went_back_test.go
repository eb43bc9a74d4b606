package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// reflected is the state of a client that lists config maps and watches them, and lists them again after a 410.
type reflected struct {
	a       *api
	mu      sync.Mutex
	has     map[string]string // revisions by name
	at      map[string]string // the content of each revision, ever: two contents are an error
	twice   []string
	expired int
}

// reflect begins to, until the test ends.
func reflect(t testing.TB, a *api) *reflected {
	r := &reflected{a: a, at: map[string]string{}}
	ctx, stop := context.WithCancel(context.Background())
	done := make(chan struct{})
	t.Cleanup(func() { stop(); <-done })
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			r.once(ctx)
		}
	}()
	return r
}

func (r *reflected) record(event string, m *configMap) {
	if event == "DELETED" {
		delete(r.has, m.Metadata.Name)
	} else {
		r.has[m.Metadata.Name] = m.Metadata.ResourceVersion
	}
	what := fmt.Sprint(m.Metadata.Name, " ", m.Data["v"])
	if before, ok := r.at[m.Metadata.ResourceVersion]; ok && before != what {
		r.twice = append(r.twice, fmt.Sprintf("revision %s is %q, and was %q", m.Metadata.ResourceVersion, what, before))
	}
	r.at[m.Metadata.ResourceVersion] = what
}

// once lists, and watches until the watch ends.
func (r *reflected) once(ctx context.Context) {
	code, body, err := r.a.do(ctx, http.MethodGet, configMaps, "", "")
	var list configMapList
	if err != nil || code != http.StatusOK || json.Unmarshal(body, &list) != nil {
		return
	}
	r.mu.Lock()
	r.has = map[string]string{}
	for i := range list.Items {
		r.record("LISTED", &list.Items[i])
	}
	r.mu.Unlock()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.a.s.URL+configMaps+"?watch=1&resourceVersion="+list.Metadata.ResourceVersion, nil)
	if err != nil {
		return
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	resp, err := r.a.c.Do(req)
	if err != nil {
		return
	}
	defer resp.Body.Close()
	for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
		var event struct {
			Type   string
			Object struct {
				configMap
				Code int
			}
		}
		if json.Unmarshal(lines.Bytes(), &event) != nil {
			return
		}
		r.mu.Lock()
		switch {
		case event.Type == "ERROR" && event.Object.Code == http.StatusGone:
			r.expired++
		case event.Type != "ERROR":
			r.record(event.Type, &event.Object.configMap)
		}
		r.mu.Unlock()
	}
}

// twoServers are servers on one database and what their clients have.
type twoServers struct {
	t       *testing.T
	direct  string // URL of the database
	a       []*api
	clients []*reflected
}

// agree waits until the list of each server, what its client has and the database are the same.
func (s *twoServers) agree(what string) {
	s.t.Helper()
	var rows []string
	served := make([][]string, len(s.a))
	has := make([][]string, len(s.a))
	eventually(s.t, what, func() bool {
		if s.t.Failed() {
			s.t.FailNow()
		}
		rows = liveConfigMaps(s.t, s.direct)
		names := []string{}
		for _, row := range rows {
			f := strings.Fields(row)
			names = append(names, f[0]+" "+f[1])
		}
		for i, a := range s.a {
			code, body, err := a.do(context.Background(), http.MethodGet, configMaps+"?resourceVersion=0", "", "")
			var list configMapList
			if err != nil || code != http.StatusOK || json.Unmarshal(body, &list) != nil {
				return false
			}
			served[i], has[i] = nil, nil
			for _, m := range list.Items {
				served[i] = append(served[i], fmt.Sprint(m.Metadata.Name, " ", m.Metadata.ResourceVersion, " ", m.Data["v"]))
			}
			slices.Sort(served[i])
			c := s.clients[i]
			c.mu.Lock()
			for _, name := range slices.Sorted(maps.Keys(c.has)) {
				has[i] = append(has[i], name+" "+c.has[name])
			}
			c.mu.Unlock()
			slices.Sort(names)
			if !slices.Equal(served[i], rows) || !slices.Equal(has[i], names) {
				return false
			}
		}
		return true
	})
	for i, c := range s.clients {
		c.mu.Lock()
		for _, twice := range c.twice {
			s.t.Errorf("client of server %d: %s", i, twice)
		}
		c.mu.Unlock()
	}
}

// wrote creates a config map, however often that takes, and returns its revision.
func (s *twoServers) wrote(i int, name, value string) int64 {
	s.t.Helper()
	var m configMap
	eventually(s.t, "a write of "+name, func() bool {
		code, body, err := s.a[i].do(context.Background(), http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"`+name+`"},"data":{"v":"`+value+`"}}`)
		if err == nil && code != http.StatusCreated && code != http.StatusServiceUnavailable && code != http.StatusGatewayTimeout {
			s.t.Fatalf("creating %s gives %d %s", name, code, body)
		}
		return err == nil && code == http.StatusCreated && json.Unmarshal(body, &m) == nil
	})
	revision, err := strconv.ParseInt(m.Metadata.ResourceVersion, 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return revision
}

// wantWentBack checks that each server has counted and logged this many times that the database went back.
func (s *twoServers) wantWentBack(times int) {
	s.t.Helper()
	for i, a := range s.a {
		text := want(s.t, a, 200, http.MethodGet, "/metrics", "", "")
		if n, _ := valueOf(text, "rowlock_store_went_back_total"); n != float64(times) {
			s.t.Errorf("server %d counts %v, want %d\n%s", i, n, times, a.s.Log())
		}
		if n, _ := valueOf(text, "rowlock_store_lost_revisions_total"); n < 1 {
			s.t.Errorf("server %d has lost %v revisions", i, n)
		}
		if text := string(want(s.t, a, 200, http.MethodGet, "/readyz?verbose", "", "")); !strings.Contains(text, "[!]store-went-back: ") {
			s.t.Errorf("server %d is ready:\n%s", i, text)
		}
		if text := a.s.Log(); strings.Count(text, "the database has gone back: revisions") != times {
			s.t.Errorf("server %d logs\n%s", i, text)
		}
		c := s.clients[i]
		c.mu.Lock()
		if c.expired < times {
			s.t.Errorf("the watch of server %d was ended %d times with 410, want %d", i, c.expired, times)
		}
		c.mu.Unlock()
	}
}

// TestDatabaseGoesBack promotes an asynchronous standby that is 45 commits and more behind, below two servers; takes the
// last revisions back with SQL; and lets the old primary come back, first in the URL. The servers, their clients and the
// database agree each time, and no revision has two contents.
func TestDatabaseGoesBack(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	primary, standby, database, url := startStandby(t)
	c := startCluster(t, url, 2)
	s := &twoServers{t: t, direct: primary.URL(database), a: clients(t, c)}
	for _, a := range s.a {
		s.clients = append(s.clients, reflect(t, a))
	}
	for n := range 20 {
		s.wrote(n%2, fmt.Sprint("kept", n), "kept")
	}
	s.agree("before")
	if err := standby.StopReplication(ctx, primary); err != nil {
		t.Fatal(err)
	}
	for n := range 45 {
		s.wrote(n%2, fmt.Sprint("lost", n), "lost")
	}
	for n := range 10 {
		want(t, s.a[n%2], 200, http.MethodPatch, configMaps+"/kept"+fmt.Sprint(n), "application/merge-patch+json", `{"data":{"v":"lost"}}`)
	}
	want(t, s.a[0], 200, http.MethodDelete, configMaps+"/kept19", "", "")
	// Derived state.
	want(t, s.a[0], 201, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "application/json",
		`{"metadata":{"name":"lost"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"User","name":"lost","apiGroup":"rbac.authorization.k8s.io"}]}`)
	want(t, s.a[0], 201, http.MethodPost, "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json",
		`{"metadata":{"name":"losts.example.com"},"spec":{"group":"example.com","scope":"Cluster","names":{"plural":"losts","kind":"Lost"},"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`)
	last := s.wrote(1, "last", "lost")
	s.agree("before the failover")
	allowed := func(a *api) string {
		return string(want(t, a, 201, http.MethodPost, "/apis/authorization.k8s.io/v1/subjectaccessreviews", "application/json",
			`{"spec":{"user":"lost","resourceAttributes":{"verb":"get","resource":"secrets"}}}`))
	}
	if text := allowed(s.a[1]); !strings.Contains(text, `"allowed":true`) {
		t.Fatal(text)
	}
	primary.Crash()
	if err := standby.Promote(ctx); err != nil {
		t.Fatal(err)
	}
	s.direct = standby.URL(database)
	if next := s.wrote(0, "lost0", "again"); next <= last {
		t.Errorf("revision %d is given, and %d was before the failover", next, last)
	}
	s.wrote(1, "lost1", "again")
	s.agree("after the failover")
	s.wantWentBack(1)
	for i, a := range s.a {
		if text := allowed(a); !strings.Contains(text, `"allowed":false`) {
			t.Errorf("server %d goes by a binding that is lost: %s", i, text)
		}
		want(t, a, 404, http.MethodGet, "/apis/example.com/v1/losts", "", "")
		want(t, a, 200, http.MethodGet, configMaps+"/kept19", "", "")
	}

	if err := primary.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
	old := liveConfigMaps(t, primary.URL(database))
	restarted := c.all[0]
	if err := restarted.Stop(); err != nil {
		t.Fatal(err)
	}
	c.again(0)
	a, err := c.client(0)
	if err != nil {
		t.Fatal(err)
	}
	s.a[0], s.clients[0] = a, reflect(t, a)
	for n := range 4 {
		s.wrote(n%2, fmt.Sprint("after", n), "after")
	}
	s.agree("with the old primary there again")
	eventually(t, "both servers say that another database takes writes", func() bool {
		for _, a := range s.a {
			text := want(t, a, 200, http.MethodGet, "/metrics", "", "")
			if n, _ := valueOf(text, "rowlock_store_refused_databases_total"); n == 0 {
				return false
			}
		}
		return true
	})
	if now := liveConfigMaps(t, primary.URL(database)); !slices.Equal(now, old) {
		t.Errorf("the old primary was written to: it has %d config maps, and had %d", len(now), len(old))
	}
}

// TestRevisionsTakenBackBySQL deletes the last revisions below one server: what it answers then is what the database has.
func TestRevisionsTakenBackBySQL(t *testing.T) {
	t.Parallel()
	url := newDatabase(t, sharedPostgres(t))
	c := startCluster(t, url, 1)
	s := &twoServers{t: t, direct: url, a: clients(t, c)}
	s.clients = []*reflected{reflect(t, s.a[0])}
	kept := s.wrote(0, "kept", "kept")
	last := kept
	for n := range 8 {
		last = s.wrote(0, fmt.Sprint("lost", n), "lost")
	}
	s.agree("before")
	execSQL(t, openSQL(t, url), fmt.Sprintf(`DELETE FROM kv WHERE revision > %[1]d; UPDATE kv SET superseded_revision = NULL WHERE superseded_revision > %[1]d; UPDATE kv_meta SET number = %[1]d WHERE key = 'revision'`, kept))
	if next := s.wrote(0, "n0", "after"); next <= last {
		t.Errorf("revision %d is given, and %d was before", next, last)
	}
	want(t, s.a[0], 200, http.MethodGet, configMaps+"/n0", "", "")
	want(t, s.a[0], 409, http.MethodPost, configMaps, "application/json", `{"metadata":{"name":"n0"}}`)
	want(t, s.a[0], 404, http.MethodGet, configMaps+"/lost0", "", "")
	want(t, s.a[0], 404, http.MethodDelete, configMaps+"/lost0", "", "")
	s.agree("after")
	s.wantWentBack(1)

	var skipped struct{ NewestRevision, GoesOnAt int64 }
	store1 := s.wrote(0, "n1", "after")
	store(t, &skipped, "skip-revisions", "1000", "--store", url)
	if skipped.NewestRevision < store1 || skipped.GoesOnAt != skipped.NewestRevision+1001 {
		t.Errorf("skipped %+v", skipped)
	}
	if next := s.wrote(0, "n2", "after"); next < skipped.GoesOnAt {
		t.Errorf("revision %d is given, want %d or above", next, skipped.GoesOnAt)
	}
	s.agree("after revisions were left out")
	wantClean(t, url)
}
