//go:build unix

package traffic

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
	"github.com/rowlock/rowlock/e2e/robustness/judge"
)

const (
	returnedNamespace = "returned"
	returned          = "/api/v1/namespaces/" + returnedNamespace
	returnedQuota     = returned + "/resourcequotas/two"
	returnedPlaces    = 2
	// duePatience is for how long a client waits for a result after the faults, in addition to the time within which it is due.
	duePatience = 5 * time.Second
	endRests    = 8 // between looks at Events
)

// awaits looks for a result until it comes, also after the traffic of the round has ended.
func (c *client) awaits(ctx context.Context, due *history.Due, look func(context.Context) (came, void bool)) bool {
	patient, cancel := context.WithTimeout(context.WithoutCancel(ctx), patientTime)
	defer cancel()
	for ended := time.Duration(0); patient.Err() == nil && (ended == 0 || c.rec.Now() < ended+due.Within+duePatience); {
		came, void := look(patient)
		if due.Until = c.rec.Now(); void {
			return false
		}
		if came {
			due.Came = due.Until
			break
		}
		if ctx.Err() != nil && ended == 0 {
			ended = due.Until
		}
		c.rest(patient)
	}
	c.rec.Add(due)
	return due.Came != 0
}

// returns fills a quota, deletes an object, and waits until there is a place again. No other client is in the namespace.
func (c *client) returns(ctx context.Context) {
	if !c.made(ctx, c, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + returnedNamespace + `"}}`},
		[2]string{returned + "/resourcequotas", fmt.Sprintf(`{"metadata":{"name":"two"},"spec":{"hard":{"count/secrets":"%d","services":"%[1]d"}}}`, returnedPlaces)}) {
		return
	}
	for turn := c.round; ctx.Err() == nil; turn++ {
		name, path, body := "count/secrets", returned+"/secrets", `{"metadata":{"name":%q}}`
		if turn%2 == 0 {
			name, path, body = "services", returned+"/services", `{"metadata":{"name":%q},"spec":{"clusterIP":"None","ports":[{"port":80}]}}`
		}
		sure := c.clears(ctx, name, path)
		for i := range returnedPlaces {
			// One that was made without an answer may have the last place itself.
			code, _, ok := c.must(ctx, c, http.MethodPost, path, fmt.Sprintf(body, fmt.Sprintf("place-%d", i)), http.StatusCreated, http.StatusConflict, http.StatusForbidden)
			sure = sure && ok && code != http.StatusForbidden
		}
		if code, _, err := c.place(ctx, path, body, returnedPlaces); sure && err == nil && code == http.StatusForbidden {
			c.frees(ctx, path, body)
		}
		c.rest(ctx)
	}
}

// place tries to make one of the objects.
func (c *client) place(ctx context.Context, path, body string, i int) (code int, answer []byte, err error) {
	return c.send(ctx, c.next(), http.MethodPost, path, plainJSON, fmt.Sprintf(body, fmt.Sprintf("place-%d", i)))
}

// clears deletes all objects of a kind, and waits until the quota says so, if it knows of a deletion: an earlier write that was not done,
// or not answered, may be counted until then.
func (c *client) clears(ctx context.Context, name, path string) bool {
	deleted := false
	for i := range returnedPlaces + 1 {
		code, _, ok := c.must(ctx, c, http.MethodDelete, fmt.Sprintf("%s/place-%d", path, i), "", http.StatusOK, http.StatusNotFound)
		if !ok {
			return false
		}
		deleted = deleted || code == http.StatusOK
	}
	return !deleted || c.awaits(ctx, &history.Due{Property: "holds", What: "the count of no objects in a quota, of " + path, Within: judge.ReturnTime, Cause: c.rec.Now()}, func(ctx context.Context) (came, void bool) {
		code, answer, err := c.send(ctx, c.next(), http.MethodGet, returnedQuota, "", "")
		var q struct {
			Status struct{ Used map[string]string }
		}
		if err != nil || code != http.StatusOK || json.Unmarshal(answer, &q) != nil {
			return false, false
		}
		came = q.Status.Used[name] == "0"
		return came, !came && c.taken(ctx, path) > 0
	})
}

// taken returns how many objects there are: a create that has no answer may come to pass late.
func (c *client) taken(ctx context.Context, path string) int {
	var list listAnswer
	code, answer, err := c.send(ctx, c.next(), http.MethodGet, path, "", "")
	if err != nil || code != http.StatusOK || json.Unmarshal(answer, &list) != nil {
		return 0
	}
	return len(list.Items)
}

// frees deletes an object, and makes another one as soon as it can.
func (c *client) frees(ctx context.Context, path, body string) {
	if !c.unmade(ctx, c, path+"/place-0") {
		return
	}
	due := &history.Due{Property: "holds", What: "a place of a quota whose object was deleted, of " + path, Within: judge.ReturnTime, Cause: c.rec.Now()}
	c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
		code, answer, err := c.place(ctx, path, body, returnedPlaces)
		switch outcome(code, answer, err) {
		case history.OK:
			return true, false
		case history.Unknown, history.Exists: // it may be counted, although it was not done
			return false, true
		}
		return false, c.taken(ctx, path) >= returnedPlaces
	})
}

// ends makes two Events at the beginning of a round, a small one and a large one, and looks for them until they are gone.
func (c *client) ends(ctx context.Context) {
	const path = "/api/v1/namespaces/green/events"
	var names []string
	var dues []*history.Due
	for _, size := range []int{10, 25_000} {
		name := "ending-" + c.rec.ID()
		body := fmt.Sprintf(`{"metadata":{"name":%q},"involvedObject":{"kind":"Pod","namespace":"green","name":"p"},"message":%q,"type":"Normal"}`, name, strings.Repeat("x", size))
		if !c.made(ctx, c, [2]string{path, body}) {
			return
		}
		names = append(names, name)
		dues = append(dues, &history.Due{Property: "expiry", What: fmt.Sprintf("the end of an Event of %d bytes", size), Server: c.answered, Stamped: true, Within: judge.EndTime, Cause: c.rec.Now()})
	}
	for i, due := range dues {
		c.awaits(ctx, due, func(ctx context.Context) (came, void bool) {
			for range endRests {
				c.rest(ctx)
			}
			code, _, err := c.send(ctx, c.next(), http.MethodGet, path+"/"+names[i], "", "")
			return err == nil && code == http.StatusNotFound, false
		})
	}
}
