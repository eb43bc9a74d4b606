package e2e

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

// questioned has the fields of an AdmissionReview that tests check.
type questioned struct {
	APIVersion, Kind string
	Request          struct {
		UID             string
		Kind            struct{ Group, Version, Kind string }
		Resource        struct{ Group, Version, Resource string }
		SubResource     string
		RequestKind     struct{ Group, Version, Kind string }
		Name, Namespace string
		Operation       string
		UserInfo        struct {
			Username string
			Groups   []string
		}
		Object, OldObject, Options map[string]any
		DryRun                     bool
	}
	path, timeout, authorization string
}

// judge is a webhook server whose paths select its behavior.
type judge struct {
	*httptest.Server
	ca    string // PEM
	stop  chan struct{}
	mu    sync.Mutex
	asked []questioned
}

func startJudge(t *testing.T, names ...string) *judge {
	j := &judge{stop: make(chan struct{})}
	authority := harness.NewAuthority(t, "webhooks")
	j.Server = httptest.NewUnstartedServer(j)
	cert := authority.ServerFor(t, names...)
	j.TLS = &tls.Config{Certificates: []tls.Certificate{*cert}}
	j.ca = string(authority.PEM)
	j.StartTLS()
	t.Cleanup(j.Close)
	t.Cleanup(func() { close(j.stop) })
	return j
}

// answer is a response to a question, with more fields.
func (j *judge) answer(w http.ResponseWriter, q *questioned, fields map[string]any) {
	response := map[string]any{"uid": q.Request.UID, "allowed": true}
	for k, v := range fields {
		response[k] = v
	}
	_ = json.NewEncoder(w).Encode(map[string]any{"apiVersion": "admission.k8s.io/v1", "kind": "AdmissionReview", "response": response})
}

func patched(ops string) map[string]any {
	return map[string]any{"patchType": "JSONPatch", "patch": []byte(ops)}
}

func (j *judge) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := questioned{path: r.URL.Path, timeout: r.URL.Query().Get("timeout"), authorization: r.Header.Get("Authorization")}
	if err := json.NewDecoder(r.Body).Decode(&q); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	j.mu.Lock()
	j.asked = append(j.asked, q)
	j.mu.Unlock()
	data, _ := q.Request.Object["data"].(map[string]any)
	switch r.URL.Path {
	case "/deny":
		j.answer(w, &q, map[string]any{"allowed": false, "status": map[string]any{"message": "not today", "code": 418, "reason": "Teapot"}})
	case "/silent":
		j.answer(w, &q, map[string]any{"allowed": false})
	case "/allow":
		j.answer(w, &q, map[string]any{"warnings": []string{"mind the gap"}, "auditAnnotations": map[string]string{"seen": "yes"}})
	case "/first": // wants to know what the second makes of it
		if data["second"] != nil {
			j.answer(w, &q, patched(`[{"op":"add","path":"/data/first","value":"after second"}]`))
			return
		}
		j.answer(w, &q, patched(`[{"op":"add","path":"/data/first","value":"alone"}]`))
	case "/second":
		j.answer(w, &q, patched(fmt.Sprintf(`[{"op":"add","path":"/data/second","value":"saw %v"}]`, data["first"])))
	case "/container":
		j.answer(w, &q, patched(`[{"op":"add","path":"/spec/containers/-","value":{"name":"added","image":"registry.k8s.io/pause:3.9"}}]`))
	case "/custom":
		j.answer(w, &q, patched(`[{"op":"add","path":"/spec/size","value":7},{"op":"add","path":"/spec/part","value":{"unheard":1}}]`))
	case "/spoil":
		j.answer(w, &q, patched(`[{"op":"replace","path":"/metadata/managedFields","value":[{"manager":"x","operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"nonsense":{}}}]}]`))
	case "/stall":
		select {
		case <-j.stop:
		case <-r.Context().Done():
		}
	case "/broken":
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, "out of order")
	case "/older":
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1beta1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, q.Request.UID)
	case "/stranger":
		fmt.Fprint(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":"other","allowed":true}}`)
	case "/endless":
		j.answer(w, &q, map[string]any{"warnings": []string{strings.Repeat("x", 9<<20)}})
	case "/moved":
		http.Redirect(w, r, "/allow", http.StatusTemporaryRedirect)
	}
}

