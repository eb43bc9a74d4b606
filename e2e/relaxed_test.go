package e2e

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strconv"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

const (
	relaxedFlag   = "--relaxed-durability=leases,events"
	relaxedLeases = "/apis/coordination.k8s.io/v1/namespaces/default/leases"
)

var relaxedMetric = regexp.MustCompile(`(?m)^rowlock_store_relaxed_writes_total (\d+)$`)

// TestRelaxedKill: with --relaxed-durability a server that is killed among renewals of
// leases has lost none that was acknowledged, on either database, and gives no revision twice.
func TestRelaxedKill(t *testing.T) {
	t.Parallel()
	for name, store := range map[string]func(*testing.T) string{
		"sqlite":   func(*testing.T) string { return "" },
		"postgres": func(t *testing.T) string { return newDatabase(t, sharedPostgres(t)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := harness.StartT(t, harness.Options{Store: store(t), Args: []string{relaxedFlag}})
			var newest int64
			for round := range 3 {
				acked := renewUntilKilled(t, s, round)
				again, err := s.Again(context.Background())
				if err != nil {
					t.Fatal(err)
				}
				s = again
				t.Cleanup(s.Kill)
				newest = checkRenewals(t, s, acked, newest)
			}
		})
	}
}

// renewal holds a client's knowledge of its lease: the number of renewals, and the version in the
// last answer.
type renewal struct{ times, version int64 }

type leaseAnswer struct {
	Metadata struct {
		Name            string `json:"name"`
		ResourceVersion string `json:"resourceVersion"`
	} `json:"metadata"`
	Spec struct {
		LeaseTransitions int64 `json:"leaseTransitions"`
	} `json:"spec"`
}

func (l leaseAnswer) renewal() (r renewal, err error) {
	r.times = l.Spec.LeaseTransitions
	r.version, err = strconv.ParseInt(l.Metadata.ResourceVersion, 10, 64)
	return r, err
}

// renewUntilKilled has each of some clients renew a lease of its own until the server dies, and
// returns the last answer of each, by the lease's name.
func renewUntilKilled(t *testing.T, s *harness.Server, round int) map[string]renewal {
	t.Helper()
	a := newAPI(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var mu sync.Mutex
	acked := map[string]renewal{}
	enough := make(chan struct{})
	total := 0
	var wg sync.WaitGroup
	for w := range 8 {
		wg.Go(func() {
			name := fmt.Sprintf("node-%d-%d", round, w)
			method, path := "POST", relaxedLeases
			for i := 1; ; i++ {
				body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"leaseTransitions":%d}}`, name, i)
				kind := "application/json"
				if method == "PATCH" {
					kind = "application/merge-patch+json"
				}
				code, data, err := a.do(ctx, method, path, kind, body)
				if err != nil {
					return // killed
				}
				var got leaseAnswer
				if code/100 != 2 || json.Unmarshal(data, &got) != nil {
					t.Errorf("%s %s: %d %s", method, path, code, data)
					return
				}
				r, err := got.renewal()
				if err != nil || r.times != int64(i) {
					t.Errorf("%s answers %+v, %v to renewal %d", name, r, err, i)
					return
				}
				mu.Lock()
				acked[name] = r
				if total++; total == 400 {
					close(enough)
				}
				mu.Unlock()
				method, path = "PATCH", relaxedLeases+"/"+name
			}
		})
	}
	select {
	case <-enough:
	case <-ctx.Done():
		t.Error("400 renewals took too long")
	}
	code, metrics, err := a.do(t.Context(), "GET", "/metrics", "", "")
	if err != nil || code != http.StatusOK {
		t.Errorf("/metrics: %d, %v", code, err)
	}
	if counted(t, relaxedMetric, string(metrics)) == 0 {
		t.Error("no renewal was acknowledged before the disk had it: the flag does nothing")
	}
	s.Kill()
	wg.Wait()
	return acked
}

// checkRenewals: each lease is as its client knows it, or one renewal further, which was under way; a
// new write has a revision above all that were seen. It returns that.
func checkRenewals(t *testing.T, s *harness.Server, acked map[string]renewal, newest int64) int64 {
	t.Helper()
	a := newAPI(t, s)
	for name, was := range acked {
		code, data, err := a.do(t.Context(), "GET", relaxedLeases+"/"+name, "", "")
		var got leaseAnswer
		if err != nil || code != http.StatusOK || json.Unmarshal(data, &got) != nil {
			t.Fatalf("%s: %d %s %v", name, code, data, err)
		}
		is, err := got.renewal()
		if err != nil || is.times != was.times && is.times != was.times+1 || is.times == was.times && is.version != was.version {
			t.Errorf("%s has %+v, %v; acknowledged was %+v", name, is, err, was)
		}
		newest = max(newest, is.version, was.version)
	}
	code, data, err := a.do(t.Context(), "POST", "/api/v1/namespaces/default/configmaps", "application/json", `{"metadata":{"generateName":"after-"}}`)
	var made leaseAnswer
	if err != nil || code != http.StatusCreated || json.Unmarshal(data, &made) != nil {
		t.Fatalf("a write after the kill: %d %s %v", code, data, err)
	}
	r, err := made.renewal()
	if err != nil || r.version <= newest {
		t.Errorf("a write after the kill has revision %d, %v; %d was given before", r.version, err, newest)
	}
	return r.version
}
