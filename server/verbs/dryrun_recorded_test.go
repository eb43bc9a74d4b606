package verbs_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/rowlock/rowlock/e2e/recorded"
	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/kinds/builtin"
	"github.com/rowlock/rowlock/server/servertest"
)

// twice sends each write as a dry run first, and reports where that is answered differently.
type twice struct {
	next   http.RoundTripper
	report func(format string, args ...any)

	mu       *sync.Mutex
	compared map[string]bool // kinds of writes that succeeded
}

func (w *twice) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method == http.MethodGet || r.Method == http.MethodHead || r.URL.Query().Has("dryRun") {
		return w.next.RoundTrip(r)
	}
	var sent []byte
	if r.Body != nil {
		var err error
		if sent, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
	}
	send := func(rawQuery string) (*http.Response, []byte, error) {
		c := r.Clone(r.Context())
		c.URL.RawQuery = rawQuery
		if r.Body != nil {
			c.Body = io.NopCloser(bytes.NewReader(sent))
		}
		answer, err := w.next.RoundTrip(c)
		if err != nil {
			return nil, nil, err
		}
		text, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		answer.Body = io.NopCloser(bytes.NewReader(text))
		return answer, text, err
	}
	dry, dryText, err := send(strings.TrimPrefix(r.URL.RawQuery+"&dryRun=All", "&"))
	if err != nil {
		return nil, err
	}
	real, realText, err := send(r.URL.RawQuery)
	switch {
	case err != nil:
		return nil, err
	case bytes.Contains(realText, []byte("resourceVersion should not be set on objects to be created")), // the store detects it, and a dry run does not reach it
		bytes.Contains(dryText, []byte("cannot be set together with .dryRun")),
		bytes.Contains(realText, []byte("provided IP is already allocated")),                                                                                      // nor the addresses that are taken
		bytes.Contains(realText, []byte("the provided network does not match the current range")) && bytes.Contains(dryText, []byte("is not in the valid range")), // with ServiceCIDRs, a dry run asks one range
		bytes.Contains(realText, []byte("FieldManagerConflict")):                                                                                                  // in no order
		return real, nil
	}
	if real.StatusCode < http.StatusMultipleChoices {
		w.mu.Lock()
		w.compared[kindOfWrite(r.Method, r.URL.Path, r.Header.Get("Content-Type"))] = true
		w.mu.Unlock()
	}
	if diff := cmp.Diff(plainAnswer(real, realText), plainAnswer(dry, dryText)); diff != "" {
		w.report("%s %s (Content-Type %s, Accept %s)\n%.300s\nis answered to a dry run otherwise (-the write +the dry run):\n%s",
			r.Method, r.URL, r.Header.Get("Content-Type"), r.Header.Get("Accept"), sent, diff)
	}
	return real, nil
}

// incidental matches the values that differ between any two writes: versions, generated, allocated and signed values, and addresses in
// memory. A refusal of the store calls an object by its key besides, as a stock server's does.
var incidental = regexp.MustCompile(`,"resourceVersion": ?"\d*"|"resourceVersion": ?"\d*",?|\n *resourceVersion: ".*"|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|\d{4}-\d\d-\d\dT[0-9:.]+Z|\b(10\.\d+|172\.31)\.\d+\.\d+\b|"(nodePort|healthCheckNodePort)": ?\d+` +
	`|[2456789bcdfghjklmnpqrstvwxz]{5}\b|0x[0-9a-f]+|"token":"[^"]*"|/registry|"dry":"(true|false)"`)

func plainAnswer(r *http.Response, text []byte) []string {
	head := fmt.Sprintf("%d %s %q %s", r.StatusCode, r.Header.Get("Content-Type"), r.Header["Warning"], r.Header.Get("Retry-After"))
	if contentType := r.Header.Get("Content-Type"); !strings.Contains(contentType, "json") && !strings.Contains(contentType, "yaml") {
		return []string{head}
	}
	return []string{head, incidental.ReplaceAllString(string(text), "")}
}

// kindOfWrite returns the kind of a write: the method, the resource with its subresource, and the type of
// the body. It is "" for those of custom resources, which other tests are about.
func kindOfWrite(method, path, contentType string) string {
	path, _, _ = strings.Cut(path, "?")
	parts := strings.Split(strings.Trim(path, "/"), "/")
	group := "api/v1"
	if parts[0] == "apis" {
		group, parts = strings.Join(parts[:min(3, len(parts))], "/"), parts[1:]
	}
	parts = parts[min(2, len(parts)):]
	if len(parts) > 2 && parts[0] == "namespaces" && parts[2] != "status" && parts[2] != "finalize" {
		parts = parts[2:]
	}
	if len(parts) > 1 {
		parts[1] = "NAME"
	}
	contentType, _, _ = strings.Cut(contentType, ";")
	if contentType == "application/json" {
		contentType = ""
	}
	if !stockGroups[group] {
		return ""
	}
	return method + " " + group + "/" + strings.Join(parts, "/") + " " + contentType
}