// take returns the requests since the last call.
func (j *judge) take() []questioned {
	j.mu.Lock()
	defer j.mu.Unlock()
	list := j.asked
	j.asked = nil
	return list
}

// courtroom is a server with a judge.
type courtroom struct {
	*api
	judge   *judge
	metrics string // before each configuration went, and its series with it
}

// hooks writes a configuration of kind with webhooks, each with a path and more
// fields, in place of the one before.
func (c *courtroom) hooks(t *testing.T, kind string, list ...map[string]any) {
	t.Helper()
	for i, h := range list {
		path := h["path"].(string)
		delete(h, "path")
		full := map[string]any{
			"name": fmt.Sprintf("hook%d.example.org", i), "admissionReviewVersions": []string{"v1"}, "sideEffects": "None",
			"clientConfig":      map[string]any{"url": c.judge.URL + path, "caBundle": []byte(c.judge.ca)},
			"rules":             []any{rule("", "configmaps", "*")},
			"namespaceSelector": map[string]any{"matchLabels": map[string]any{"judged": "yes"}},
		}
		for k, v := range h {
			full[k] = v
		}
		list[i] = full
	}
	body, err := json.Marshal(map[string]any{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": kind, "metadata": map[string]any{"name": "court"}, "webhooks": list,
	})
	if err != nil {
		t.Fatal(err)
	}
	plural := "/apis/admissionregistration.k8s.io/v1/" + strings.ToLower(kind) + "s"
	want(t, c.api, http.StatusCreated, "POST", plural, "application/json", string(body))
	t.Cleanup(func() {
		c.metrics += string(want(t, c.api, http.StatusOK, "GET", "/metrics", "", ""))
		want(t, c.api, http.StatusOK, "DELETE", plural+"/court", "", "")
	})
	c.judge.take()
}

func rule(group, resource string, operations ...string) map[string]any {
	return map[string]any{"apiGroups": []string{group}, "apiVersions": []string{"v1"}, "operations": operations, "resources": []string{resource}}
}

// config creates a ConfigMap in the judged namespace.
func (c *courtroom) config(t *testing.T, name, query string) (code int, header http.Header, body string) {
	t.Helper()
	code, header, data, err := c.send(context.Background(), "POST", "/api/v1/namespaces/court/configmaps"+query, "application/json",
		fmt.Sprintf(`{"metadata":{"name":%q},"data":{"a":"b"}}`, name))
	if err != nil {
		t.Fatal(err)
	}
	return code, header, string(data)
}

// message returns that of a Status.
func message(body string) string {
	var st struct{ Message string }
	_ = json.Unmarshal([]byte(body), &st)
	return st.Message
}

const (
	mutatingHooks   = "MutatingWebhookConfiguration"
	validatingHooks = "ValidatingWebhookConfiguration"
)

