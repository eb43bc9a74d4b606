package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	clientsOfAKind  = 8
	requestInterval = 40 * time.Millisecond // between the requests of a client
	warmup          = 10                    // first requests of each client, which are not measured: all clients connect then
)

// smallClient is a kind of client that sends small requests at a steady rate.
type smallClient struct {
	name, user string
	groups     []string
	path       string
	body       func(name string, i int) []byte
	method     string // POST: creates an object each time; GET: reads its object; "": patches it
}

// smallWriters patch leases and ConfigMaps, as kubelets and controllers do.
var smallWriters = []smallClient{
	{"a kubelet's leases", "system:node:n%d", []string{"system:nodes", "system:authenticated"}, "/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases",
		func(name string, i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":%q},"spec":{"holderIdentity":%q,"leaseDurationSeconds":40,"leaseTransitions":%d}}`, name, name, i)
		}, ""},
	{"a controller's updates", "system:serviceaccount:kube-system:c%d", []string{"system:serviceaccounts", "system:serviceaccounts:kube-system", "system:authenticated"}, configMaps,
		func(name string, i int) []byte {
			return fmt.Appendf(nil, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":%q},"data":{"n":"%d"}}`, name, i)
		}, ""},
}

// createsAndGets are the kinds of clients that create and get ConfigMaps.
var createsAndGets = []smallClient{
	{"creates", "system:serviceaccount:default:m%d", smallWriters[1].groups, configMaps, smallWriters[1].body, http.MethodPost},
	{"gets", "system:serviceaccount:default:g%d", smallWriters[1].groups, configMaps, smallWriters[1].body, http.MethodGet},
}

// runSmall runs all clients of these kinds for e.seconds, and returns the latencies of each kind.
func (e *env) runSmall(s *harness.Server, kinds []smallClient) ([]result, error) {
	end := time.Now().Add(e.seconds)
	return runSmallUntil(s, kinds, func() bool { return !time.Now().Before(end) })
}

// runSmallUntil runs all clients of these kinds until over returns true.
func runSmallUntil(s *harness.Server, kinds []smallClient, over func() bool) ([]result, error) {
	var wg sync.WaitGroup
	var failed atomic.Pointer[error]
	var mu sync.Mutex
	all := make([][]time.Duration, len(kinds))
	for kind, k := range kinds {
		for n := range clientsOfAKind {
			c, err := newClient(s)
			if err != nil {
				return nil, err
			}
			wg.Go(func() {
				latencies, err := k.run(c, n, over)
				if err != nil {
					failed.Store(&err)
				}
				mu.Lock()
				defer mu.Unlock()
				all[kind] = append(all[kind], latencies...)
			})
		}
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return nil, *err
	}
	results := make([]result, len(kinds))
	for i, latencies := range all {
		if len(latencies) == 0 {
			return nil, fmt.Errorf("%s: no request was measured: the run was too short", kinds[i].name)
		}
		slices.Sort(latencies)
		results[i] = result{p50: latencies[len(latencies)/2], p99: latencies[len(latencies)*99/100]}
	}
	return results, nil
}

// run sends the requests of client n of this kind until over returns true.
func (k smallClient) run(c *client, n int, over func() bool) (latencies []time.Duration, err error) {
	user, name := fmt.Sprintf(k.user, n), fmt.Sprintf("small-%d", n)
	_, _ = c.do("POST", k.path, "application/json", "", k.body(name, 1)) // it may exist
	for i := 1; !over(); i++ {
		method, path, code, body := http.MethodPatch, k.path+"/"+name, http.StatusOK, k.body(name, i)
		switch k.method {
		case http.MethodPost:
			method, path, code, body = http.MethodPost, k.path, http.StatusCreated, k.body(fmt.Sprintf("%s-%d", name, time.Now().UnixNano()), i)
		case http.MethodGet:
			method, body = http.MethodGet, nil
		}
		r, err := c.as(user, k.groups, method, path, body)
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
			return nil, fmt.Errorf("%s: %d %s", k.name, resp.StatusCode, text)
		}
		if i > warmup {
			latencies = append(latencies, time.Since(began))
		}
		time.Sleep(requestInterval)
	}
	return latencies, nil
}

// grantClusterAdmin binds all authenticated users to cluster-admin.
func grantClusterAdmin(c *client) error {
	binding := `{"metadata":{"name":"bench"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"cluster-admin"},"subjects":[{"apiGroup":"rbac.authorization.k8s.io","kind":"Group","name":"system:authenticated"}]}`
	_, err := c.do("POST", "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings", "application/json", "", []byte(binding))
	return err
}

// as builds a request that impersonates a user.
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

// compare returns the medians, over all rounds, of the latencies of one kind of client without and with load,
// and the ratio of the p99s in each round.
func compare(idle, loaded [][]result, kind int) (c comparison) {
	c.idle50, c.idle99 = medians(idle, kind)
	c.loaded50, c.loaded99 = medians(loaded, kind)
	for round := range idle {
		c.ratios = append(c.ratios, float64(loaded[round][kind].p99)/float64(idle[round][kind].p99))
	}
	return c
}

type comparison struct {
	idle50, idle99, loaded50, loaded99 time.Duration
	ratios                             []float64 // of p99, one a round
}

func (c comparison) String() string {
	return fmt.Sprintf("idle p50 %v p99 %v   loaded p50 %v p99 %v   ratio of p99 %.1f of %.1f", c.idle50, c.idle99, c.loaded50, c.loaded99, median(c.ratios), c.ratios)
}

// medians returns the medians of p50 and p99 over all rounds, for one kind of client.
func medians(rounds [][]result, kind int) (p50, p99 time.Duration) {
	var all50, all99 []time.Duration
	for _, kinds := range rounds {
		all50, all99 = append(all50, kinds[kind].p50), append(all99, kinds[kind].p99)
	}
	return median(all50).Round(10 * time.Microsecond), median(all99).Round(10 * time.Microsecond)
}

// median returns the upper median.
func median[T cmp.Ordered](of []T) T {
	return slices.Sorted(slices.Values(of))[len(of)/2]
}
