//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

const (
	electedNamespace = "elected"
	candidatesPath   = "/apis/coordination.k8s.io/v1beta1/namespaces/" + electedNamespace + "/leasecandidates"
	electedLeases    = "/apis/coordination.k8s.io/v1/namespaces/" + electedNamespace + "/leases"

	electionTime = time.Minute // for a leader to be chosen: a server may have to take the lead of elections, and candidates to end first
	termTime     = 5 * time.Second
	renewEvery   = 500 * time.Millisecond
	renewedFor   = 4 * time.Second // for which a leader goes on
)

// election is candidates for a Lease. The client acts as each of them, and as the holder of the Lease.
type election struct {
	*client
	lease      string
	candidates map[string]string // the version that each emulates
	leader     string            // that has renewed the Lease last
	renewed    time.Duration     // before that request
}

// elections has servers choose leaders among candidates: the only one; then an older one, for which the leader has to go; and the newer one
// again when the older one ends. A leader that renews its Lease stays.
func (c *client) elections(ctx context.Context) {
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + electedNamespace + `"}}`}) {
		return
	}
	for turn := 0; ctx.Err() == nil && !c.rec.Lost() && c.elect(ctx, fmt.Sprintf("%s-%d", c.label(), turn)); turn++ {
	}
}

func (c *client) elect(ctx context.Context, lease string) bool {
	e := &election{client: c, lease: lease, candidates: map[string]string{}}
	older, newer := lease+"-older", lease+"-newer"
	defer c.tidy(ctx, candidatesPath+"/"+older, candidatesPath+"/"+newer, electedLeases+"/"+lease)
	if !e.join(ctx, newer, "1.35.0") || !e.leads(ctx, newer) || !e.goesOn(ctx) {
		return false
	}
	if !e.join(ctx, older, "1.34.0") || !e.leads(ctx, older) || !e.goesOn(ctx) {
		return false
	}
	delete(e.candidates, older)
	return c.unmade(ctx, c, candidatesPath+"/"+older) && e.leads(ctx, newer)
}

// join makes a candidate that emulates a version.
func (e *election) join(ctx context.Context, name, emulated string) bool {
	e.candidates[name] = emulated
	return e.made(ctx, e.client, [2]string{candidatesPath, e.candidate(name)})
}

func (e *election) candidate(name string) string {
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"leaseName":%q,"binaryVersion":"1.35.0","emulationVersion":%q,"strategy":"OldestEmulationVersion","renewTime":%q}}`, name, e.lease, e.candidates[name], microTime())
}

// microTime returns the present time in the form of Leases.
func microTime() string { return time.Now().UTC().Format("2006-01-02T15:04:05.000000Z07:00") }

// leads waits until a candidate leads.
func (e *election) leads(ctx context.Context, name string) bool {
	due := &history.Due{Property: "leads", What: "the choice of " + name + " as the leader", Server: -1, Clocked: true, Within: electionTime, Cause: e.rec.Now()}
	return e.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
		return e.step(ctx) == name, e.rec.Lost()
	})
}

// goesOn has the leader renew its Lease for some time.
func (e *election) goesOn(ctx context.Context) bool {
	for began := time.Now(); time.Since(began) < renewedFor && ctx.Err() == nil; {
		e.step(ctx)
	}
	return ctx.Err() == nil
}

// step has the candidates renew themselves, and the leader its Lease if it is still a candidate and no other one is preferred. It returns
// the holder of the Lease; "": it has none, or it is not known.
func (e *election) step(ctx context.Context) (holder string) {
	for name := range e.candidates { // what fails is done again in the next step
		code, _, err := e.send(ctx, e.any(), http.MethodPatch, candidatesPath+"/"+name, mergePatch, fmt.Sprintf(`{"spec":{"renewTime":%q}}`, microTime()))
		if err == nil && code == http.StatusNotFound {
			_, _, _ = e.send(ctx, e.any(), http.MethodPost, candidatesPath, plainJSON, e.candidate(name))
		}
	}
	sleep(ctx, renewEvery)
	check := &history.Check{Property: "leads", What: "the Lease " + e.lease, Server: e.next(), Clocked: true, Call: e.rec.Now()}
	path := electedLeases + "/" + e.lease
	code, answer, err := e.send(ctx, check.Server, http.MethodGet, path, "", "")
	check.Return = e.rec.Now()
	var lease struct {
		Metadata struct{ ResourceVersion string }
		Spec     struct{ HolderIdentity, PreferredHolder string }
	}
	if err != nil || code != http.StatusOK || json.Unmarshal(answer, &lease) != nil {
		return ""
	}
	holder = lease.Spec.HolderIdentity
	if e.leader != "" && check.Return < e.renewed+termTime {
		if holder != e.leader {
			check.Wrong = fmt.Sprintf("%q holds it, although %q renewed it for %s at %s", holder, e.leader, termTime, e.renewed.Round(time.Millisecond))
			check.Seen = []string{fmt.Sprintf("%.500s", answer)}
		}
		e.rec.Add(check)
	}
	if e.candidates[holder] == "" || lease.Spec.PreferredHolder != "" && lease.Spec.PreferredHolder != holder {
		return holder
	}
	call := e.rec.Now()
	code, _, err = e.send(ctx, e.any(), http.MethodPatch, path, mergePatch, fmt.Sprintf(`{"metadata":{"resourceVersion":%q},"spec":{"renewTime":%q,"leaseDurationSeconds":%d}}`, lease.Metadata.ResourceVersion, microTime(), int(termTime/time.Second)))
	if err == nil && code == http.StatusOK {
		e.leader, e.renewed = holder, call
	}
	return holder
}
