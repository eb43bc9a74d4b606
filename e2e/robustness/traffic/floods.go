//go:build unix

package traffic

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

const (
	flooded      = "flooded"
	floodedPath  = "/api/v1/namespaces/" + flooded + "/configmaps"
	levels       = "/apis/flowcontrol.apiserver.k8s.io/v1/prioritylevelconfigurations"
	flowSchemas  = "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas"
	schemaHeader = "X-Kubernetes-Pf-Flowschema-Uid"
	levelHeader  = "X-Kubernetes-Pf-Prioritylevel-Uid"

	floodHolds   = 400 * time.Millisecond // how long the webhook delays each request of a flood
	floodTime    = 2 * requestTime        // for its answer: longer than a request may wait in a queue
	floodSize    = 15                     // requests of a flood at once
	floodLater   = 2                      // so many of them must end after a request that another user of the level sends last
	floodSeats   = 3                      // of a level that has one share next to the default levels, rounded up
	floodQueue   = 5                      // requests in each of the 64 queues of the level, of which a user gets four
	strandedTime = 10 * time.Second       // for all requests of a flood whose level is deleted, less than each may wait in a queue
	mouseTime    = judge.RefusedTime / 2  // for a request of another level, not counting faults
	exemptFlood  = 12                     // requests of administrators at once
)

// dam is a webhook that delays requests, and counts the concurrent ones of each user.
type dam struct {
	server *httptest.Server
	mu     sync.Mutex
	now    map[string]int
	most   map[string]int
}

func newDam() *dam {
	d := &dam{now: map[string]int{}, most: map[string]int{}}
	d.server = httptest.NewUnstartedServer(d)
	d.server.Config.ErrorLog = log.New(io.Discard, "", 0) // servers are killed in the middle of calls
	d.server.StartTLS()
	return d
}

