package e2e

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
)

// longQuery is the number of bytes of selectors that fit into a request, in addition to its headers.
const longQuery = 1000 << 10

// joined writes terms until no more fit.
func joined(head, tail string, term func(int) string) string {
	var b strings.Builder
	b.WriteString(head)
	for i := 0; ; i++ {
		t := term(i)
		if b.Len()+len(t)+len(tail)+1 > longQuery {
			break
		}
		b.WriteString(t)
		b.WriteByte(',')
	}
	return strings.TrimSuffix(b.String(), ",") + tail
}

// longSelectors are queries as long as they may be, and how many of 60 objects each selects.
var longSelectors = []struct {
	name, query string
	want        int
}{
	{"values", "labelSelector=" + joined("n in (", ")", func(i int) string { return fmt.Sprint("v", i) }), 60},
	{"other values", "labelSelector=" + joined("n notin (", ")", func(i int) string { return fmt.Sprint("v", i+30) }), 30},
	{"keys that are not there", "labelSelector=" + joined("", "", func(i int) string { return fmt.Sprintf("!k%x", i) }), 60},
	{"keys with other values", "labelSelector=" + joined("", "", func(i int) string { return fmt.Sprintf("%x!=1", i) }), 60},
	{"one key", "labelSelector=" + joined("", "", func(i int) string { return fmt.Sprintf("n!=v%d", i+30) }), 30},
	{"short terms", "labelSelector=" + joined("", "", func(int) string { return "n" }), 60},
	{"large numbers", "labelSelector=" + joined("", "", func(i int) string { return fmt.Sprintf("size>%d", i%7) }), 53},
	{"long values", "labelSelector=" + joined("n in (", ",v1)", func(i int) string { return fmt.Sprintf("%063d", i) }), 1},
	{"names", "fieldSelector=" + joined("", "", func(i int) string { return fmt.Sprint("metadata.name!=c", i+30) }), 30},
	{"escaped", "labelSelector=" + url.QueryEscape(joined("n in (", ")", func(i int) string { return fmt.Sprint("v", i) })[:longQuery/4]+")"), 60},
}

// TestLongSelectors: selectors of thousands of terms and values work. Many concurrent ones, and many that
// stay as watches, cost their sender an answer 429 rather than the server its memory, and others are served
// at the same time.
func TestLongSelectors(t *testing.T) {
	t.Parallel()
	s := harness.StartT(t, harness.Options{Args: []string{noRootCA, "--request-timeout=5m"}}) // a busy machine has its time
	const configMaps = "/api/v1/namespaces/default/configmaps"
	for i := range 60 {
		body := fmt.Sprintf(`{"metadata":{"name":"c%d","labels":{"n":"v%d","size":"%d"}}}`, i, i, i)
		if a := asAdmin(t, s, "POST", configMaps, body); a.code != 201 {
			t.Fatal(a)
		}
	}
	binding := `{"metadata":{"name":"readers"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"kind":"Group","name":"readers"}]}`
	if a := asAdmin(t, s, "POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", binding); a.code != 201 {
		t.Fatal(a)
	}
	for _, c := range longSelectors {
		began := time.Now()
		a := asAdmin(t, s, "GET", configMaps+"?"+strings.ReplaceAll(c.query, " ", "+"), "")
		var list struct{ Items []json.RawMessage }
		if a.code != 200 {
			t.Errorf("%s: %d %.200s", c.name, a.code, a.body)
		} else if err := json.Unmarshal([]byte(a.body), &list); err != nil || len(list.Items) != c.want {
			t.Errorf("%s: %d objects, want %d (%v)", c.name, len(list.Items), c.want, err)
		}
		t.Logf("%s: %d bytes, %s", c.name, len(c.query), time.Since(began))
	}
	before := s.Resident(t)
	t.Run("lists", func(t *testing.T) { longLists(t, s, configMaps) })
	t.Run("watches", func(t *testing.T) { longWatches(t, s, configMaps) })
	if grown := s.Resident(t) - before; grown > 600<<20 {
		t.Errorf("long selectors took %d MB", grown>>20)
	}
}

// as sends a request of one of the readers.
func as(ctx context.Context, client *http.Client, s *harness.Server, user, method, path, body string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, s.URL+strings.ReplaceAll(path, " ", "+"), strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+harness.AdminToken)
	r.Header.Set("Impersonate-User", user)
	r.Header.Set("Impersonate-Group", "readers")
	r.Header.Set("Content-Type", "application/json")
	return client.Do(r)
}