var stockGroups = func() map[string]bool {
	out := map[string]bool{"api/v1": true}
	for _, r := range builtin.Resources() {
		out["apis/"+r.APIVersion()] = true
	}
	return out
}()

// TestDryRunsOfRecordedWrites: a dry run is answered as the write is, for writes of every kind, in every way,
// that were recorded. Of the scenarios those are played that have a kind of write which none before them has.
func TestDryRunsOfRecordedWrites(t *testing.T) {
	list, err := recorded.LoadAll("../../e2e/testdata/parity/*.json")
	if err != nil {
		t.Fatal(err)
	}
	list = append(list, unrecorded())
	planned, compared := map[string]bool{}, map[string]bool{}
	now := time.Now()
	shared := map[string]recorded.Server{}
	var mu sync.Mutex
	var group sync.WaitGroup
	for _, scenario := range list {
		flags := scenario.Flags()
		others := slices.ContainsFunc(flags, func(flag string) bool {
			return !strings.HasPrefix(flag, "--runtime-config=") && !strings.HasPrefix(flag, "--feature-gates=")
		})
		before := len(planned)
		if others {
			continue
		}
		for i := range scenario.Steps {
			step := &scenario.Steps[i]
			step.Sleep = 0 // results are compared in any case
			if method, path, _ := strings.Cut(step.Do, " "); method != "GET" && method != "WATCH" && step.Want.Status < http.StatusMultipleChoices && step.As == "" {
				if kind := kindOfWrite(method, path, step.Type); kind != "" {
					planned[kind] = true
				}
			}
		}
		if len(planned) == before {
			continue
		}
		scenario.Steps = slices.DeleteFunc(scenario.Steps, func(step recorded.Step) bool {
			return strings.HasPrefix(step.Do, "WATCH ") || strings.HasPrefix(step.Do, "GET ") && step.Save == nil
		})
		key := strings.Join(flags, " ")
		srv, ok := shared[key]
		if !ok || scenario.Alone() {
			s := servertest.Start(t, servertest.Complete(t, flags...), func(c *server.Config) {
				c.Controllers.Runs = func(string) bool { return false }
				c.Clock = func() time.Time { return now } // the two are of one second
			})
			client := *s.Client
			client.Transport = &twice{next: s.Client.Transport, report: t.Errorf, mu: &mu, compared: compared}
			srv = recorded.Server{URL: s.URL, Client: &client, Token: servertest.Token}
			if !scenario.Alone() {
				shared[key] = srv
			}
		}
		group.Go(func() { recorded.Replay(t.Context(), srv, scenario) })
	}
	group.Wait()
	for _, r := range builtin.Resources() {
		path := "/apis/" + r.APIVersion()
		if r.Group == "" {
			path = "/api/v1"
		}
		if kind := kindOfWrite("POST", path+"/"+r.Plural, ""); slices.Contains(r.Verbs, "create") && !compared[kind] {
			t.Errorf("nothing was compared of %s", kind)
		}
	}
	if len(compared) < len(planned)*9/10 {
		t.Errorf("%d kinds of writes were compared, of %d that are planned", len(compared), len(planned))
	}
}

// unrecorded are writes of kinds that no recording creates.
func unrecorded() *recorded.Scenario {
	const claim = `{"devices":{"requests":[{"name":"r","deviceClassName":"c"}]}}`
	s := &recorded.Scenario{Name: "unrecorded", Needs: []string{"--feature-gates=DynamicResourceAllocation=true", "--runtime-config=resource.k8s.io/v1alpha3=true"}}
	for resource, body := range map[string]string{
		"/apis/storage.k8s.io/v1/namespaces/unrecorded/csistoragecapacities":          `{"storageClassName":"s","capacity":"1Gi"}`,
		"/apis/resource.k8s.io/v1alpha3/namespaces/unrecorded/resourceclaims":         `{"spec":` + claim + `}`,
		"/apis/resource.k8s.io/v1alpha3/namespaces/unrecorded/resourceclaimtemplates": `{"spec":{"spec":` + claim + `}}`,
		"/apis/resource.k8s.io/v1alpha3/resourceslices":                               `{"spec":{"driver":"d.example.com","nodeName":"n","pool":{"name":"p","resourceSliceCount":1}}}`,
	} {
		s.Steps = append(s.Steps, recorded.Step{Do: "POST " + resource, Body: json.RawMessage(strings.Replace(body, "{", `{"metadata":{"name":"one"},`, 1)), Want: recorded.Want{Status: http.StatusCreated}})
	}
	return s
}
