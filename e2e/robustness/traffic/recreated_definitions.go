//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// recreateDefinitions makes definitions with objects, and deletes them. What comes under the name of a definition again has no objects, and
// watches of the former objects end.
func (c *client) recreateDefinitions(ctx context.Context) {
	for turn := 0; ctx.Err() == nil && c.recreateDefinition(ctx, turn); turn++ {
	}
}

func (c *client) recreateDefinition(ctx context.Context, turn int) bool {
	const group = "relics.rowlock.dev"
	plural := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
	key := history.Key{Resource: "customresourcedefinitions.apiextensions.k8s.io", Name: plural + "." + group}
	body := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"group":%q,"scope":"Namespaced","names":{"plural":%q,"kind":"Relic%[4]dx%[5]d","listKind":"Relic%[4]dx%[5]dList"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":{"type":"object"}}}]}}`, key.Name, group, plural, c.round, turn)
	objects := "/apis/" + group + "/v1/namespaces/" + narrowNamespace + "/" + plural
	remove := func() bool { // also when the round ends
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Minute)
		defer cancel()
		_, ok := c.until(ctx, history.Op{Kind: history.Vacate, Key: key}, http.MethodDelete, definitions+"/"+key.Name, "", noBody, history.OK, history.NotFound, history.Conflict)
		return ok && c.absent(ctx, definitions+"/"+key.Name, definitions+"/"+key.Name, "")
	}
	if _, _, ok := c.must(ctx, c, http.MethodPost, definitions, body, http.StatusCreated, http.StatusConflict); !ok {
		return false
	}
	right := &history.Right{Subject: plural + " before its definition went", Granted: true, Call: c.rec.Now(), Return: c.rec.Now(), Outcome: history.OK}
	c.rec.Add(right)
	for i := range 3 {
		op := &history.Op{ID: c.rec.ID(), Client: c.name, Kind: history.Create, Key: history.Key{Resource: key.Name, Namespace: narrowNamespace, Name: fmt.Sprintf("relic-%d", i)}, Call: c.rec.Now()}
		_, _, ok := c.must(ctx, c, http.MethodPost, objects, fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Relic%dx%d","metadata":{"name":%q}}`, group, c.round, turn, op.Key.Name), http.StatusCreated, http.StatusConflict)
		if op.Return, op.Outcome = c.rec.Now(), history.OK; !ok {
			break
		}
		c.rec.Add(op) // as vacates does
	}
	watches := c.last(ctx, objects)
	defer func() {
		for _, w := range watches {
			w.end()
		}
	}()
	sleep(ctx, 500*time.Millisecond) // in which most of them begin
	gone := *right
	gone.Granted, gone.Call = false, c.rec.Now()
	if !remove() {
		return false
	}
	gone.Return = c.rec.Now()
	c.rec.Add(&gone)
	if _, _, ok := c.must(ctx, c, http.MethodPost, definitions, body, http.StatusCreated, http.StatusConflict); !ok {
		return false
	}
	for began := time.Now(); time.Since(began) < afterwards && ctx.Err() == nil; {
		c.attempt(ctx, right.Subject, "read", http.MethodGet, objects+"/relic-1", "", "")
		c.rest(ctx)
	}
	c.lastUntil(ctx, watches, "the end of a watch of objects whose definition is gone", gone.Call, gone.Return)
	return remove()
}