// ServeHTTP answers an AdmissionReview after a while.
func (d *dam) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID      string                    `json:"uid"`
			UserInfo struct{ Username string } `json:"userInfo"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	user := review.Request.UserInfo.Username
	d.mu.Lock()
	d.now[user]++
	d.most[user] = max(d.most[user], d.now[user])
	d.mu.Unlock()
	sleep(r.Context(), floodHolds) // a server that was killed no longer runs the request
	d.mu.Lock()
	d.now[user]--
	d.mu.Unlock()
	w.Header().Set("Content-Type", plainJSON)
	fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, review.Request.UID)
}

// peak returns the largest number of concurrent requests of a user.
func (d *dam) peak(user string) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.most[user]
}

// forget drops the largest number so far. A server ends the call for a request that its client gives up after it has given the seat to
// another one, so that both may be counted for a moment.
func (d *dam) forget(user string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.most[user] = d.now[user]
}

func (d *dam) configuration() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: d.server.Certificate().Raw})
	return fmt.Sprintf(`{"metadata":{"name":"dam"},"webhooks":[{"name":"dam.rowlock.dev","sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":10,"failurePolicy":"Ignore","clientConfig":{"url":%q,"caBundle":%q},
"namespaceSelector":{"matchLabels":{"kubernetes.io/metadata.name":%q}},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"],"operations":["CREATE"]}]}]}`, d.server.URL, base64.StdEncoding.EncodeToString(ca), flooded)
}

// flood is one turn of floods.
type flood struct {
	*client
	*dam
	name    string // of the level and the first schema
	user    string
	server  int    // that receives the flood
	first   string // UIDs of the schemas: the first one is deleted while requests wait, and the second one then matches
	second  string
	level   string // UID of the level
	exempt  string // UID of the exempt schema
	mouse   *client
	flooder *client
	calm    *client // a user of the same level
}

// floods sends more requests of one user than its priority level admits, to one server after the other, while another user and
// administrators send requests too, and deletes the level while requests wait. Each request must belong to the first schema that matches
// it, also after the schemas have changed.
func (c *client) floods(ctx context.Context) {
	d := newDam()
	defer d.server.Close()
	mouse, flooder, calm := c.Traffic.client(c.name+"-mouse", c.proto, false), c.Traffic.client(c.name+"-flooder", c.proto, false), c.Traffic.client(c.name+"-calm", c.proto, false)
	defer mouse.http.CloseIdleConnections()
	defer flooder.http.CloseIdleConnections()
	defer calm.http.CloseIdleConnections()
	mouse.as, mouse.groups = "mouse", []string{"system:authenticated"}
	f := &flood{client: c, dam: d, mouse: mouse, flooder: flooder, calm: calm}
	c.unmade(ctx, c, webhooks+"/dam") // left by the last round, whose webhook no longer runs
	made := [][2]string{
		{"/api/v1/namespaces", `{"metadata":{"name":"` + flooded + `"}}`}, {floodedPath, `{"metadata":{"name":"kept"}}`}, {webhooks, d.configuration()},
		{"/apis/rbac.authorization.k8s.io/v1/clusterroles", `{"metadata":{"name":"floods"},"rules":[{"apiGroups":[""],"resources":["configmaps"],"verbs":["get","create"]}]}`},
		{"/apis/rbac.authorization.k8s.io/v1/namespaces/" + flooded + "/rolebindings", `{"metadata":{"name":"floods"},"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"floods"},"subjects":[{"kind":"Group","apiGroup":"rbac.authorization.k8s.io","name":"system:authenticated"}]}`},
	}
	if !c.made(ctx, c, made...) {
		return
	}
	for turn := 0; ctx.Err() == nil && !c.rec.Lost(); turn++ {
		f.name = fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		f.user, f.server = f.name, turn%c.c.Len()
		flooder.as, flooder.groups = f.user, mouse.groups
		calm.as, calm.groups = f.user+"-calm", mouse.groups
		f.run(ctx)
	}
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
	defer cancel()
	c.unmade(end, c, webhooks+"/dam")
}

// run makes the level and its schemas, floods the level, deletes it, makes it again, and floods it while it is deleted.
func (f *flood) run(ctx context.Context) {
	var ok bool
	if f.exempt, ok = f.uid(ctx, flowSchemas+"/exempt"); !ok {
		return
	}
	level := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"type":"Limited","limited":{"nominalConcurrencyShares":1,"lendablePercent":0,"borrowingLimitPercent":0,"limitResponse":{"type":"Queue","queuing":{"queues":64,"handSize":4,"queueLengthLimit":%d}}}}}`, f.name, floodQueue)
	schema := func(name, level string, precedence int) string {
		return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"matchingPrecedence":%d,"priorityLevelConfiguration":{"name":%q},"distinguisherMethod":{"type":"ByUser"},"rules":[{"subjects":[{"kind":"User","user":{"name":%q}},{"kind":"User","user":{"name":%q}}],"resourceRules":[{"verbs":["*"],"apiGroups":["*"],"resources":["*"],"namespaces":["*"]}]}]}}`, name, precedence, level, f.user, f.calm.as)
	}
	last := f.name + "-rest"
	if !f.client.made(ctx, f.client, [2]string{flowSchemas, schema(last, "workload-high", 700)}, [2]string{levels, level}, [2]string{flowSchemas, schema(f.name, f.name, 600)}) {
		return
	}
	defer func() {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), requestTime)
		defer cancel()
		for _, path := range []string{flowSchemas + "/" + f.name, levels + "/" + f.name, flowSchemas + "/" + last} {
			f.unmade(end, f.client, path)
		}
	}()
	if f.first, ok = f.uid(ctx, flowSchemas+"/"+f.name); !ok {
		return
	}
	if f.second, ok = f.uid(ctx, flowSchemas+"/"+last); !ok {
		return
	}
	if f.level, ok = f.uid(ctx, levels+"/"+f.name); !ok {
		return
	}
	if !f.belongs(ctx, f.first, "the first schema that matches") {
		return
	}
	f.giveUp(ctx)
	f.send(ctx, false)
	if !f.unmade(ctx, f.client, levels+"/"+f.name) { // after which the schema no longer matches
		return
	}
	f.belongs(ctx, f.second, "the schema behind one without a level")
	if !f.client.made(ctx, f.client, [2]string{levels, level}) {
		return
	}
	if f.level, ok = f.uid(ctx, levels+"/"+f.name); ok && f.belongs(ctx, f.first, "the schema whose level is there again") {
		f.send(ctx, true)
	}
}

// uid returns the UID of an object.
func (f *flood) uid(ctx context.Context, path string) (string, bool) {
	var o struct{ Metadata struct{ UID string } }
	_, answer, ok := f.must(ctx, f.client, http.MethodGet, path, "", http.StatusOK)
	if !ok || json.Unmarshal(answer, &o) != nil {
		return "", false
	}
	return o.Metadata.UID, o.Metadata.UID != ""
}

