package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	elephants    = 200                   // clients that list all Pods, as fast as they can
	miceOfAKind  = 8                     // clients of each kind of mouse
	mouseEvery   = 40 * time.Millisecond // between requests of one mouse
	elephantPods = 5000
	uncounted    = 10 // requests of each mouse at the beginning, when all connect at once
)

// mouse is a client with little to do that must not wait.
type mouse struct {
	name, user string
	groups     []string
	path       string
	body       func(name string, i int) []byte
	method     string // POST: creates an object each time; GET: reads its object; "": patches it
}

var mice = []mouse{
	{"a kubelet's leases", "system:node:n%d", []string{"system:nodes", "system:authenticated"}, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
		func(name string, i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":%q,"leaseDurationSeconds":40,"leaseTransitions":%d}}`, name, name, i)
		}, ""},
	{"a controller's updates", "system:serviceaccount:kube-system:c%d", []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}, configMaps,
		func(name string, i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d"}}`, name, i)
		}, ""},
}

// readers are the clients that create and get small objects while large ones change.
var readers = []mouse{
	{"creates", "system:serviceaccount:default:m%d", mice[1].groups, configMaps, mice[1].body, http.MethodPost},
	{"gets", "system:serviceaccount:default:g%d", mice[1].groups, configMaps, mice[1].body, http.MethodGet},
}

// measureElephant measures the latencies of small clients while many clients list everything: alone, together
// with them with priority and fairness, and without.
func measureElephant(e *env) error {
	for _, fair := range []bool{true, false} {
		if !e.only.MatchString(fmt.Sprintf("fairness %t", fair)) {
			continue
		}
		if err := e.elephant(fair); err != nil {
			return err
		}
	}
	return nil
}

func (e *env) elephant(fair bool) error {
	s, stop, err := e.start(fmt.Sprintf("--enable-priority-and-fairness=%t", fair))
	if err != nil {
		return err
	}
	defer stop()
	account(s)
	if err := fill(s, elephantPods, pods, func(i int) []byte { return pod(fmt.Sprintf("p%d", i), fmt.Sprintf("n%d", i%500), "a") }); err != nil {
		return err
	}
	c, err := newClient(s)
	if err != nil {
		return err
	}
	if err := letEverybodyIn(c); err != nil {
		return err
	}
	var alone, beside [][]result // by pair, then by kind of mouse
	var served, refused, held []float64
	for range max(1, e.pairs) {
		quiet, err := e.mice(s)
		if err != nil {
			return err
		}
		herd, err := newHerd(s)
		if err != nil {
			return err
		}
		time.Sleep(2 * time.Second)
		profiled := profile(s, e.seconds)
		loud, err := e.mice(s)
		held = append(held, resident(s.Pid()))
		lists, refusals := herd.end()
		if err = cmp.Or(err, profiled()); err != nil {
			return err
		}
		alone, beside, served, refused = append(alone, quiet), append(beside, loud), append(served, lists), append(refused, refusals)
	}
	for i, m := range mice {
		a50, a99 := medians(alone, i)
		b50, b99 := medians(beside, i)
		times := make([]float64, len(alone))
		for n := range times {
			times[n] = float64(beside[n][i].p99) / float64(alone[n][i].p99)
		}
		e.report(fmt.Sprintf("%s, fairness %t", m.name, fair), "alone p50 %v p99 %v   beside %d elephants p50 %v p99 %v   p99 times %.1f of %.1f",
			a50, a99, elephants, b50, b99, median(times), times)
	}
	e.report("  the elephants", "%.1f lists/s   %.1f/s refused   resident %.0f MB", median(served), median(refused), median(held))
	return nil
}

// letEverybodyIn gives all users all rights.
func letEverybodyIn(c *client) error {
	rights := `{"metadata":{"name":"bench"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"}]}`
	_, err := c.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "application/json", "", []byte(rights))
	return err
}

// medians are those of all pairs, for one kind of mouse.
func medians(pairs [][]result, kind int) (p50, p99 time.Duration) {
	var half, most []time.Duration
	for _, kinds := range pairs {
		half, most = append(half, kinds[kind].p50), append(most, kinds[kind].p99)
	}
	return median(half).Round(10 * time.Microsecond), median(most).Round(10 * time.Microsecond)
}

// median is the one in the middle; of two, the larger one.
func median[T cmp.Ordered](of []T) T {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}

