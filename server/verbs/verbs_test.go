package verbs_test

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/verbs"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// fixture is a server on a store in memory.
type fixture struct {
	t     testing.TB
	h     *verbs.Handler
	store *sqlstore.Store
	front http.Handler // the filters, then h
}

func newFixture(t testing.TB, plugins ...admission.Plugin) *fixture {
	t.Helper()
	f := serverOn(t, storetest.NewShared().Open(), plugins...)
	f.want(201, "POST", "/api/v1/namespaces", `{"metadata":{"name":"a"}}`)
	return f
}

// serverOn returns a server of its own on a database.
func serverOn(t testing.TB, driver sqlstore.Driver, plugins ...admission.Plugin) *fixture {
	t.Helper()
	s := servertest.Start(t, servertest.Plain([]string{"NamespaceLifecycle"}, plugins...), servertest.On(driver, sqlstore.Config{}), func(c *server.Config) {
		c.RequestTimeout = 10 * time.Minute // that many writers get through is not to depend on how busy the machine is
	})
	return &fixture{t: t, h: s.Verbs, store: s.Store, front: s.Handler()}
}

func (f *fixture) do(method, url, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(method, url, strings.NewReader(body))
	r.Header.Set("User-Agent", "tester/1")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return f.serve(r)
}

func (f *fixture) serve(r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	f.front.ServeHTTP(w, r)
	return w
}

// want makes a request that must be answered with code.
func (f *fixture) want(code int, method, url, body string, headers ...string) map[string]any {
	f.t.Helper()
	w := f.do(method, url, body, headers...)
	if w.Code != code {
		f.t.Fatalf("%s %s: %d, want %d: %s", method, url, w.Code, code, w.Body)
	}
	var out map[string]any
	if err := json.Unmarshal(w.Body.Bytes(), &out); err != nil {
		f.t.Fatalf("%s %s: %v: %s", method, url, err, w.Body)
	}
	return out
}

// at reads a dotted path.
func at(v any, path string) string {
	for key := range strings.SplitSeq(path, ".") {
		m, _ := v.(map[string]any)
		v = m[key]
	}
	if v == nil {
		return ""
	}
	return fmt.Sprint(v)
}

const (
	configmaps = "/api/v1/namespaces/a/configmaps"
	merge      = "application/merge-patch+json"
)

