package e2e

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"path/filepath"
	"sync"
	"testing"
	"time"

	_ "modernc.org/sqlite"

	"github.com/rowlock/rowlock/e2e/harness"
)

// api is raw HTTP as the administrator.
type api struct {
	s *harness.Server
	c *http.Client
}

func newAPI(t testing.TB, s *harness.Server) *api {
	t.Helper()
	c, err := s.Client()
	if err != nil {
		t.Fatal(err)
	}
	return &api{s, c}
}

func (a *api) do(ctx context.Context, method, path, contentType, body string) (int, []byte, error) {
	code, _, answer, err := a.send(ctx, method, path, contentType, body)
	return code, answer, err
}

// send is do that returns the header too.
func (a *api) send(ctx context.Context, method, path, contentType, body string) (int, http.Header, []byte, error) {
	var r io.Reader
	if body != "" {
		r = bytes.NewReader([]byte(body))
	}
	req, err := http.NewRequestWithContext(ctx, method, a.s.URL+path, r)
	if err != nil {
		return 0, nil, nil, err
	}
	req.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	if body != "" {
		req.Header.Set("Content-Type", contentType)
	}
	resp, err := a.c.Do(req)
	if err != nil {
		return 0, nil, nil, err
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	return resp.StatusCode, resp.Header, data, err
}

type configMap struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Data map[string]string `json:"data"`
}

type configMapList struct {
	Metadata struct {
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Items []configMap `json:"items"`
}

// fate holds the values of one object that a writer knows: the last acknowledged one, and one that
// was sent but never answered.
type fate struct {
	acked, sent string
}

// TestKillLosesNothing repeatedly kills the server with SIGKILL during a storm of writes, and checks after
// each restart that acknowledged writes are there, that nothing else is, and that the revisions have no gap.
func TestKillLosesNothing(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{"--history-retention=1h"}})
	fates := map[string]*fate{}
	for round := range 5 {
		storm(t, s, round, fates)
		again, err := s.Again(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		s = again
		t.Cleanup(s.Kill)
		checkFates(t, s, fates)
	}
	s.Kill()
	checkContiguous(t, filepath.Join(s.DataDir, "rowlock.db"))
}

// storm writes from many clients, until much was acknowledged and a moment longer, then
// kills the server.
func storm(t *testing.T, s *harness.Server, round int, fates map[string]*fate) {
	a := newAPI(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	const much = 300
	var mu sync.Mutex
	acked, enough := 0, make(chan struct{})
	var wg sync.WaitGroup
	for w := range 16 {
		wg.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				name := fmt.Sprintf("r%d-w%d-%d", round, w, i/3)
				mu.Lock()
				f := fates[name]
				if f == nil {
					f = &fate{}
					fates[name] = f
				}
				f.sent = fmt.Sprint(i)
				first := f.acked == ""
				mu.Unlock()
				method, path, ct, want := http.MethodPost, "/api/v1/namespaces/default/configmaps", "application/json", http.StatusCreated
				body := fmt.Sprintf(`{"metadata":{"name":%q},"data":{"v":"%d"}}`, name, i)
				if !first {
					method, path, ct, want = http.MethodPatch, path+"/"+name, "application/merge-patch+json", http.StatusOK
					body = fmt.Sprintf(`{"data":{"v":"%d"}}`, i)
				}
				code, answer, err := a.do(ctx, method, path, ct, body)
				if err != nil {
					return // the server is gone; this write's outcome is open
				}
				if code != want {
					t.Errorf("%s %s: %d %s", method, path, code, answer)
					return
				}
				mu.Lock()
				f.acked = f.sent
				if acked++; acked == much {
					close(enough)
				}
				mu.Unlock()
			}
		})
	}
	select {
	case <-enough:
		time.Sleep(rand.N(100 * time.Millisecond))
	case <-ctx.Done():
		t.Errorf("%d writes were not acknowledged within %s", much, patience)
	}
	s.Kill()
	wg.Wait()
}

// values returns the values of "v" in the ConfigMaps of the default namespace, by name.
func (a *api) values(t testing.TB) map[string]string {
	t.Helper()
	code, body, err := a.do(context.Background(), http.MethodGet, configMaps, "", "")
	if err != nil || code != http.StatusOK {
		t.Fatalf("list: %d %v %s", code, err, body)
	}
	var list configMapList
	if err := json.Unmarshal(body, &list); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, item := range list.Items {
		found[item.Metadata.Name] = item.Data["v"]
	}
	return found
}

func checkFates(t *testing.T, s *harness.Server, fates map[string]*fate) {
	t.Helper()
	a := newAPI(t, s)
	found := a.values(t)
	acked := 0
	for name, f := range fates {
		v, ok := found[name]
		switch {
		case f.acked != "" && !ok:
			t.Errorf("%s: acknowledged with %s, lost", name, f.acked)
		case ok && v != f.acked && v != f.sent:
			t.Errorf("%s: acknowledged %q, sent %q, found %q", name, f.acked, f.sent, v)
		}
		if f.acked != "" {
			acked++
		}
		// The open write's outcome is known from now on.
		if ok {
			f.acked, f.sent = v, v
		} else {
			f.sent = ""
		}
	}
	for name := range found {
		if fates[name] == nil && name != "kube-root-ca.crt" {
			t.Errorf("%s: nobody wrote it", name)
		}
	}
	if acked == 0 {
		t.Error("nothing was acknowledged: the storm did not blow")
	}
}

func checkContiguous(t *testing.T, file string) {
	t.Helper()
	db, err := sql.Open("sqlite", "file:"+file+"?mode=ro")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var first, last, count int64
	if err := db.QueryRow("select min(revision), max(revision), count(*) from kv").Scan(&first, &last, &count); err != nil {
		t.Fatal(err)
	}
	if first != 1 || count != last {
		t.Errorf("revisions %d to %d, but %d rows", first, last, count)
	}
}