// classified is an answer with the schema and the level of its request.
type classified struct {
	code          int
	schema, level string
	err           error
	took          time.Duration
	text          string
	done          time.Time
}

// classify sends a request to a server.
func (c *client) classify(ctx context.Context, server int, method, path, body string) classified {
	return c.classifyFor(ctx, requestTime, server, method, path, body)
}

// classifyFor sends a request to a server, and waits for its answer for so long.
func (c *client) classifyFor(ctx context.Context, long time.Duration, server int, method, path, body string) classified {
	ctx, cancel := context.WithTimeout(ctx, long)
	defer cancel()
	began := time.Now()
	resp, err := c.open(ctx, server, method, path, plainJSON, body)
	if err != nil {
		return classified{err: err, took: time.Since(began), done: time.Now()}
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return classified{resp.StatusCode, resp.Header.Get(schemaHeader), resp.Header.Get(levelHeader), err, time.Since(began), fmt.Sprintf("%.200s", text), time.Now()}
}

// belongs sends requests of the user until they belong to a schema, and records how long that takes.
func (f *flood) belongs(ctx context.Context, schema, what string) bool {
	due := &history.Due{Property: "fairness", What: fmt.Sprintf("the place of requests of %s in %s", f.user, what), Server: f.server, Alone: true, Within: judge.RightsTime, Cause: f.rec.Now()}
	for ctx.Err() == nil && !f.rec.Lost() && due.Came == 0 && due.Until-due.Cause < 4*judge.RightsTime {
		a := f.flooder.classify(ctx, f.server, http.MethodGet, floodedPath+"/kept", "")
		if a.err == nil && a.schema != "" || a.took >= requestTime {
			if due.Until = f.rec.Now(); a.schema == schema && a.code == http.StatusOK {
				due.Came = due.Until
			}
		}
		f.rest(ctx)
	}
	if due.Until != 0 {
		f.rec.Add(due)
	}
	return due.Came != 0
}

// send floods the level. The server may run as many requests as the level has seats, queue as many as its queues hold, and refuse the
// others; requests of other levels must not notice. With deletes, send deletes the level while requests wait, which must end nevertheless.
func (f *flood) send(ctx context.Context, deletes bool) {
	var floods, others sync.WaitGroup
	answers := make([]classified, floodSize)
	f.calm.classify(ctx, f.server, http.MethodGet, floodedPath+"/kept", "") // so that it has a connection: a new one takes long on a busy machine
	call := f.rec.Now()
	for i := range floodSize {
		floods.Go(func() {
			answers[i] = f.flooder.classifyFor(ctx, floodTime, f.server, http.MethodPost, floodedPath+"?dryRun=All", `{"metadata":{"generateName":"flood-"}}`)
		})
	}
	sleep(ctx, floodHolds/4)
	var last classified
	others.Go(func() {
		last = f.calm.classify(ctx, f.server, http.MethodPost, floodedPath+"?dryRun=All", `{"metadata":{"generateName":"calm-"}}`)
	})
	others.Go(func() { f.mice(ctx) })
	others.Go(func() { f.administrators(ctx) })
	if deletes {
		f.unmade(ctx, f.client, levels+"/"+f.name)
	}
	floods.Wait()
	check := f.check("a flood of "+f.user, call)
	for i, a := range answers {
		check.Seen = append(check.Seen, fmt.Sprintf("request %d: %d %v after %s, of schema %s and level %s: %s", i, a.code, a.err, a.took.Round(time.Millisecond), a.schema, a.level, a.text))
		switch {
		case a.err != nil && a.took >= floodTime:
			check.Wrong = fmt.Sprintf("a request waits for more than %s for a seat", floodTime)
		case a.err == nil && a.schema != "" && (a.schema != f.first || a.level != f.level) && !deletes:
			check.Wrong = "a request belongs to another schema or level than the one before"
		case a.code == http.StatusForbidden || a.code == http.StatusUnauthorized:
			check.Wrong = "a request is forbidden"
		}
	}
	// Requests that arrive after the deletion belong to another level, and those that are given up, as at the end of a round, may be counted
	// for a moment after their seats have others.
	cut := slices.ContainsFunc(answers, func(a classified) bool { return a.err != nil })
	if most := f.peak(f.user); most > floodSeats && !deletes && !cut {
		check.Wrong = fmt.Sprintf("%d requests of a level with %d seats run at the same time", most, floodSeats)
		check.Calm = most <= 2*floodSeats // those that a fault has ended may still be counted for a moment
	}
	f.rec.Add(check)
	if others.Wait(); deletes {
		f.ended(call, answers)
	} else {
		f.inTurn(call, answers, &last)
	}
}

// ended records when the requests of a flood ended whose level was deleted while they waited. It skips those that lost their
// connections.
func (f *flood) ended(call time.Duration, flood []classified) {
	due := &history.Due{Property: "fairness", What: "an answer to a request that waits while its priority level is deleted", Server: f.server, Alone: true, Within: strandedTime, Cause: call}
	for _, a := range flood {
		if a.err != nil && a.took < floodTime {
			continue
		}
		if due.Until = max(due.Until, call+a.took); a.err != nil {
			due.Came = 0
			break
		}
		due.Came = due.Until
	}
	if due.Until != 0 {
		f.rec.Add(due)
	}
}

// inTurn checks that a request of another user of the level did not wait for the whole flood.
func (f *flood) inTurn(call time.Duration, flood []classified, last *classified) {
	later, held := 0, 0
	check := f.check("a request of a user whose level another user floods", call)
	for _, a := range append(flood, *last) {
		if a.code == http.StatusCreated && a.took >= floodHolds {
			held++
		}
		if a.done.After(last.done.Add(floodHolds / 2)) {
			later++
		}
		check.Seen = append(check.Seen, fmt.Sprintf("%d %v, done after %s", a.code, a.err, a.took.Round(time.Millisecond)))
	}
	if held <= floodSize { // the server may not have received the webhook yet
		return
	}
	if later < floodLater {
		check.Wrong = "it waits for the whole flood"
	}
	f.rec.Add(check)
}

func (f *flood) check(what string, call time.Duration) *history.Check {
	return &history.Check{Property: "fairness", What: what, Server: f.server, Call: call, Return: f.rec.Now(), Calm: true}
}

// mice sends requests of a user of another level during the flood.
func (f *flood) mice(ctx context.Context) {
	for range 4 {
		call := f.rec.Now()
		a := f.mouse.classify(ctx, f.server, http.MethodGet, floodedPath+"/kept", "")
		check := f.check("a request of another user than the one who floods", call)
		check.Seen = append(check.Seen, fmt.Sprintf("%d %v after %s, of schema %s: %s", a.code, a.err, a.took.Round(time.Millisecond), a.schema, a.text))
		switch {
		case a.code == http.StatusTooManyRequests:
			check.Wrong = "it is refused"
		case a.took > mouseTime:
			check.Wrong = fmt.Sprintf("it takes more than %s", mouseTime)
		case a.err == nil && (a.schema == f.first || a.level == f.level):
			check.Wrong = "it belongs to the schema of the other user"
		}
		f.rec.Add(check)
		f.mouse.rest(ctx)
	}
}

// administrators sends requests of an exempt level, which all run at the same time.
func (f *flood) administrators(ctx context.Context) {
	var all sync.WaitGroup
	call := f.rec.Now()
	answers := make([]classified, exemptFlood)
	for i := range exemptFlood {
		all.Go(func() {
			answers[i] = f.classify(ctx, f.server, http.MethodPost, floodedPath+"?dryRun=All", `{"metadata":{"generateName":"exempt-"}}`)
		})
	}
	all.Wait()
	check := f.check("requests of administrators during a flood", call)
	for i, a := range answers {
		check.Seen = append(check.Seen, fmt.Sprintf("request %d: %d %v after %s, of schema %s: %s", i, a.code, a.err, a.took.Round(time.Millisecond), a.schema, a.text))
		switch {
		case a.code == http.StatusTooManyRequests:
			check.Wrong = "one is refused"
		case a.err == nil && a.schema != "" && a.schema != f.exempt:
			check.Wrong = "one is not of the exempt schema"
		case a.took > mouseTime:
			check.Wrong = fmt.Sprintf("one takes more than %s", mouseTime)
		}
	}
	f.rec.Add(check)
}
