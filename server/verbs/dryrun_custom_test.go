package verbs_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
)

// converting returns a webhook that converts Things: what v1, which is stored, calls size is width in v2.
func converting(t *testing.T) (url, bundle string) {
	t.Helper()
	hook := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var review struct {
			APIVersion string         `json:"apiVersion"`
			Kind       string         `json:"kind"`
			Request    map[string]any `json:"request,omitempty"`
			Response   map[string]any `json:"response,omitempty"`
		}
		if err := json.NewDecoder(r.Body).Decode(&review); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		converted := review.Request["objects"].([]any)
		for _, o := range converted {
			obj := o.(map[string]any)
			obj["apiVersion"] = review.Request["desiredAPIVersion"]
			if spec, ok := obj["spec"].(map[string]any); ok {
				from, to := "size", "width"
				if obj["apiVersion"] == "dry.example.com/v1" {
					from, to = to, from
				}
				if v, ok := spec[from]; ok {
					delete(spec, from)
					spec[to] = v
				}
			}
		}
		review.Response = map[string]any{"uid": review.Request["uid"], "result": map[string]any{"status": "Success"}, "convertedObjects": converted}
		review.Request = nil
		_ = json.NewEncoder(w).Encode(review)
	}))
	t.Cleanup(hook.Close)
	return hook.URL, base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: hook.Certificate().Raw}))
}

// TestDryRunsOfCustomVersions: a dry run of a custom resource is answered as the write is in each version and
// each form, with what the status has by default.
func TestDryRunsOfCustomVersions(t *testing.T) {
	now := time.Now()
	s := servertest.Start(t, func(c *server.Config) {
		c.Clock = func() time.Time { return now }
	})
	url, bundle := converting(t)
	const version = `{"name":%q,"served":true,"storage":%t,"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}},
		"additionalPrinterColumns":[{"name":"Much","type":"integer","jsonPath":".spec.%s"},{"name":"Phase","type":"string","jsonPath":".status.phase"},{"name":"Age","type":"date","jsonPath":".metadata.creationTimestamp"}],
		"schema":{"openAPIV3Schema":{"type":"object","properties":{
			"spec":{"type":"object","properties":{%q:{"type":"integer"},"replicas":{"type":"integer","default":2},%q:{"type":"string","default":"x"}}},
			"status":{"type":"object","default":{},"properties":{"phase":{"type":"string","default":"Pending"},"replicas":{"type":"integer"},"seen":{"type":"string"}}}}}}}`
	for plural, conversion := range map[string]string{
		"plains": `{"strategy":"None"}`,
		"things": fmt.Sprintf(`{"strategy":"Webhook","webhook":{"conversionReviewVersions":["v1"],"clientConfig":{"url":%q,"caBundle":%q}}}`, url, bundle),
	} {
		widths := "width"
		if plural == "plains" {
			widths = "size"
		}
		s.Must("POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", fmt.Sprintf(`{"metadata":{"name":"%[1]s.dry.example.com"},"spec":{"group":"dry.example.com","scope":"Namespaced",
			"names":{"plural":%[1]q,"kind":"Kind%[1]s"},"conversion":%[2]s,"versions":[%[3]s,%[4]s]}}`, plural, conversion,
			fmt.Sprintf(version, "v1", true, "size", "size", "one"), fmt.Sprintf(version, "v2", false, widths, widths, "two")))
	}
	var mu sync.Mutex
	client := *s.Client
	client.Transport = &twice{next: s.Client.Transport, report: t.Errorf, mu: &mu, compared: map[string]bool{}}
	for _, plural := range []string{"plains", "things"} {
		for _, v := range []string{"v1", "v2"} {
			servertest.Eventually(t, func() bool {
				return s.Do("GET", "/apis/dry.example.com/"+v+"/namespaces/default/"+plural, "").Code == http.StatusOK
			})
			field := "size"
			if plural == "things" && v == "v2" {
				field = "width"
			}
			for _, accept := range []string{
				"application/json", "application/yaml",
				"application/json;as=Table;g=meta.k8s.io;v=v1", "application/json;as=Table;g=meta.k8s.io;v=v1;includeObject=Object", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1",
			} {
				w := customWrites{t: t, client: &client, base: s.URL + "/apis/dry.example.com/" + v + "/namespaces/default/" + plural, accept: accept}
				if _, query, ok := strings.Cut(accept, "includeObject="); ok {
					w.query = "includeObject=" + query
				}
				w.all("dry.example.com/"+v, "Kind"+plural, field)
			}
		}
	}
}

// customWrites are writes of custom objects in a version, answered in a form.
type customWrites struct {
	t                   *testing.T
	client              *http.Client
	base, accept, query string
}