func TestAdmissionWebhooks(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	judge := startJudge(t, "127.0.0.1", "judge.court.svc")
	kubeconfig, config := filepath.Join(dir, "hooks.kubeconfig"), filepath.Join(dir, "admission.yaml")
	for file, text := range map[string]string{
		kubeconfig: `{"apiVersion":"v1","kind":"Config","users":[{"name":"*","user":{"token":"of-the-server"}}]}`,
		config: `{"apiVersion":"apiserver.config.k8s.io/v1","kind":"AdmissionConfiguration","plugins":[{"name":"ValidatingAdmissionWebhook","configuration":
			{"apiVersion":"apiserver.config.k8s.io/v1","kind":"WebhookAdmissionConfiguration","kubeConfigFile":"` + kubeconfig + `"}}]}`,
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	s := harness.StartT(t, harness.Options{Args: []string{"--admission-control-config-file", config, noRootCA}}) // the judge counts what it is asked
	c := &courtroom{api: newAPI(t, s), judge: judge}
	want(t, c.api, http.StatusCreated, "POST", "/api/v1/namespaces", "application/json", `{"metadata":{"name":"court","labels":{"judged":"yes"}}}`)
	eventually(t, "a service account", func() bool {
		code, _, err := c.do(context.Background(), "GET", "/api/v1/namespaces/court/serviceaccounts/default", "", "")
		return err == nil && code == http.StatusOK
	})
	t.Run("question", c.question)
	t.Run("denial", c.denial)
	t.Run("mutation", c.mutation)
	t.Run("defaults", c.defaults)
	t.Run("failures", c.failures)
	t.Run("dry run", c.dryRun)
	t.Run("subresources", c.subresources)
	t.Run("service", c.service)
	t.Run("custom", c.custom)
	t.Run("custom parameters", c.customParameters)
	t.Run("metrics", func(t *testing.T) {
		eventually(t, "metrics without the webhooks that were deleted", func() bool {
			return !strings.Contains(string(want(t, c.api, http.StatusOK, "GET", "/metrics", "", "")), `name="hook0.example.org"`)
		})
		for _, line := range []string{
			`apiserver_admission_webhook_request_total{code="418",name="hook0.example.org",operation="CREATE",rejected="true",type="validating"}`,
			`apiserver_admission_webhook_rejection_count{error_type="no_error",name="hook0.example.org",operation="CREATE",rejection_code="418",type="validating"}`,
			`apiserver_admission_webhook_rejection_count{error_type="calling_webhook_error",name="hook0.example.org",operation="CREATE",rejection_code="400",type="validating"}`,
			`apiserver_admission_webhook_fail_open_count{name="hook0.example.org",type="validating"}`,
			`apiserver_admission_webhook_admission_duration_seconds_count{name="hook0.example.org",operation="CREATE",rejected="false",type="admit"}`,
			`apiserver_admission_match_condition_exclusions_total{kind="webhook",name="hook0.example.org",operation="DELETE",type="validating"}`,
		} {
			if !strings.Contains(c.metrics, line) {
				t.Errorf("no metric %s", line)
			}
		}
	})
	if log := s.Log(); strings.Contains(log, "out of order") || strings.Contains(log, "of-the-server") {
		t.Error("the log has what belongs to webhooks")
	}
}

func (c *courtroom) question(t *testing.T) {
	c.hooks(t, validatingHooks, map[string]any{
		"path": "/allow", "timeoutSeconds": 7,
		"matchConditions": []any{map[string]any{"name": "c", "expression": "request.operation != 'DELETE' || oldObject.metadata.name != 'spared'"}},
	})
	code, header, body := c.config(t, "heard", "?fieldManager=me")
	if code != http.StatusCreated || !strings.Contains(header.Get("Warning"), "mind the gap") {
		t.Fatalf("%d %v %s", code, header, body)
	}
	list := c.judge.take()
	if len(list) != 1 {
		t.Fatalf("asked %d times", len(list))
	}
	q := list[0]
	r := q.Request
	switch {
	case q.APIVersion != "admission.k8s.io/v1" || q.Kind != "AdmissionReview" || r.UID == "":
		t.Errorf("the review is %s %s %q", q.APIVersion, q.Kind, r.UID)
	case r.Operation != "CREATE" || r.Name != "heard" || r.Namespace != "court" || r.Kind.Kind != "ConfigMap" || r.Resource.Resource != "configmaps" || r.RequestKind.Kind != "ConfigMap":
		t.Errorf("the request is %+v", r)
	case r.UserInfo.Username != "admin" || r.DryRun || r.Options["fieldManager"] != "me" || r.Options["kind"] != "CreateOptions":
		t.Errorf("who and how: %+v %v", r.UserInfo, r.Options)
	case r.OldObject != nil || r.Object["kind"] != "ConfigMap" || r.Object["apiVersion"] != "v1":
		t.Errorf("the objects are %v and %v", r.Object, r.OldObject)
	case q.timeout != "7s" || q.authorization != "Bearer of-the-server":
		t.Errorf("timeout %q, authorization %q", q.timeout, q.authorization)
	}
	want(t, c.api, http.StatusOK, "PATCH", "/api/v1/namespaces/court/configmaps/heard", "application/merge-patch+json", `{"data":{"a":"c"}}`)
	want(t, c.api, http.StatusOK, "DELETE", "/api/v1/namespaces/court/configmaps/heard", "", "")
	if list = c.judge.take(); len(list) != 2 || list[0].Request.Operation != "UPDATE" || list[0].Request.OldObject == nil || list[1].Request.Operation != "DELETE" || list[1].Request.Object != nil || list[1].Request.OldObject == nil {
		t.Errorf("an update and a delete asked %+v", list)
	}
	c.config(t, "spared", "")
	c.judge.take()
	want(t, c.api, http.StatusOK, "DELETE", "/api/v1/namespaces/court/configmaps/spared", "", "")
	want(t, c.api, http.StatusCreated, "POST", "/api/v1/namespaces/default/configmaps", "application/json", `{"metadata":{"name":"elsewhere"}}`)
	if list = c.judge.take(); len(list) != 0 {
		t.Errorf("what is not meant asked %+v", list)
	}
}

func (c *courtroom) denial(t *testing.T) {
	c.hooks(t, validatingHooks, map[string]any{"path": "/deny"}, map[string]any{"path": "/silent"})
	code, _, body := c.config(t, "denied", "")
	if code != http.StatusTeapot || message(body) != `admission webhook "hook0.example.org" denied the request: not today` || !strings.Contains(body, `"reason":"Teapot"`) {
		t.Errorf("%d %s", code, body)
	}
	if n := len(c.judge.take()); n != 2 {
		t.Errorf("%d webhooks were asked", n)
	}
	want(t, c.api, http.StatusNotFound, "GET", "/api/v1/namespaces/court/configmaps/denied", "", "")
}

func (c *courtroom) mutation(t *testing.T) {
	c.hooks(t, mutatingHooks,
		map[string]any{"path": "/first", "reinvocationPolicy": "IfNeeded"},
		map[string]any{"path": "/second"},
		map[string]any{"path": "/spoil"})
	code, header, body := c.config(t, "mutated", "")
	if code != http.StatusCreated || !strings.Contains(body, `"first":"after second"`) || !strings.Contains(body, `"second":"saw alone"`) {
		t.Errorf("%d %s", code, body)
	}
	if !strings.Contains(header.Get("Warning"), "managedFields was in an invalid state") || strings.Contains(body, "nonsense") {
		t.Errorf("spoilt fields: %v %s", header, body)
	}
	var paths []string
	for _, q := range c.judge.take() {
		paths = append(paths, q.path)
	}
	if got := strings.Join(paths, " "); got != "/first /second /spoil /first" {
		t.Errorf("asked %s", got)
	}
	if code, _, body = c.config(t, "mutated", ""); code != http.StatusConflict {
		t.Errorf("again: %d %s", code, body)
	}
}

func (c *courtroom) defaults(t *testing.T) {
	c.hooks(t, mutatingHooks, map[string]any{"path": "/container", "rules": []any{rule("", "pods", "CREATE")}})
	body := string(want(t, c.api, http.StatusCreated, "POST", "/api/v1/namespaces/court/pods", "application/json",
		`{"metadata":{"name":"two"},"spec":{"containers":[{"name":"one","image":"registry.k8s.io/pause:3.9"}]}}`))
	var pod struct {
		Spec struct {
			Containers []struct {
				Name, ImagePullPolicy, TerminationMessagePath string
				VolumeMounts                                  []struct{ MountPath string }
			}
			Volumes []struct{ Name string }
		}
	}
	if err := json.Unmarshal([]byte(body), &pod); err != nil || len(pod.Spec.Containers) != 2 {
		t.Fatalf("%v %s", err, body)
	}
	if added := pod.Spec.Containers[1]; added.Name != "added" || added.ImagePullPolicy != "IfNotPresent" || added.TerminationMessagePath == "" {
		t.Errorf("what was added got no defaults: %+v", added)
	} else if len(added.VolumeMounts) != 1 || len(pod.Spec.Volumes) != 1 {
		t.Errorf("what was added was not seen by other plugins, or twice: %+v", pod.Spec)
	}
}

func (c *courtroom) failures(t *testing.T) {
	for _, f := range []struct{ path, want string }{
		{"/stall", `Post "` + c.judge.URL + `/stall?timeout=5s": context deadline exceeded`},
		{"/broken", `an error on the server ("out of order") has prevented the request from succeeding`},
		{"/older", "converting (v1beta1.AdmissionReview) to (v1.AdmissionReview): unknown conversion"},
		{"/stranger", `received invalid webhook response: expected response.uid=`},
		{"/endless", "the answer has more than 8388608 bytes"},
		{"/moved", "failed to call webhook: "},
		{"/container", "validating webhook may not return response.patch"},
	} {
		t.Run(f.path[1:], func(t *testing.T) {
			seconds := 30 // a busy machine may take its time
			if f.path == "/stall" {
				seconds = 5 // which never answers: so long may pass until it is asked
			}
			c.hooks(t, validatingHooks, map[string]any{"path": f.path, "timeoutSeconds": seconds})
			code, _, body := c.config(t, "failed", "")
			if text := message(body); code != http.StatusInternalServerError || !strings.HasPrefix(text, `Internal error occurred: failed calling webhook "hook0.example.org": `) || !strings.Contains(text, f.want) {
				t.Errorf("%d %s", code, text)
			}
			if list := c.judge.take(); len(list) != 1 {
				t.Errorf("asked %d times", len(list))
			}
		})
	}
	t.Run("let pass", func(t *testing.T) {
		c.hooks(t, validatingHooks, map[string]any{"path": "/broken", "failurePolicy": "Ignore"})
		if code, _, body := c.config(t, "passed", ""); code != http.StatusCreated {
			t.Errorf("%d %s", code, body)
		}
	})
	t.Run("not trusted", func(t *testing.T) {
		c.hooks(t, validatingHooks, map[string]any{"path": "/allow", "clientConfig": map[string]any{"url": c.judge.URL + "/allow"}})
		if code, _, body := c.config(t, "failed", ""); code != http.StatusInternalServerError || !strings.Contains(message(body), "x509: certificate signed by unknown authority") {
			t.Errorf("%d %s", code, body)
		}
	})
}

func (c *courtroom) dryRun(t *testing.T) {
	c.hooks(t, validatingHooks, map[string]any{"path": "/allow", "sideEffects": "NoneOnDryRun"})
	if code, _, body := c.config(t, "dry", "?dryRun=All"); code != http.StatusCreated {
		t.Errorf("%d %s", code, body)
	}
	if list := c.judge.take(); len(list) != 1 || !list[0].Request.DryRun {
		t.Errorf("a dry run asked %+v", list)
	}
}

func (c *courtroom) subresources(t *testing.T) {
	c.hooks(t, validatingHooks, map[string]any{"path": "/deny", "rules": []any{
		rule("", "pods/eviction", "CREATE"), rule("", "pods/status", "UPDATE"), rule("", "pods/exec", "CONNECT"), rule("apps", "deployments/scale", "UPDATE"),
	}})
	want(t, c.api, http.StatusCreated, "POST", "/apis/apps/v1/namespaces/court/deployments", "application/json",
		`{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	for _, r := range [][4]string{
		{"POST", "/api/v1/namespaces/court/pods/two/eviction", `{"apiVersion":"policy/v1","kind":"Eviction","metadata":{"name":"two"}}`, "Eviction eviction"},
		{"PATCH", "/api/v1/namespaces/court/pods/two/status", `{"status":{"message":"x"}}`, "Pod status"},
		{"GET", "/api/v1/namespaces/court/pods/two/exec?command=ls", "", "PodExecOptions exec"},
		{"PATCH", "/apis/apps/v1/namespaces/court/deployments/d/scale", `{"spec":{"replicas":3}}`, "Scale scale"},
	} {
		kind := "application/json"
		if r[0] == "PATCH" {
			kind = "application/merge-patch+json"
		}
		want(t, c.api, http.StatusTeapot, r[0], r[1], kind, r[2])
		list := c.judge.take()
		if len(list) != 1 || list[0].Request.Kind.Kind+" "+list[0].Request.SubResource != r[3] {
			t.Errorf("%s %s asked %+v", r[0], r[1], list)
		}
	}
}

func (c *courtroom) service(t *testing.T) {
	u, err := url.Parse(c.judge.URL)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(u.Port())
	if err != nil {
		t.Fatal(err)
	}
	c.hooks(t, validatingHooks, map[string]any{"path": "/allow", "clientConfig": map[string]any{
		"service": map[string]any{"namespace": "court", "name": "judge", "path": "/allow", "port": port}, "caBundle": []byte(c.judge.ca),
	}})
	address := fmt.Sprintf("https://judge.court.svc:%d/allow?timeout=10s", port)
	if code, _, body := c.config(t, "served", ""); code != http.StatusInternalServerError || !strings.Contains(message(body), fmt.Sprintf(`Post %q: service "judge" not found`, address)) {
		t.Errorf("without the service: %d %s", code, body)
	}
	want(t, c.api, http.StatusCreated, "POST", "/api/v1/namespaces/court/services", "application/json", `{"metadata":{"name":"judge"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	if code, _, body := c.config(t, "served", ""); code != http.StatusCreated {
		t.Errorf("%d %s", code, body)
	}
}

// custom asks about objects of a kind with two versions, of which the webhook knows
// one.
func (c *courtroom) custom(t *testing.T) {
	schema := `{"openAPIV3Schema":{"type":"object","properties":{"spec":{"type":"object","properties":{
		"size":{"type":"integer"},"limit":{"type":"integer"},"part":{"type":"object","properties":{"color":{"type":"string","default":"red"}}}}}}}}`
	version := func(name string, stored bool) string {
		return fmt.Sprintf(`{"name":%q,"served":true,"storage":%t,"schema":%s}`, name, stored, schema)
	}
	want(t, c.api, http.StatusCreated, "POST", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions", "application/json",
		`{"metadata":{"name":"widgets.court.example.org"},"spec":{"group":"court.example.org","scope":"Namespaced","names":{"plural":"widgets","kind":"Widget"},"versions":[`+version("v1", true)+","+version("v2", false)+`]}}`)
	const widgets = "/apis/court.example.org/v2/namespaces/court/widgets"
	const stored = "/apis/court.example.org/v1/namespaces/court/widgets"
	eventually(t, "the new kind", func() bool {
		code, _, err := c.do(context.Background(), "GET", widgets, "", "")
		return err == nil && code == http.StatusOK
	})
	c.hooks(t, mutatingHooks, map[string]any{"path": "/custom", "rules": []any{rule("court.example.org", "widgets", "CREATE")}})
	body := string(want(t, c.api, http.StatusCreated, "POST", widgets, "application/json",
		`{"apiVersion":"court.example.org/v2","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}`))
	for _, part := range []string{`"apiVersion":"court.example.org/v2"`, `"size":7`, `"color":"red"`} {
		if !strings.Contains(body, part) {
			t.Errorf("no %s in %s", part, body)
		}
	}
	list := c.judge.take()
	same := string(want(t, c.api, http.StatusCreated, "POST", stored, "application/json",
		`{"apiVersion":"court.example.org/v1","kind":"Widget","metadata":{"name":"x"},"spec":{"size":1}}`))
	for _, body := range []string{body, same} {
		if strings.Contains(body, "unheard") {
			t.Errorf("the webhook has brought in what the schema does not know: %s", body)
		}
	}
	c.judge.take()
	if len(list) != 1 || list[0].Request.Kind.Version != "v1" || list[0].Request.RequestKind.Version != "v2" || list[0].Request.Object["apiVersion"] != "court.example.org/v1" {
		t.Errorf("asked %+v", list)
	}
}

// customParameters has a policy take its parameters from an object of that kind.
func (c *courtroom) customParameters(t *testing.T) {
	const policies = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolic"
	want(t, c.api, http.StatusCreated, "POST", policies+"ies", "application/json", `{"metadata":{"name":"court"},"spec":{
		"paramKind":{"apiVersion":"court.example.org/v2","kind":"Widget"},
		"matchConstraints":{"resourceRules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]},
		"validations":[{"expression":"object.data.size() <= params.spec.size","messageExpression":"'more than ' + string(params.spec.size) + ' in ' + params.apiVersion"}]}}`)
	want(t, c.api, http.StatusCreated, "POST", policies+"ybindings", "application/json", `{"metadata":{"name":"court"},"spec":{"policyName":"court","validationActions":["Deny"],
		"paramRef":{"name":"w","namespace":"court","parameterNotFoundAction":"Deny"}}}`)
	if code, _, body := c.config(t, "few", ""); code != http.StatusCreated {
		t.Errorf("%d %s", code, body)
	}
	want(t, c.api, http.StatusOK, "PATCH", "/apis/court.example.org/v1/namespaces/court/widgets/w", "application/merge-patch+json", `{"spec":{"size":0}}`)
	code, _, body := c.config(t, "many", "")
	if text := "ValidatingAdmissionPolicy 'court' with binding 'court' denied request: more than 0 in court.example.org/v2"; code != http.StatusUnprocessableEntity || !strings.HasSuffix(message(body), text) {
		t.Errorf("%d %s", code, body)
	}
}