func TestRouting(t *testing.T) {
	f := newFixture(t)
	for _, c := range []struct {
		method, url string
		code        int
		message     string
	}{
		{"GET", "/apis/none.example/v1/things", 404, ""},
		{"GET", "/apis/apps/v9/deployments", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/nothings", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/configmaps/x", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/namespaces/a/nodes", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/namespaces/a/namespaces", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/namespaces/a/namespaces/a", 404, "the server could not find the requested resource"},
		{"GET", configmaps + "/x/status", 404, "the server could not find the requested resource"},
		{"GET", configmaps + "/x", 404, `configmaps "x" not found`},
		{"GET", configmaps + "/a%25b", 400, `Name parameter invalid: "a%b": may not contain '%'`},
		{"DELETE", configmaps + "/a%2Fb", 404, "the server could not find the requested resource"},
		{"GET", configmaps + "%2Fx", 404, `configmaps "x" not found`},
		{"GET", "/api/v1/namespaces//configmaps/x", 400, "Namespace parameter required."},
		{"GET", "/api/v1/namespaces/a/pods//status", 400, "name must be provided"},
		{"GET", "/api/v1/namespaces/a//configmaps", 404, "the server could not find the requested resource"},
		{"GET", "/apis//v1/configmaps", 404, ""},
		{"GET", configmaps + "/..?resourceVersion=x", 400, `Name parameter invalid: "..": may not be '..'`},
		{"GET", "/api/v1/nodes/.", 400, `Name parameter invalid: ".": may not be '.'`},
		{"GET", "/api/v1/namespaces/a/pods/%25/status", 400, `Name parameter invalid: "%": may not contain '%'`},
		{"GET", "/apis/apps/v1/namespaces/a/deployments/%25/scale", 404, `deployments/scale.apps "%" not found`},
		{"GET", "/api/v1//configmaps", 404, "the server could not find the requested resource"},
		{"PUT", configmaps, 405, "the server does not allow this method on the requested resource"},
		{"POST", configmaps + "/x", 405, "the server does not allow this method on the requested resource"},
		{"POST", "/api/v1/configmaps", 405, "the server does not allow this method on the requested resource"},
		{"OPTIONS", configmaps, 405, "the server does not allow this method on the requested resource"},
		{"DELETE", "/api/v1/namespaces", 405, "the server does not allow this method on the requested resource"},
		{"POST", "/api/v1/watch/configmaps", 405, "the server does not allow this method on the requested resource"},
		{"GET", "/api/v1/watch/componentstatuses", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/watch/namespaces/a/pods/x/status", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/proxy/namespaces/a/pods/x", 404, "the server could not find the requested resource"},
		{"GET", "/api/v1/componentstatuses?watch=1", 405, `watch is not supported on resources of kind "componentstatuses"`},
		{"GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews", 405, "the server does not allow this method on the requested resource"},
		{"GET", "/apis/authorization.k8s.io/v1/subjectaccessreviews/x", 404, "the server could not find the requested resource"},
	} {
		w := f.do(c.method, c.url, "")
		if w.Code != c.code {
			t.Errorf("%s %s: %d, want %d: %s", c.method, c.url, w.Code, c.code, w.Body)
			continue
		}
		var st map[string]any
		if err := json.Unmarshal(w.Body.Bytes(), &st); c.message != "" && (err != nil || at(st, "message") != c.message) {
			t.Errorf("%s %s: %s", c.method, c.url, w.Body)
		}
	}
}

func TestCreateUpdateDelete(t *testing.T) {
	f := newFixture(t)
	made := f.want(201, "POST", configmaps, `{"metadata":{"name":"c","uid":"x","creationTimestamp":"2000-01-01T00:00:00Z"},"data":{"k":"1"}}`)
	uid, rv := at(made, "metadata.uid"), at(made, "metadata.resourceVersion")
	if uid == "" || uid == "x" || rv == "" || strings.HasPrefix(at(made, "metadata.creationTimestamp"), "2000") {
		t.Fatalf("metadata of the server: %v", made["metadata"])
	}
	f.want(409, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	f.want(500, "POST", configmaps, `{"metadata":{"name":"d","resourceVersion":"7"}}`)
	f.want(400, "POST", configmaps, `{"metadata":{"name":"d","namespace":"b"}}`)
	f.want(404, "POST", "/api/v1/namespaces/none/configmaps", `{"metadata":{"name":"d"}}`)

	put := f.want(200, "PUT", configmaps+"/c", `{"metadata":{"name":"c"},"data":{"k":"2"}}`)
	if at(put, "data.k") != "2" || at(put, "metadata.uid") != uid {
		t.Fatalf("put: %v", put)
	}
	same := f.want(200, "PUT", configmaps+"/c", `{"metadata":{"name":"c"},"data":{"k":"2"}}`)
	if at(same, "metadata.resourceVersion") != at(put, "metadata.resourceVersion") {
		t.Error("a write that changes nothing made a new version")
	}
	f.want(409, "PUT", configmaps+"/c", `{"metadata":{"name":"c","resourceVersion":"`+rv+`"},"data":{"k":"3"}}`)
	f.want(409, "PUT", configmaps+"/c", `{"metadata":{"name":"c","resourceVersion":"18446744073709551615"}}`)
	f.want(500, "PUT", configmaps+"/c", `{"metadata":{"name":"c","resourceVersion":"18446744073709551616"}}`)
	f.want(409, "PUT", configmaps+"/c", `{"metadata":{"name":"c","uid":"11111111-1111-4111-8111-111111111111"}}`)
	f.want(400, "PUT", configmaps+"/c", `{"metadata":{"name":"other"}}`)
	f.want(404, "PUT", configmaps+"/absent", `{"metadata":{"name":"absent"}}`)

	patched := f.want(200, "PATCH", configmaps+"/c", `{"data":{"l":"9"}}`, "Content-Type", merge)
	if at(patched, "data.k") != "2" || at(patched, "data.l") != "9" {
		t.Fatalf("patch: %v", patched)
	}
	f.want(415, "PATCH", configmaps+"/c", `{}`, "Content-Type", "text/plain")
	f.want(422, "PATCH", configmaps+"/c", `{"metadata":{"uid":"z"}}`, "Content-Type", merge)

	gone := f.want(200, "DELETE", configmaps+"/c", "")
	if at(gone, "status") != "Success" || at(gone, "details.uid") != uid {
		t.Fatalf("delete: %v", gone)
	}
	f.want(404, "DELETE", configmaps+"/c", "")
}

func TestDryRunKeepsNothing(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"kept"},"data":{"a":"1"}}`)
	before := f.h.Objects.Revision()
	f.want(201, "POST", configmaps+"?dryRun=All", `{"metadata":{"name":"trial"}}`)
	f.want(409, "POST", configmaps+"?dryRun=All", `{"metadata":{"name":"kept"}}`)
	f.want(200, "PUT", configmaps+"/kept?dryRun=All", `{"metadata":{"name":"kept"},"data":{"a":"2"}}`)
	f.want(200, "PATCH", configmaps+"/kept?dryRun=All", `{"data":{"a":"3"}}`, "Content-Type", merge)
	f.want(200, "DELETE", configmaps+"/kept?dryRun=All", "")
	f.want(200, "DELETE", configmaps+"/kept?dryRun=All", `{"propagationPolicy":"Foreground"}`)
	f.want(200, "DELETE", configmaps+"?dryRun=All", "")
	f.want(422, "DELETE", configmaps+"/kept?dryRun=Some", "")
	if now := f.h.Objects.Revision(); now != before {
		t.Errorf("revision went from %d to %d", before, now)
	}
	f.want(200, "DELETE", configmaps+"/kept?dryRun", "")
	if now := f.h.Objects.Revision(); now == before {
		t.Error("dryRun without a value deleted nothing")
	}
}

func TestFinalizers(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"held","finalizers":["x.example/a"]}}`)
	marked := f.want(200, "DELETE", configmaps+"/held", "")
	if at(marked, "kind") != "ConfigMap" || at(marked, "metadata.deletionTimestamp") == "" {
		t.Fatalf("%v", marked)
	}
	f.want(422, "PATCH", configmaps+"/held", `{"metadata":{"finalizers":["x.example/a","x.example/b"]}}`, "Content-Type", merge)
	again := f.want(409, "POST", configmaps, `{"metadata":{"name":"held"}}`)
	if !strings.HasPrefix(at(again, "message"), "object is being deleted: ") {
		t.Errorf("%v", again)
	}
	f.want(200, "PATCH", configmaps+"/held", `{"metadata":{"finalizers":null}}`, "Content-Type", merge)
	f.want(404, "GET", configmaps+"/held", "")
}

