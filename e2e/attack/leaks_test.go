package attack

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rowlock/rowlock/e2e/harness"
)

func encode(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestLeaks: secrets are in no log at any verbosity, in no audit event at the level Metadata, in no metric, profile or page for
// operators, in no Event, in no refusal, and in no file but the database.
func TestLeaks(t *testing.T) {
	t.Parallel()
	args, auditLog := auditArgs(t)
	a := open(t, append(args, "-v=10", "--feature-gates=ComponentFlagz=true,ComponentStatusz=true", "--shutdown-delay-duration=0s")...)
	canaries := map[string]string{}
	canary := func(what string) string { // as long as base64 of it is a part of base64 of anything that begins with it
		text := fmt.Sprintf("canary-%02d-%s", len(canaries), strings.Repeat("x", 20))
		canaries[text] = what
		return text
	}
	do := func(c call) (int, string) {
		t.Helper()
		return a.send(t, c)
	}
	admin := harness.AdminToken
	const secrets = "/api/v1/namespaces/mallory/secrets"
	secret := func(name, value string) string {
		return fmt.Sprintf(`{"apiVersion":"v1","kind":"Secret","metadata":{"name":%q},"stringData":{"k":%q}}`, name, value)
	}
	for _, c := range []call{
		post(secrets, asJSON, secret("s", canary("a created Secret"))),
		{method: "PUT", path: secrets + "/s", body: secret("s", canary("an updated Secret"))},
		patch(secrets+"/s", asMerge, `{"stringData":{"k":"`+canary("a patched Secret")+`"}}`),
		patch(secrets+"/s", asPatch, `[{"op":"add","path":"/data/b","value":"`+base64.StdEncoding.EncodeToString([]byte(canary("a JSON patch")))+`"}]`),
		patch(secrets+"/s?fieldManager=m&force=true", asApply, secret("s", canary("an applied Secret"))),
		patch(secrets+"/s?fieldManager=n", asApply, secret("s", canary("a conflict"))),
		patch(secrets+"/s", asStrategy, `{"stringData":{"k":"`+canary("a strategic patch")+`"}}`),
		post(secrets, asJSON, secret("s", canary("a Secret that exists"))),
		post(secrets, asJSON, secret("S!", canary("a Secret with a bad name"))),
		post(secrets, asJSON, `{"metadata":{"name":"t"},"type":"kubernetes.io/tls","stringData":{"tls.crt":"`+canary("a Secret that is not valid")+`"}}`),
		post(secrets, asJSON, `{"metadata":{"name":"cut"},"stringData":{"k":"`+canary("JSON that is cut short")),
		post(secrets, asJSON, `{"metadata":{"name":"u"},"stringDatas":{"k":"`+canary("an unknown field")+`"}}`),
		post(secrets, asYAML, "a: b: "+canary("bad YAML")),
		post(secrets, asProtobuf, canary("bad Protobuf")),
		post(secrets, "text/plain", canary("a body in no form")),
		{method: "PUT", path: secrets + "/gone", body: secret("gone", canary("a Secret that is gone"))},
		post("/api/v1/namespaces/none/secrets", asJSON, secret("s", canary("a Secret in no namespace"))),
		post("/apis/authentication.k8s.io/v1/tokenreviews", asJSON, `{"spec":{"token":"`+canary("a reviewed token")+`"}}`),
		get(secrets), get(secrets + "/s"), get(secrets + "?watch=1&timeoutSeconds=1"),
		post("/api/v1/namespaces/mallory/serviceaccounts/mallory/token", asJSON, `{"spec":{"boundObjectRef":{"kind":"Secret","apiVersion":"v1","name":"s"}}}`),
	} {
		c.token = admin
		_, answer := do(c)
		if _, token, found := strings.Cut(answer, `"token":"ey`); found && strings.Contains(c.path, "serviceaccounts") {
			token, _, _ = strings.Cut(token, `"`)
			canaries["ey"+token] = "an issued token"
		}
	}
	// Credentials that are good, and some that are not.
	canaries[a.mallory], canaries[a.nobody], canaries[admin] = "a token in use", "a token in use", "a token of a file"
	for _, h := range []string{"Bearer " + canary("a bad token"), "Basic " + base64.StdEncoding.EncodeToString([]byte(canary("a password"))), "Bearer a.b." + canary("a bad signature"), canary("no scheme")} {
		do(call{method: "GET", path: secrets, headers: []string{"Authorization", h, "Cookie", "c=" + canary("a cookie")}})
		do(call{method: "GET", path: secrets, headers: []string{"Proxy-Authorization", h, "Sec-Websocket-Protocol", "base64url.bearer.authorization.k8s.io." + base64.RawURLEncoding.EncodeToString([]byte(canary("a token of a browser")))}})
	}
	// A user who may write Secrets, but not read them, learns nothing of their content.
	a.admin(t, "POST", "/api/v1/namespaces", `{"metadata":{"name":"writer"}}`)
	writer := a.account(t, "writer", "writer")
	canaries[writer] = "a token in use"
	a.grant(t, "writer", "writer", `[{"apiGroups":[""],"resources":["secrets"],"verbs":["create","update","delete"]}]`)
	kept := canary("a Secret of others")
	a.admin(t, "POST", "/api/v1/namespaces/writer/secrets", secret("kept", kept))
	for _, c := range []call{
		post("/api/v1/namespaces/writer/secrets", asJSON, secret("kept", "y")), get("/api/v1/namespaces/writer/secrets/kept"), get("/api/v1/namespaces/writer/secrets"),
		{method: "PUT", path: "/api/v1/namespaces/writer/secrets/kept", body: `{"metadata":{"name":"kept","resourceVersion":"1"}}`},
		{method: "PUT", path: "/api/v1/namespaces/writer/secrets/kept", body: `{"metadata":{"name":"kept","uid":"x"}}`},
		{method: "PUT", path: "/api/v1/namespaces/writer/secrets/kept", body: `{"metadata":{"name":"kept"},"type":"x"}`},
		{method: "DELETE", path: "/api/v1/namespaces/writer/secrets/kept", body: `{"preconditions":{"uid":"x"}}`},
		patch("/api/v1/namespaces/writer/secrets/kept", asMerge, `{}`),
	} {
		c.token = writer
		if code, answer := do(c); code < 400 || strings.Contains(answer, kept) || strings.Contains(answer, base64.StdEncoding.EncodeToString([]byte(kept))) {
			t.Errorf("%s %s: %d %s", c.method, c.path, code, answer)
		}
	}
	look := func(where, text string) {
		t.Helper()
		for secret, what := range canaries {
			for _, form := range []string{secret, base64.StdEncoding.EncodeToString([]byte(secret)), base64.RawURLEncoding.EncodeToString([]byte(secret))} {
				if i := strings.Index(text, form); i >= 0 {
					t.Errorf("%s shows %s: %.300q", where, what, text[max(0, i-100):])
				}
			}
		}
	}
	if _, answer := do(call{method: "GET", path: secrets + "/s", token: admin}); !strings.Contains(answer, "Y2FuYXJ5") {
		t.Fatalf("a canary would not be found: %s", answer)
	}
	for _, path := range []string{
		"/metrics", "/metrics/slis", "/flagz", "/statusz", "/readyz?verbose", "/version", "/api/v1/events", "/apis/events.k8s.io/v1/events",
		"/debug/pprof/goroutine?debug=2", "/debug/pprof/heap?debug=1", "/debug/pprof/allocs?debug=1", "/debug/pprof/threadcreate?debug=1", "/debug/pprof/mutex?debug=1",
		"/debug/api_priority_and_fairness/dump_requests?includeRequestDetails=1", "/debug/api_priority_and_fairness/dump_queues", "/debug/api_priority_and_fairness/dump_priority_levels",
		"/openapi/v2", "/apis/apps/v1", "/api/v1/namespaces/mallory/configmaps",
	} {
		look(path, a.Get(t, path))
	}
	if code, answer := do(call{method: "GET", path: "/debug/pprof/cmdline", token: admin}); code != http.StatusNotFound {
		t.Errorf("the command line, in which --store can have a password, is shown: %d %s", code, answer)
	}
	// Another process cannot be asked, so the server ends before its files are read.
	a.probe.stop()
	if err := a.Stop(); err != nil {
		t.Error(err)
	}
	log := a.Log()
	if strings.Count(log, "\n") < 50 {
		t.Errorf("little is logged: %s", log)
	}
	look("the log", log)
	data, err := os.ReadFile(auditLog)
	if err != nil || strings.Count(string(data), "\n") < 50 {
		t.Errorf("little is recorded: %v %s", err, data)
	}
	look("the audit log", string(data))
	err = filepath.WalkDir(a.DataDir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || strings.HasPrefix(d.Name(), "rowlock.db") && !strings.Contains(d.Name(), "cache") {
			return err
		}
		data, err := os.ReadFile(path)
		look(path, string(data))
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
