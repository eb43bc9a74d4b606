package verbs_test

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/request"
)

// FuzzRequest sends requests of any shape to a server with a few objects. Whatever
// comes, the answer has a known code, and a refusal is a Status that carries it; an
// object that is answered as JSON can be read.
func FuzzRequest(f *testing.F) {
	for _, s := range [][5]string{
		{"GET", "/api/v1/namespaces/a/configmaps?labelSelector=x%3Dy&limit=1", "", "", ""},
		{"GET", "/api/v1/pods?watch=1&timeoutSeconds=1&sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true", "", "application/json;as=Table;g=meta.k8s.io;v=v1", ""},
		{"POST", "/api/v1/namespaces/a/configmaps?dryRun=All&fieldValidation=Strict", "application/json", "application/yaml", `{"metadata":{"generateName":"x"},"data":{"a":"b"},"x":1}`},
		{"POST", "/apis/apps/v1/namespaces/a/deployments", "application/yaml", "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1", "metadata: {name: d}\nspec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}"},
		{"PUT", "/api/v1/namespaces/a/configmaps/c", "application/json", "", `{"metadata":{"name":"c","resourceVersion":"1"}}`},
		{"PATCH", "/api/v1/namespaces/a/configmaps/c?fieldManager=m&force=true", "application/apply-patch+yaml", "", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c"},"data":{"k":"v"}}`},
		{"PATCH", "/api/v1/namespaces/a/services/s", "application/strategic-merge-patch+json", "", `{"spec":{"ports":[{"port":80,"$patch":"delete"}]}}`},
		{"PATCH", "/api/v1/namespaces/a/configmaps/c", "application/json-patch+json", "", `[{"op":"add","path":"/data/x","value":"y"},{"op":"test","path":"/kind","value":"x"}]`},
		{"PATCH", "/apis/apps/v1/namespaces/a/deployments/d/scale", "application/merge-patch+json", "", `{"spec":{"replicas":3}}`},
		{"DELETE", "/api/v1/namespaces/a/configmaps/c?gracePeriodSeconds=0", "application/json", "", `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"x"},"propagationPolicy":"Orphan"}`},
		{"DELETE", "/api/v1/namespaces/a/configmaps?fieldSelector=metadata.name%3Dnone", "", "application/vnd.kubernetes.protobuf", ""},
		{"POST", "/api/v1/namespaces/a/configmaps", "application/vnd.kubernetes.protobuf", "*/*", "k8s\x00\n\x0f\n\x02v1\x12\tConfigMap\x12\x05\n\x03\n\x01p"},
		{"GET", "/api/v1/namespaces/a/configmaps?continue=eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6MSwic3RhcnQiOiJ4In0&resourceVersion=1&resourceVersionMatch=Exact", "", "", ""},
	} {
		f.Add(s[0], s[1], s[2], s[3], []byte(s[4]))
	}
	fix := newFixture(f)
	fix.want(201, "POST", "/api/v1/namespaces/a/configmaps", `{"metadata":{"name":"c","labels":{"x":"y"}},"data":{"k":"v"}}`)
	fix.want(201, "POST", "/api/v1/namespaces/a/services", `{"metadata":{"name":"s"},"spec":{"ports":[{"port":80}]}}`)
	fix.want(201, "POST", "/apis/apps/v1/namespaces/a/deployments", `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	f.Fuzz(func(t *testing.T, method, target, contentType, accept string, body []byte) {
		if _, err := url.ParseRequestURI(target); err != nil || !validMethod(method) || len(target) > 4096 {
			return
		}
		r := httptest.NewRequest(method, "/", bytes.NewReader(body))
		var err error
		if r.URL, err = url.ParseRequestURI(target); err != nil {
			return
		}
		r.Header.Set("Content-Type", contentType)
		r.Header.Set("Accept", accept)
		info, err := request.Parse(method, r.URL)
		if err != nil || !info.IsResource {
			return
		}
		if info.Verb == "create" && info.Resource == "namespaces" {
			return // they would become many
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if info.Verb == "watch" {
			cancel()
		}
		w := httptest.NewRecorder()
		fix.front.ServeHTTP(w, r.WithContext(ctx))
		if info.Verb == "watch" && w.Code < 300 {
			return
		}
		sound(t, method+" "+target, w)
	})
}

func validMethod(method string) bool {
	switch method {
	case "GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS":
		return true
	}
	return false
}

// sound checks an answer by itself.
func sound(t *testing.T, what string, w *httptest.ResponseRecorder) {
	t.Helper()
	if w.Code < 200 || w.Code > 504 {
		t.Fatalf("%s: code %d", what, w.Code)
	}
	kind, _, _ := strings.Cut(w.Header().Get("Content-Type"), ";")
	if kind != "application/json" || w.Body.Len() == 0 {
		return
	}
	var st metav1.Status
	if err := json.Unmarshal(w.Body.Bytes(), &st); err != nil && w.Code >= 400 || !json.Valid(w.Body.Bytes()) {
		t.Fatalf("%s: %d, and what is answered is no JSON (%v): %q", what, w.Code, err, w.Body)
	}
	if w.Code >= 400 && (st.Kind != "Status" || int(st.Code) != w.Code || st.Status != metav1.StatusFailure) {
		t.Fatalf("%s: code %d with %s", what, w.Code, w.Body)
	}
	if w.Code == 500 && strings.Contains(st.Message, "panic") {
		t.Fatalf("%s: %s", what, st.Message)
	}
}