// longLists: one user sends lists with long selectors, as many as it can.
func longLists(t *testing.T, s *harness.Server, path string) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var served, refused, late atomic.Int64
	var senders sync.WaitGroup
	for i := range 12 {
		client := s.ClientOf(t, i%2 == 0)
		senders.Go(func() {
			for n := i; ctx.Err() == nil; n++ {
				resp, err := as(ctx, client, s, "greedy", "GET", path+"?"+longSelectors[n%len(longSelectors)].query, "")
				if err != nil {
					if ctx.Err() == nil {
						t.Error(err)
					}
					return
				}
				_, _ = io.Copy(io.Discard, resp.Body)
				resp.Body.Close()
				switch {
				case resp.StatusCode == 200:
					served.Add(1)
				case resp.StatusCode == 504: // so may be asked too much, on a slow machine
					late.Add(1)
				case resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "":
					refused.Add(1)
					select { // much earlier than required
					case <-time.After(250 * time.Millisecond):
					case <-ctx.Done():
					}
				default:
					t.Errorf("%d", resp.StatusCode)
					return
				}
			}
		})
	}
	// Somebody else lists, also with a selector that is long, and writes.
	client := s.ClientOf(t, true)
	var took []time.Duration
	long := "?" + longSelectors[0].query[:50<<10] + ")"
	for i := range 5 {
		began := time.Now()
		for _, r := range [][3]string{
			{"GET", path + "?labelSelector=n=v1", ""}, {"GET", path + long, ""}, {"GET", path + "/c1", ""},
			{"POST", path, fmt.Sprintf(`{"metadata":{"name":"beside-%d"}}`, i)},
		} {
			resp, err := as(ctx, client, s, "modest", r[0], r[1], r[2])
			if err != nil {
				t.Fatal(err)
			}
			b, _ := io.ReadAll(resp.Body)
			resp.Body.Close()
			if resp.StatusCode/100 != 2 {
				t.Errorf("%s %.100s: %d %.200s", r[0], r[1], resp.StatusCode, b)
			}
		}
		took = append(took, time.Since(began))
	}
	stop()
	senders.Wait()
	slices.Sort(took)
	if n := late.Load(); n > 0 {
		leniency.Note(t, "%d lists took longer than a request may", n)
	}
	t.Logf("%d long lists served, %d refused; others: median %s, worst %s", served.Load(), refused.Load(), took[len(took)/2], took[len(took)-1])
	if served.Load() == 0 {
		t.Error("no list with a long selector was served")
	}
}

// longWatches: one user leaves watches with long selectors open, as many as it can.
func longWatches(t *testing.T, s *harness.Server, path string) {
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	watch := func(user, query string) (*http.Response, error) {
		return as(ctx, s.ClientOf(t, true), s, user, "GET", path+"?watch=1&"+query, "")
	}
	open, refused := 0, 0
	for i := range 20 {
		resp, err := watch("greedy", longSelectors[i%len(longSelectors)].query)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		switch {
		case resp.StatusCode == 200:
			open++
		case resp.StatusCode == 429 && resp.Header.Get("Retry-After") != "":
			refused++
		default:
			t.Errorf("%d", resp.StatusCode)
		}
	}
	t.Logf("%d watches with long selectors are open, %d were refused, %d MB resident", open, refused, s.Resident(t)>>20)
	if open == 0 || refused == 0 {
		t.Errorf("%d watches are open, %d were refused", open, refused)
	}
	resp, err := watch("modest", longSelectors[0].query[:50<<10]+")")
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != 200 {
		t.Fatal(resp.StatusCode)
	}
	if line, err := bufio.NewReader(resp.Body).ReadString('\n'); err != nil || !strings.Contains(line, `"type":"ADDED"`) {
		t.Errorf("%.200s %v", line, err)
	}
	// The memory is released at the end of the watches.
	stop()
	for end := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		resp, err := as(t.Context(), s.ClientOf(t, true), s, "greedy", "GET", path+"?"+longSelectors[0].query, "")
		if err != nil {
			t.Fatal(err)
		}
		resp.Body.Close()
		if resp.StatusCode == 200 {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("%d after all watches have ended", resp.StatusCode)
		}
	}
}