func TestNamespaceGoes(t *testing.T) {
	f := newFixture(t)
	f.want(200, "DELETE", "/api/v1/namespaces/a", "")
	f.want(403, "POST", configmaps, `{"metadata":{"name":"late"}}`)
	still := f.want(200, "DELETE", "/api/v1/namespaces/a", "")
	if at(still, "status.phase") != "Terminating" {
		t.Fatalf("%v", still)
	}
	f.want(200, "PUT", "/api/v1/namespaces/a/finalize", `{"metadata":{"name":"a"},"spec":{"finalizers":[]}}`)
	f.want(404, "GET", "/api/v1/namespaces/a", "")
}

func TestPreconditions(t *testing.T) {
	f := newFixture(t)
	made := f.want(201, "POST", configmaps, `{"metadata":{"name":"p"}}`)
	f.want(409, "DELETE", configmaps+"/p", `{"preconditions":{"uid":"other"}}`)
	f.want(409, "DELETE", configmaps+"/p", `{"preconditions":{"resourceVersion":"1"}}`)
	f.want(409, "DELETE", configmaps+"/p?uid=other", "")
	f.want(409, "DELETE", configmaps+"/p?resourceVersion=1", "")
	f.want(422, "DELETE", configmaps+"/p?propagationPolicy=", "")
	f.want(500, "DELETE", configmaps+"/p", `{"kind":"ConfigMap","apiVersion":"v1"}`)
	f.want(200, "DELETE", configmaps+"/p", `{"preconditions":{"uid":"`+at(made, "metadata.uid")+`","resourceVersion":"`+at(made, "metadata.resourceVersion")+`"}}`)
}