func (w *customWrites) all(apiVersion, kind, field string) {
	typed := fmt.Sprintf(`"apiVersion":%q,"kind":%q`, apiVersion, kind)
	object := func(name string, much int, rest string) string {
		return fmt.Sprintf(`{%s,"metadata":{"name":%q%s},"spec":{%q:%d,"unknown":1},"status":{"seen":"sent"}}`, typed, name, rest, field, much)
	}
	known := func(body string) string { return strings.Replace(body, `,"unknown":1`, "", 1) } // an apply is refused otherwise
	const merges, patches, applies = "application/merge-patch+json", "application/json-patch+json", "application/apply-patch+yaml"
	w.do(201, "POST", "", "application/json", fmt.Sprintf(`{%s,"metadata":{"generateName":"made-"}}`, typed))
	w.do(201, "POST", "", "application/json", object("a", 1, `,"finalizers":["x.example.com/held"]`))
	w.do(409, "POST", "", "application/json", object("a", 1, ""))
	w.do(201, "PATCH", "/b?fieldManager=m", applies, known(object("b", 2, "")))
	w.do(200, "PATCH", "/b?fieldManager=m", applies, known(object("b", 3, `,"labels":{"l":"1"}`)))
	w.do(200, "PATCH", "/b?fieldManager=m", applies, known(object("b", 3, `,"labels":{"l":"1"}`))) // changes nothing
	w.do(200, "PATCH", "/b", merges, fmt.Sprintf(`{"spec":{%q:4}}`, field))
	w.do(200, "PATCH", "/b", patches, fmt.Sprintf(`[{"op":"replace","path":"/spec/%s","value":5}]`, field))
	w.do(422, "PATCH", "/b", merges, fmt.Sprintf(`{"spec":{%q:"much"}}`, field))
	w.do(200, "PATCH", "/b/status", merges, `{"status":{"phase":"Running","replicas":2}}`)
	w.do(200, "PATCH", "/b/status?fieldManager=s&force=true", applies, fmt.Sprintf(`{%s,"metadata":{"name":"b"},"status":{"phase":"Ended"}}`, typed))
	w.do(200, "PATCH", "/b/scale", merges, `{"spec":{"replicas":3}}`)
	live := w.get("/b")
	live["spec"].(map[string]any)[field] = 6
	w.do(200, "PUT", "/b", "application/json", encoded(w.t, live))
	live = w.get("/b")
	live["status"] = map[string]any{"phase": "Again"}
	w.do(200, "PUT", "/b/status", "application/json", encoded(w.t, live))
	w.do(200, "PUT", "/b/scale", "application/json", `{"apiVersion":"autoscaling/v1","kind":"Scale","metadata":{"name":"b"},"spec":{"replicas":4}}`)
	w.do(200, "DELETE", "/b", "", "")
	w.do(200, "DELETE", "/a", "", "") // it waits
	w.do(200, "DELETE", "/a", "", "")
	w.do(200, "PATCH", "/a", merges, fmt.Sprintf(`{"metadata":{"finalizers":null},"spec":{%q:7}}`, field)) // and goes
	w.do(404, "DELETE", "/a", "", "")
	w.do(201, "POST", "", "application/json", object("c", 1, ""))
	w.do(200, "DELETE", "/c?propagationPolicy=Foreground", "", "")
	w.do(200, "PATCH", "/c", merges, `{"metadata":{"finalizers":null}}`)
	w.do(200, "DELETE", "", "", "")
}

func (w *customWrites) do(code int, method, path, contentType, body string) {
	w.t.Helper()
	if w.query != "" {
		if strings.Contains(path, "?") {
			path += "&" + w.query
		} else {
			path += "?" + w.query
		}
	}
	r, err := http.NewRequestWithContext(w.t.Context(), method, w.base+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+servertest.Token)
	r.Header.Set("Accept", w.accept)
	if method == "DELETE" && path == "" || strings.Contains(path, "/scale") || code >= 300 {
		r.Header.Set("Accept", "application/json")
	}
	if body != "" {
		r.Header.Set("Content-Type", contentType)
	}
	answer, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	text, err := io.ReadAll(answer.Body)
	_ = answer.Body.Close()
	if err != nil || answer.StatusCode != code {
		w.t.Fatalf("%s %s: %d, want %d: %s %v", method, w.base+path, answer.StatusCode, code, text, err)
	}
}

func (w *customWrites) get(path string) (obj map[string]any) {
	w.t.Helper()
	r, err := http.NewRequestWithContext(w.t.Context(), "GET", w.base+path, nil)
	if err != nil {
		w.t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+servertest.Token)
	answer, err := w.client.Do(r)
	if err != nil {
		w.t.Fatal(err)
	}
	defer answer.Body.Close()
	if err := json.NewDecoder(answer.Body).Decode(&obj); err != nil {
		w.t.Fatal(err)
	}
	return obj
}

func encoded(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
