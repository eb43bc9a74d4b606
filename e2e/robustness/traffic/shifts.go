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

	"github.com/rowlock/rowlock/e2e/robustness/history"
)

// A webhook of the program converts shifts: spec.values of the first version becomes spec.shifted of the second. Their storage version
// changes during a round.
const (
	shifted      = 12 // how many there are
	shiftsStored = 60 // requests between changes of the storage version
)

var (
	shifts = kind{"shifts." + history.CustomGroup, "shifts", history.CustomGroup + "/v1", history.Shift, "/apis/" + history.CustomGroup + "/v1", func(field, id string) map[string]any {
		return map[string]any{"spec": map[string]any{"values": map[string]any{field: id}}}
	}}
	// shiftVersions are the versions in which shifts are served.
	shiftVersions = []kind{shifts, func() kind {
		k := inVersion(shifts, "v2")
		k.object = func(field, id string) map[string]any {
			return map[string]any{"spec": map[string]any{history.Shifted: map[string]any{field: id}}}
		}
		return k
	}()}
	shiftScope = history.Scope{Resource: shifts.resource, Namespace: Namespaces[0]}
)

// Converter is a webhook that converts custom resources. Servers call it for as long as they run.
type Converter struct{ server *httptest.Server }

// NewConverter starts a Converter. The caller must call Close.
func NewConverter() *Converter {
	c := &Converter{httptest.NewUnstartedServer(http.HandlerFunc(convert))}
	c.server.Config.ErrorLog = log.New(io.Discard, "", 0) // servers are killed in the middle of calls
	c.server.StartTLS()
	return c
}

// Close ends it.
func (c *Converter) Close() { c.server.Close() }

// definition returns the definition of shifts.
func (c *Converter) definition() string {
	ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: c.server.Certificate().Raw})
	version := func(name, field string) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%v,"schema":{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{%q:{"type":"object","additionalProperties":{"type":"string"}}}}}}}}`, name, name == "v1", field)
	}
	return fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"group":%q,"scope":"Namespaced","names":{"plural":"shifts","singular":"shift","kind":"Shift","listKind":"ShiftList"},"versions":[%s,%s],
"conversion":{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}}}`,
		shifts.resource, history.CustomGroup, version("v1", "values"), version("v2", history.Shifted), c.server.URL, base64.StdEncoding.EncodeToString(ca))
}

// convert answers a ConversionReview.
func convert(w http.ResponseWriter, r *http.Request) {
	var review struct {
		Request struct {
			UID               string           `json:"uid"`
			DesiredAPIVersion string           `json:"desiredAPIVersion"`
			Objects           []map[string]any `json:"objects"`
		} `json:"request"`
	}
	if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	from, to := "values", history.Shifted
	if review.Request.DesiredAPIVersion == shifts.apiVersion {
		from, to = to, from
	}
	for _, o := range review.Request.Objects {
		o["apiVersion"] = review.Request.DesiredAPIVersion
		if spec, ok := o["spec"].(map[string]any); ok && spec[from] != nil {
			spec[to] = spec[from]
			delete(spec, from)
		}
	}
	w.Header().Set("Content-Type", plainJSON)
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": map[string]any{
		"uid": review.Request.UID, "result": map[string]any{"status": "Success"}, "convertedObjects": review.Request.Objects}}) // an error is one of the server's connection
}

// shifts writes and reads objects that a webhook converts, in each version, and changes their storage version.
func (c *client) shifts(ctx context.Context) {
	for turn := 1; ctx.Err() == nil; turn++ {
		k := shiftVersions[c.rand.IntN(len(shiftVersions))]
		base := fmt.Sprintf("shift%d", c.rand.IntN(shifted))
		on := c.rand.IntN(2) == 0
		op := &history.Op{ID: c.rec.ID(), Server: c.any(), Key: history.Key{Resource: k.resource, Namespace: shiftScope.Namespace, Name: c.gens.name(base, c.round)}}
		path := k.path(op.Key.Namespace, op.Key.Name)
		switch n := c.rand.IntN(10); {
		case n == 0:
			op.Kind = history.Delete
			c.do(op, http.MethodDelete, path, "", "")
		case n < 3:
			op.Kind = history.Get
			c.do(op, http.MethodGet, path, "", "")
		default:
			op.Kind, op.Field, op.On = history.Set, "v", &on
			c.do(op, http.MethodPatch, path, mergePatch, k.body("", 0, "v", op.ID, &on, 0))
		}
		switch {
		case op.Outcome == history.NotFound:
			made := &history.Op{ID: c.rec.ID(), Server: c.any(), Kind: history.Create, Field: "v", On: &on, Key: op.Key}
			c.do(made, http.MethodPost, k.path(op.Key.Namespace, ""), plainJSON, k.body(op.Key.Name, 0, "v", made.ID, &on, 0))
		case op.Outcome == history.Unknown && op.Writes():
			c.gens.opened(base)
		}
		if turn%shiftsStored == 0 { // which may fail
			second := c.rand.IntN(2) == 0
			_, _, _ = c.send(ctx, c.any(), http.MethodPatch, definitions+"/"+shifts.resource, jsonPatch,
				fmt.Sprintf(`[{"op":"replace","path":"/spec/versions/0/storage","value":%v},{"op":"replace","path":"/spec/versions/1/storage","value":%v}]`, !second, second))
		}
		c.rest(ctx)
		c.rest(ctx)
	}
}

// shiftLists lists objects that a webhook converts, in each version and of old states, whole and in pages.
func (c *client) shiftLists(ctx context.Context) {
	for ctx.Err() == nil {
		c.form = []history.Form{history.Whole, history.Whole, history.Whole, history.Partial, history.CBOR}[c.rand.IntN(5)]
		l := &history.List{Scope: shiftScope, Served: shiftVersions[c.rand.IntN(len(shiftVersions))].apiVersion, Selector: history.Selector{On: c.rand.IntN(4) == 0}}
		switch v := c.someVersion(c); c.rand.IntN(4) {
		case 0:
			l.Match = history.Any
		case 1:
			if v != 0 {
				l.Match, l.Asked = history.Exact, v
			}
		}
		limit := 0
		if l.Match != history.Any && c.rand.IntN(3) == 0 {
			limit = 1 + c.rand.IntN(4)
		}
		c.list(context.Background(), l, limit)
		c.rest(ctx)
		c.rest(ctx)
	}
}