// Writers that name no version must all get through, and none may be lost.
func TestConcurrentPatches(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"c"},"data":{"z":"z"}}`)
	const writers, writes = 8, 10
	var wg sync.WaitGroup
	codes := make(chan int, writers*writes)
	for w := range writers {
		wg.Go(func() {
			for i := range writes {
				codes <- f.do("PATCH", configmaps+"/c", fmt.Sprintf(`{"data":{"w%d-%d":"x"}}`, w, i), "Content-Type", merge).Code
			}
		})
	}
	wg.Wait()
	close(codes)
	for code := range codes {
		if code != 200 {
			t.Fatalf("a patch was answered with %d", code)
		}
	}
	got := f.want(200, "GET", configmaps+"/c", "")
	if n := len(got["data"].(map[string]any)); n != writers*writes+1 {
		t.Errorf("%d keys, want %d", n, writers*writes+1)
	}
}

// Of writers that name the same version one wins.
func TestCompareAndSwap(t *testing.T) {
	f := newFixture(t)
	made := f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	body := func(i int) string {
		return fmt.Sprintf(`{"metadata":{"name":"c","resourceVersion":%q},"data":{"by":"%d"}}`, at(made, "metadata.resourceVersion"), i)
	}
	var wg sync.WaitGroup
	codes := make([]int, 8)
	for i := range codes {
		wg.Go(func() { codes[i] = f.do("PUT", configmaps+"/c", body(i)).Code })
	}
	wg.Wait()
	won := 0
	for _, code := range codes {
		switch code {
		case 200:
			won++
		case 409:
		default:
			t.Errorf("code %d", code)
		}
	}
	if won != 1 {
		t.Errorf("%d writers won", won)
	}
}

// refuser refuses an operation on ConfigMaps, and marks what it admits.
type refuser struct{ op admission.Operation }

func (refuser) Name() string                          { return "refuser" }
func (r refuser) Handles(op admission.Operation) bool { return true }
func (r refuser) Admit(_ context.Context, a *admission.Attributes) error {
	if cm, ok := a.Object.(*corev1.ConfigMap); ok {
		if cm.Data == nil {
			cm.Data = map[string]string{}
		}
		cm.Data["admitted"] = string(a.Operation)
	}
	return nil
}
func (r refuser) Validate(_ context.Context, a *admission.Attributes) error {
	if a.Operation == r.op && a.Is("", "configmaps", "") {
		return a.Forbid(fmt.Errorf("no"))
	}
	return nil
}

func TestAdmission(t *testing.T) {
	f := newFixture(t, refuser{admission.Delete})
	made := f.want(201, "POST", configmaps, `{"metadata":{"name":"c"}}`)
	if at(made, "data.admitted") != "CREATE" {
		t.Errorf("%v", made)
	}
	for _, e := range made["metadata"].(map[string]any) {
		if strings.Contains(fmt.Sprint(e), "f:admitted") {
			t.Error("the client owns what admission wrote")
		}
	}
	no := f.want(403, "DELETE", configmaps+"/c", "")
	if at(no, "message") != `configmaps "c" is forbidden: no` {
		t.Errorf("%v", no)
	}
	f.want(403, "DELETE", configmaps, "")
}

func TestFieldValidation(t *testing.T) {
	f := newFixture(t)
	w := f.do("POST", configmaps, `{"metadata":{"name":"c"},"dta":{}}`)
	if got := w.Header().Values("Warning"); w.Code != 201 || len(got) != 1 || got[0] != `299 - "unknown field \"dta\""` {
		t.Errorf("%d %q", w.Code, got)
	}
	f.want(400, "POST", configmaps+"?fieldValidation=Strict", `{"metadata":{"name":"d"},"dta":{}}`)
	if w := f.do("POST", configmaps+"?fieldValidation=Ignore", `{"metadata":{"name":"d"},"dta":{}}`); w.Code != 201 || w.Header().Get("Warning") != "" {
		t.Errorf("%d %q", w.Code, w.Header())
	}
}

func TestBodyLimit(t *testing.T) {
	f := newFixture(t)
	f.h.MaxBody = 1000
	big := `{"metadata":{"name":"big"},"data":{"k":"` + strings.Repeat("x", 1000) + `"}}`
	f.want(413, "POST", configmaps, big)
}

// TestLargeFieldSets: an object that is too large only with its managed fields is stored
// without them; an apply is refused.
func TestLargeFieldSets(t *testing.T) {
	f := newFixture(t)
	data := &strings.Builder{}
	for i := range 9999 {
		fmt.Fprintf(data, `"a-key-that-is-long-so-that-the-set-of-fields-takes-the-room-of-the-data-%d":"A",`, i)
	}
	all := `"data":{` + strings.TrimSuffix(data.String(), ",") + `}}`
	f.want(201, "POST", configmaps, `{"metadata":{"name":"put"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"patched"}}`)
	for _, made := range []map[string]any{
		f.want(201, "POST", configmaps, `{"metadata":{"name":"new"},`+all),
		f.want(200, "PUT", configmaps+"/put", `{"metadata":{"name":"put"},`+all),
		f.want(200, "PATCH", configmaps+"/patched", `{`+all, "Content-Type", merge),
	} {
		if n := len(made["data"].(map[string]any)); n != 9999 || at(made, "metadata.managedFields") != "" {
			t.Errorf("%s: %d keys, owners %.100s", at(made, "metadata.name"), n, at(made, "metadata.managedFields"))
		}
	}
	f.want(413, "PATCH", configmaps+"/applied?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"applied"},`+all, "Content-Type", "application/apply-patch+yaml")
}

// TestLargeAnswersAreCompressed: those of single objects too, where the client takes it
// and the gate is on.
func TestLargeAnswersAreCompressed(t *testing.T) {
	f := newFixture(t)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"small"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"big"},"data":{"k":"`+strings.Repeat("x", 200_000)+`"}}`)
	plain := f.do("GET", configmaps+"/big", "").Body.String()
	for _, tc := range []struct {
		name, accept string
		gate         bool
		want         string
	}{
		{"big", "br, gzip", true, "gzip"},
		{"big", "gzip", false, ""},
		{"big", "identity", true, ""},
		{"small", "gzip", true, ""},
	} {
		f.h.Answers.Compress = tc.gate
		w := f.do("GET", configmaps+"/"+tc.name, "", "Accept-Encoding", tc.accept)
		if got := w.Header().Get("Content-Encoding"); got != tc.want || (w.Header().Get("Content-Length") == "") != (tc.want != "") {
			t.Errorf("%+v: encoding %q, length %q", tc, got, w.Header().Get("Content-Length"))
		}
		if tc.want != "gzip" {
			continue
		}
		zr, err := gzip.NewReader(w.Body)
		if err != nil {
			t.Fatal(err)
		}
		if body, err := io.ReadAll(zr); err != nil || string(body) != plain || w.Header().Get("Vary") != "Accept-Encoding" {
			t.Errorf("%d bytes, want %d: %v", len(body), len(plain), err)
		}
	}
}

// TestRepeatedOwners: they are dropped, and the client gets a warning where they were found.
func TestRepeatedOwners(t *testing.T) {
	f := newFixture(t)
	owner := func(uid, name string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Pod","name":%q,"uid":%q}`, name, uid)
	}
	refs := `{"metadata":{"name":"c","ownerReferences":[` + strings.Join([]string{
		owner("b", "x"), owner("a", "x"), owner("b", "y"), owner("b", "x"), owner("a", "x"), owner("a", "x"),
	}, ",") + `]}}`
	for _, tc := range []struct{ method, url, when, contentType string }{
		{"POST", configmaps, "", "application/json"},
		{"PUT", configmaps + "/c", "", "application/json"},
		{"PATCH", configmaps + "/c", " after mutating admission happens", merge},
	} {
		w := f.do(tc.method, tc.url, refs, "Content-Type", tc.contentType)
		want := `299 - ".metadata.ownerReferences contains duplicate entries` + tc.when + `; API server dedups owner references in 1.20+, ` +
			`and may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: b, a, a"`
		if got := w.Header().Values("Warning"); len(got) != 1 || got[0] != want || strings.Count(w.Body.String(), `"kind":"Pod"`) != 3 {
			t.Errorf("%s: %d %q\n%s", tc.method, w.Code, got, w.Body)
		}
	}
	w := f.do("PUT", configmaps+"/none", strings.Replace(refs, `"c"`, `"none"`, 1))
	if got := w.Header().Values("Warning"); w.Code != 404 || len(got) != 1 {
		t.Errorf("PUT of what is not there: %d %q", w.Code, got)
	}
}

