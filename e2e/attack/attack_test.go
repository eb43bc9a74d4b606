package attack

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

func TestMain(m *testing.M) {
	code := m.Run()
	harness.Cleanup()
	os.Exit(code)
}

// patience is the limit on a busy machine for operations that take a second on an idle one.
const patience = 2 * time.Minute

// arena is a server that is attacked, with the users of the attacks.
type arena struct {
	*harness.Server
	client  *http.Client // HTTP/2
	mallory string       // the token of a user with the right to write in the namespace mallory, and definitions and policies
	nobody  string       // the token of a user without rights
	probe   *probe
}

// open starts a server, and the probe.
func open(t *testing.T, args ...string) *arena {
	t.Helper()
	a := &arena{Server: harness.StartT(t, harness.Options{Args: args})}
	a.client = a.ClientOf(t, true)
	a.client.Timeout = patience
	a.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, ns := range []string{"probe", "mallory", "other"} {
		a.admin(t, "POST", "/api/v1/namespaces", fmt.Sprintf(`{"metadata":{"name":%q}}`, ns))
	}
	a.mallory, a.nobody = a.account(t, "mallory", "mallory"), a.account(t, "other", "nobody")
	a.grant(t, "mallory", "mallory", `[{"apiGroups":["*"],"resources":["*"],"verbs":["get","list","watch","create","update","patch","delete"]}]`)
	a.grant(t, "mallory", "", `[{"apiGroups":["apiextensions.k8s.io","admissionregistration.k8s.io"],"resources":["*"],"verbs":["get","create","delete"]}]`)
	a.probe = a.startProbe(t)
	return a
}

// account makes a service account, and returns a token of its own.
func (a *arena) account(t *testing.T, ns, name string) string {
	t.Helper()
	path := "/api/v1/namespaces/" + ns + "/serviceaccounts"
	a.admin(t, "POST", path, fmt.Sprintf(`{"metadata":{"name":%q}}`, name))
	var review struct{ Status struct{ Token string } }
	if err := json.Unmarshal([]byte(a.admin(t, "POST", path+"/"+name+"/token", `{}`)), &review); err != nil || review.Status.Token == "" {
		t.Fatal(err)
	}
	return review.Status.Token
}

const rbacPath = "/apis/rbac.authorization.k8s.io/v1"

// grant gives the service account that has the name of its namespace rules in a namespace, or everywhere if that is empty.
func (a *arena) grant(t *testing.T, account, ns, rules string) {
	t.Helper()
	a.Grant(t, a.client, ns, account, fmt.Sprintf(`{"kind":"ServiceAccount","namespace":%[1]q,"name":%[1]q}`, account), rules)
}

// call is a request.
type call struct {
	method, path, token string
	contentType, body   string
	headers             []string // names and values in turn
}

// send sends a request. The code is 0 if there is no answer, and the answer then is the error.
func (a *arena) send(t testing.TB, c call) (code int, answer string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), c.method, a.URL+c.path, strings.NewReader(c.body))
	if err != nil {
		t.Fatal(err)
	}
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	if r.Header.Set("Content-Type", "application/json"); c.contentType != "" {
		r.Header.Set("Content-Type", c.contentType)
	}
	for i := 0; i+1 < len(c.headers); i += 2 {
		r.Header.Add(c.headers[i], c.headers[i+1])
	}
	resp, err := a.client.Do(r)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return 0, err.Error()
	}
	return resp.StatusCode, string(body)
}

// admin does something as an administrator, which must work.
func (a *arena) admin(t testing.TB, method, path, body string) string {
	t.Helper()
	return a.Admin(t, a.client, method, path, body)
}

// eventually waits until a condition holds.
func eventually(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for end := time.Now().Add(patience); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("%s: not within %v", what, patience)
		}
	}
}

// probe is a client with few requests that attacks must not disturb.
type probe struct {
	arena *arena
	token string
	stop  func() // returns when it has ended

	mu      sync.Mutex
	took    []time.Duration // of each request
	refused int             // 429, 503 and 504
	rounds  int
	failed  []string
}

const probePath = "/apis/coordination.k8s.io/v1/namespaces/probe/leases/probe"

// startProbe starts the probe. It ends before the server does.
func (a *arena) startProbe(t *testing.T) *probe {
	t.Helper()
	m := &probe{arena: a, token: a.account(t, "probe", "probe")}
	a.grant(t, "probe", "probe", `[{"apiGroups":["coordination.k8s.io"],"resources":["leases"],"verbs":["get","update"]}]`)
	a.admin(t, "POST", strings.TrimSuffix(probePath, "/probe"), `{"metadata":{"name":"probe"},"spec":{"holderIdentity":"probe"}}`)
	stop, done := make(chan struct{}), make(chan struct{})
	client := a.ClientOf(t, true)
	client.Timeout = patience
	go func() {
		defer close(done)
		m.run(client, stop)
	}()
	m.stop = sync.OnceFunc(func() {
		close(stop)
		<-done
	})
	t.Cleanup(m.stop)
	return m
}

// run renews the lease every 40 ms, and reads it each time; each 25th read is by a connection of its own.
func (m *probe) run(client *http.Client, stop <-chan struct{}) {
	every := time.NewTicker(40 * time.Millisecond)
	defer every.Stop()
	var lease map[string]any
	for n := 0; ; n++ {
		if n%25 == 0 {
			client.CloseIdleConnections()
		}
		answer, ok := m.ask(client, http.MethodGet, nil)
		if ok {
			ok = json.Unmarshal(answer, &lease) == nil
		}
		if spec, has := lease["spec"].(map[string]any); ok && has {
			spec["renewTime"] = time.Now().UTC().Format("2006-01-02T15:04:05.000000Z")
			if body, err := json.Marshal(lease); err == nil {
				m.ask(client, http.MethodPut, body)
			}
		}
		m.mu.Lock()
		m.rounds++
		m.mu.Unlock()
		select {
		case <-stop:
			return
		case <-every.C:
		}
	}
}