// as makes a request of a user.
func (c *client) as(user string, groups []string, method, path string, body []byte) (*http.Request, error) {
	r, err := http.NewRequest(method, c.url+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header = http.Header{"Authorization": {"Bearer " + harness.AdminToken}, "Impersonate-User": {user}, "Impersonate-Group": groups, "Content-Type": {"application/merge-patch+json"}}
	if method == "POST" {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// mice has all mice at work for the usual time, and says how long each kind waited for its
// answers.
func (e *env) mice(s *harness.Server) ([]result, error) {
	return e.small(s, mice)
}

// small is mice for other kinds of mice.
func (e *env) small(s *harness.Server, kinds []mouse) ([]result, error) {
	end := time.Now().Add(e.seconds)
	return miceUntil(s, kinds, func() bool { return !time.Now().Before(end) })
}

// miceUntil has all mice at work until something is over.
func miceUntil(s *harness.Server, kinds []mouse, over func() bool) ([]result, error) {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	var mu sync.Mutex
	all := make([][]time.Duration, len(kinds))
	for kind, m := range kinds {
		for n := range miceOfAKind {
			c, err := newClient(s)
			if err != nil {
				return nil, err
			}
			wg.Go(func() {
				took, err := m.work(c, n, over)
				if err != nil {
					failed.Store(&err)
				}
				mu.Lock()
				defer mu.Unlock()
				all[kind] = append(all[kind], took...)
			})
		}
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	results := make([]result, len(kinds))
	for i, took := range all {
		if len(took) == 0 {
			return nil, fmt.Errorf("%s: it is over too soon", kinds[i].name)
		}
		slices.Sort(took)
		results[i] = result{p50: took[len(took)/2], p99: took[len(took)*99/100]}
	}
	return results, nil
}

// work is what one mouse does: it writes its object again and again, at a steady pace.
func (m mouse) work(c *client, n int, over func() bool) (took []time.Duration, err error) {
	user, name := fmt.Sprintf(m.user, n), fmt.Sprintf("mouse-%d", n)
	_, _ = c.do("POST", m.path, "application/json", "", m.body(name, 1)) // it may exist
	for i := 1; !over(); i++ {
		method, path, code, body := http.MethodPatch, m.path+"/"+name, http.StatusOK, m.body(name, i)
		switch m.method {
		case http.MethodPost:
			method, path, code, body = http.MethodPost, m.path, http.StatusCreated, m.body(fmt.Sprintf("%s-%d", name, time.Now().UnixNano()), i)
		case http.MethodGet:
			method, body = http.MethodGet, nil
		}
		r, err := c.as(user, m.groups, method, path, body)
		if err != nil {
			return nil, err
		}
		began := time.Now()
		resp, err := c.c.Do(r)
		if err != nil {
			return nil, err
		}
		text, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil {
			return nil, err
		}
		if resp.StatusCode != code {
			return nil, fmt.Errorf("%s: %d %s", m.name, resp.StatusCode, text)
		}
		if i > uncounted {
			took = append(took, time.Since(began))
		}
		time.Sleep(mouseEvery)
	}
	return took, nil
}

// herd are the elephants, in a process of their own: what they do with their answers must
// not keep the mice's clients from theirs.
type herd struct {
	cmd   *exec.Cmd
	hold  io.Closer
	said  bytes.Buffer
	began time.Time
}

// herdArgument has the program be a herd; the server's URL and data directory follow.
const herdArgument = "herd"

func newHerd(s *harness.Server) (*herd, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	h := &herd{cmd: exec.Command(self, herdArgument, s.URL, s.DataDir), began: time.Now()}
	h.cmd.Stdout, h.cmd.Stderr = &h.said, os.Stderr
	if h.hold, err = h.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	return h, h.cmd.Start()
}

// end sends the elephants home, and says what they had a second.
func (h *herd) end() (served, refused float64) {
	took := time.Since(h.began).Seconds()
	h.hold.Close()
	if err := h.cmd.Wait(); err != nil {
		fmt.Fprintln(os.Stderr, "bench: the elephants:", err)
	}
	_, _ = fmt.Sscan(h.said.String(), &served, &refused) // nothing was said if they failed
	return served / took, refused / took
}

// beHerd lists until standard input ends, and says how many lists were served and refused.
func beHerd(url, dataDir string) error {
	s := &harness.Server{URL: url, DataDir: dataDir}
	var served, refused atomic.Int64
	for range elephants {
		c, err := newClient(s)
		if err != nil {
			return err
		}
		go graze(c, &served, &refused) // until the process ends
	}
	_, _ = io.Copy(io.Discard, os.Stdin) // whatever ends it
	fmt.Println(served.Load(), refused.Load())
	return nil // those that are served still are cut off
}

// graze lists again and again. It rests for a second after a refusal, as clients do.
func graze(c *client, served, refused *atomic.Int64) {
	for {
		r, err := c.as("elephant", []string{"system:authenticated"}, "GET", "/api/v1/pods", nil)
		if err != nil {
			return
		}
		resp, err := c.c.Do(r)
		if err != nil {
			continue
		}
		_, err = c.drain(resp.Body)
		resp.Body.Close()
		if err == nil && resp.StatusCode == http.StatusOK {
			served.Add(1)
			continue
		}
		refused.Add(1)
		time.Sleep(time.Second)
	}
}