func TestManagersFromUserAgents(t *testing.T) {
	f := newFixture(t)
	for i, tc := range []struct{ agent, want string }{
		{"kubectl/v1.32 (linux)", "kubectl"},
		{"a b", "a b"},
		{"tab\tbed/1", "tabbed"},
		{"/1", "unknown"},
		{strings.Repeat("x", 200), strings.Repeat("x", 128)},
		{strings.Repeat("€", 50) + "/1", strings.Repeat("€", 42)},
	} {
		made := f.want(201, "POST", configmaps, fmt.Sprintf(`{"metadata":{"name":"c%d"},"data":{"k":"v"}}`, i), "User-Agent", tc.agent)
		entry, _ := made["metadata"].(map[string]any)["managedFields"].([]any)[0].(map[string]any)
		if entry["manager"] != tc.want {
			t.Errorf("%q: %q", tc.agent, entry["manager"])
		}
	}
}

func TestVersionAndUIDOfNewObjects(t *testing.T) {
	f := newFixture(t)
	f.want(500, "POST", configmaps, `{"metadata":{"name":"a","resourceVersion":"7"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"a","resourceVersion":"0"}}`)
	f.want(201, "POST", configmaps, `{"metadata":{"name":"b","resourceVersion":"none"}}`)
	const apply = "application/apply-patch+yaml"
	no := f.want(409, "PATCH", configmaps+"/c?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c","uid":"u"}}`, "Content-Type", apply)
	if want := `Operation cannot be fulfilled on configmaps "c": uid mismatch: the provided object specified uid u, and no existing object was found`; at(no, "message") != want {
		t.Errorf("%v", no)
	}
}

// TestApplyOfNoTime: the merge accepts any text for a time; the error of the decoding names
// the kind.
func TestApplyOfNoTime(t *testing.T) {
	f := newFixture(t)
	no := f.want(500, "PATCH", configmaps+"/t?fieldManager=m", `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"t","deletionTimestamp":"0"}}`, "Content-Type", "application/apply-patch+yaml")
	if want := "unable to convert unstructured object to /v1, Kind=ConfigMap: parsing time"; !strings.Contains(at(no, "message"), want) {
		t.Errorf("%v", no)
	}
}

func TestScale(t *testing.T) {
	f := newFixture(t)
	const deployments = "/apis/apps/v1/namespaces/a/deployments"
	f.want(201, "POST", deployments, `{"metadata":{"name":"d"},"spec":{"selector":{"matchLabels":{"x":"y"}},"template":{"metadata":{"labels":{"x":"y"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	s := f.want(200, "GET", deployments+"/d/scale", "")
	if at(s, "kind") != "Scale" || at(s, "spec.replicas") != "1" || at(s, "status.selector") != "x=y" {
		t.Fatalf("%v", s)
	}
	s = f.want(200, "PATCH", deployments+"/d/scale", `{"spec":{"replicas":4}}`, "Content-Type", merge)
	if at(s, "spec.replicas") != "4" {
		t.Fatalf("%v", s)
	}
	d := f.want(200, "GET", deployments+"/d", "")
	if at(d, "spec.replicas") != "4" || at(d, "metadata.generation") != "2" {
		t.Fatalf("%v", d)
	}
	f.want(422, "PUT", deployments+"/d/scale", `{"metadata":{"name":"d"},"spec":{"replicas":-1}}`)

	// A manager that applies no number any more leaves that of the others, and sends no
	// name: the path does.
	const applied = "application/apply-patch+yaml"
	for _, spec := range []string{`{"replicas":4}`, `{}`} {
		s = f.want(200, "PATCH", deployments+"/d/scale?fieldManager=m", `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":`+spec+`}`, "Content-Type", applied)
		if at(s, "spec.replicas") != "4" {
			t.Fatalf("%v", s)
		}
	}
	no := f.want(500, "PATCH", deployments+"/d/scale?fieldManager=m", `{"apiVersion":"autoscaling/v1","kind":"Scale","spec":{"replicas":"x"}}`, "Content-Type", applied)
	if !strings.Contains(at(no, "message"), ".spec.replicas: expected numeric (int or float), got string") {
		t.Errorf("%v", no)
	}
}

func BenchmarkCreate(b *testing.B) {
	f := newFixture(b)
	payload := strings.Repeat("x", 900)
	var n int
	b.ReportAllocs()
	for b.Loop() {
		n++
		w := f.do("POST", configmaps, fmt.Sprintf(`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"c%d"},"data":{"k":"%s"}}`, n, payload))
		if w.Code != 201 {
			b.Fatal(w.Body)
		}
	}
}