// ask sends a request, and records the outcome.
func (m *probe) ask(client *http.Client, method string, body []byte) (answer []byte, ok bool) {
	began, code := time.Now(), 0
	r, err := http.NewRequest(method, m.arena.URL+probePath, bytes.NewReader(body))
	if err == nil {
		r.Header.Set("Authorization", "Bearer "+m.token)
		r.Header.Set("Content-Type", "application/json")
		var resp *http.Response
		if resp, err = client.Do(r); err == nil {
			code = resp.StatusCode
			answer, err = io.ReadAll(resp.Body)
			err = errors.Join(err, resp.Body.Close())
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.took = append(m.took, time.Since(began))
	switch {
	case err == nil && code == http.StatusOK:
		return answer, true
	case err == nil && (code == http.StatusTooManyRequests || code == http.StatusServiceUnavailable || code == http.StatusGatewayTimeout):
		m.refused++
	default:
		m.failed = append(m.failed, fmt.Sprintf("%s: %d %v %.200s", method, code, err, answer))
	}
	return nil, false
}

// during runs attacks while the probe sends requests, and logs their cost to it and to the server. The server may refuse one
// in fifty of the probe's requests, and two more, and may have grown by megabytes afterwards.
func (a *arena) during(t *testing.T, megabytes int, attacks func()) {
	t.Helper()
	m := a.probe
	m.mu.Lock()
	m.took, m.refused, m.failed = nil, 0, nil
	from := m.rounds
	m.mu.Unlock()
	goroutines, descriptors, memory, spent := a.Goroutines(t), a.Descriptors(t), a.Resident(t), a.ProcessorTime(t)
	attacks()
	eventually(t, "the probe sends requests", func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.rounds >= from+5
	})
	grown, cost := a.Resident(t)-memory, a.ProcessorTime(t)-spent
	m.mu.Lock()
	took, refused, failed := slices.Clone(m.took), m.refused, m.failed
	m.mu.Unlock()
	slices.Sort(took)
	n := len(took)
	t.Logf("the probe: %d requests, %d refused, half within %v, 99 %% within %v, the slowest %v; the server: %v of processors, %d MB more",
		n, refused, took[n/2].Round(10*time.Microsecond), took[n*99/100].Round(10*time.Microsecond), took[n-1].Round(10*time.Microsecond), cost, grown>>20)
	if len(failed) > 0 {
		t.Errorf("the probe fails: %q", failed)
	}
	if refused > 2+n/50 {
		t.Errorf("of %d requests of the probe %d are refused", n, refused)
	}
	if p99 := took[n*99/100]; p99 > time.Minute {
		t.Errorf("a request of the probe takes %v", p99)
	}
	if grown > megabytes<<20 {
		t.Errorf("the server has grown by %d MB", grown>>20)
	}
	a.GoroutinesEnd(t, goroutines+50)
	eventually(t, "descriptors are closed", func() bool { return a.Descriptors(t) < descriptors+20 })
	if log := a.Log(); strings.Contains(log, "panic") {
		t.Errorf("the server panicked:\n%.5000s", log[strings.Index(log, "panic"):])
	}
}

// attack is one, with its name.
type attack struct {
	name string
	run  func(*testing.T, *arena)
}

// together runs attacks at the same time, however many tests may run in parallel.
func (a *arena) together(t *testing.T, megabytes int, list ...attack) {
	t.Helper()
	a.during(t, megabytes, func() {
		var running sync.WaitGroup
		for _, one := range list {
			running.Go(func() { t.Run(one.name, func(t *testing.T) { one.run(t, a) }) })
		}
		running.Wait()
	})
}

// TestWaiting: clients that send nothing, or slowly, or do not read. Each costs the server a connection for a bounded time,
// and no other client waits for them.
func TestWaiting(t *testing.T) {
	t.Parallel()
	// The request timeout is what slow clients are given; a busy machine, for the others, needs less.
	a := open(t, "--request-timeout=15s", "--max-requests-inflight=20", "--max-mutating-requests-inflight=20", "--max-slow-requests-per-user=60")
	for i := range 24 {
		a.admin(t, "POST", configMaps, fmt.Sprintf(`{"metadata":{"name":"large-%d"},"data":{"a":%q}}`, i, strings.Repeat("x", 500<<10)))
	}
	a.together(t, 500, slices.Concat(strangers, slowClients)...)
}

// TestCosts: requests that cost much if they are believed, and frames that cost more than they should. Each is answered with little work.
func TestCosts(t *testing.T) {
	t.Parallel()
	a := open(t, "--feature-gates=CBORServingAndStorage=true")
	for _, f := range bombs(t) {
		t.Run(f.name, func(t *testing.T) { a.during(t, 400, func() { a.explode(t, f.bombs) }) })
	}
	t.Run("expressions", func(t *testing.T) { a.during(t, 400, func() { costlyPolicy(t, a) }) })
	t.Run("names", func(t *testing.T) { a.during(t, 200, func() { namesInMetrics(t, a) }) })
	t.Run("frames", func(t *testing.T) { a.together(t, 200, frames...) })
}
