//go:build unix

package traffic

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// definitions has a version of a custom resource served, and not served. Reads of it are recorded as a right: one that begins
// some time after the version was taken away must not find it.
func (c *client) definitions(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	c.loose = true
	schema := `"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}`
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"things.%[1]s"},"spec":{"group":%[1]q,"scope":"Cluster","names":{"plural":"things","kind":"Thing","listKind":"ThingList","singular":"thing"},
"versions":[{"name":"v1","served":true,"storage":true,%[2]s},{"name":"v2","served":false,"storage":false,%[2]s}]}}`, changingGroup, schema)
	if _, _, ok := c.must(ctx, admin, http.MethodPost, definitions, body, http.StatusCreated, http.StatusConflict); !ok {
		return
	}
	serve := func(on bool) string {
		return fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/1/served","value":%v}]`, on)
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		subject := fmt.Sprintf("%s-r%d-%d with version v2", c.name, c.round, turn)
		read := func(long time.Duration) {
			for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; {
				c.attempt(ctx, subject, "read", http.MethodGet, "/apis/"+changingGroup+"/v2/things?limit=1", "", "")
				c.rest(ctx)
			}
		}
		if !c.changePatch(ctx, admin, definitions+"/things."+changingGroup, subject, true, serve(true)) {
			return
		}
		read(c.granted(turn))
		if !c.changePatch(ctx, admin, definitions+"/things."+changingGroup, subject, false, serve(false)) {
			return
		}
		read(afterwards)
	}
}

// schemas has a schema get a field, and lose it. Writes of objects with the field are recorded as a right: one that begins some
// time after the schema lost it must not keep it, and one some time after the schema got it must.
func (c *client) schemas(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	c.loose = true
	const without, with = `{"type":"object","properties":{"spec":{"type":"object","properties":{"old":{"type":"string"}}}}}`,
		`{"type":"object","properties":{"spec":{"type":"object","properties":{"old":{"type":"string"},"new":{"type":"string"}}}}}`
	body := fmt.Sprintf(`{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"shapes.%[1]s"},"spec":{"group":%[1]q,"scope":"Cluster","names":{"plural":"shapes","kind":"Shape","listKind":"ShapeList","singular":"shape"},
"versions":[{"name":"v1","served":true,"storage":true,"schema":{"openAPIV3Schema":%[2]s}}]}}`, changingGroup, without)
	if _, _, ok := c.must(ctx, admin, http.MethodPost, definitions, body, http.StatusCreated, http.StatusConflict); !ok {
		return
	}
	replace := func(schema string) string {
		return fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/schema/openAPIV3Schema","value":%s}]`, schema)
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		subject := fmt.Sprintf("%s-r%d-%d with a new field", c.name, c.round, turn)
		write := func(long time.Duration) {
			for began := time.Now(); time.Since(began) < long && ctx.Err() == nil; {
				a := &history.Access{Subject: subject, Server: c.next(), What: "read", Call: c.rec.Now()}
				code, answer, err := c.send(ctx, a.Server, http.MethodPost, "/apis/"+changingGroup+"/v1/shapes?dryRun=All", plainJSON,
					fmt.Sprintf(`{"apiVersion":"%s/v1","kind":"Shape","metadata":{"generateName":"shape-"},"spec":{"old":"a","new":"b"}}`, changingGroup))
				if a.Return, a.Code = c.rec.Now(), code; code == http.StatusCreated && !bytes.Contains(answer, []byte(`"new":"b"`)) {
					a.Code = http.StatusForbidden
				}
				if err == nil && (code == http.StatusCreated || code == http.StatusForbidden) {
					c.rec.Add(a)
				}
				c.rest(ctx)
			}
		}
		if !c.changePatch(ctx, admin, definitions+"/shapes."+changingGroup, subject, true, replace(with)) {
			return
		}
		write(c.granted(turn))
		if !c.changePatch(ctx, admin, definitions+"/shapes."+changingGroup, subject, false, replace(without)) {
			return
		}
		write(afterwards)
	}
}

// granted returns for how long the client uses a new right: every second time for longer than the right may take to work.
func (c *client) granted(turn int) time.Duration {
	if (turn+c.round)%2 == 0 {
		return afterwards
	}
	return 2 * time.Second
}

// changePatch is change by a JSON patch.
func (c *client) changePatch(ctx context.Context, admin *client, path, subject string, grant bool, patch string) bool {
	r := &history.Right{Subject: subject, Granted: grant, Call: c.rec.Now(), Outcome: history.Unknown}
	if _, _, ok := c.mustAs(ctx, admin, jsonPatch, http.MethodPatch, path, patch, http.StatusOK); ok {
		if r.Outcome = history.OK; !c.loose {
			r.Server = c.answered + 1
		}
	}
	r.Return = c.rec.Now()
	c.rec.Add(r)
	return r.Outcome == history.OK
}
