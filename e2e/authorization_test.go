package e2e

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/rowlock/rowlock/e2e/harness"
	"github.com/rowlock/rowlock/e2e/leniency"
)

// rightsHook is an authorization webhook; the name of the user selects its behavior.
type rightsHook struct {
	*httptest.Server
	kubeconfig string
	stop       chan struct{} // ends what stalls

	mu    sync.Mutex
	asked map[string][]string // questions, by user
}

func startRightsHook(t testing.TB, dir string) *rightsHook {
	h := &rightsHook{stop: make(chan struct{}), asked: map[string][]string{}}
	h.Server = httptest.NewTLSServer(h)
	t.Cleanup(h.Close)
	t.Cleanup(func() { close(h.stop) })
	h.kubeconfig = webhookKubeconfig(t, dir, h.Server)
	return h
}

func (h *rightsHook) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var review struct {
		APIVersion string
		Spec       struct{ User string }
	}
	if err := json.Unmarshal(body, &review); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	h.mu.Lock()
	h.asked[review.Spec.User] = append(h.asked[review.Spec.User], string(body))
	h.mu.Unlock()
	answer := func(status string) {
		fmt.Fprintf(w, `{"kind":"SubjectAccessReview","apiVersion":%q,"status":%s}`, review.APIVersion, status)
	}
	switch review.Spec.User {
	case "hook-yes":
		answer(`{"allowed":true,"reason":"it said yes"}`)
	case "hook-denied":
		answer(`{"denied":true,"reason":"it said no"}`)
	case "hook-both":
		answer(`{"allowed":true,"denied":true}`)
	case "hook-stall":
		select {
		case <-h.stop:
		case <-r.Context().Done():
		}
	case "hook-words":
		answer(`{"allowed":"true"}`)
	case "hook-html":
		fmt.Fprint(w, "<html>")
	case "hook-version":
		fmt.Fprint(w, `{"kind":"SubjectAccessReview","apiVersion":"authorization.k8s.io/v2","status":{"allowed":true}}`)
	case "hook-refused":
		w.WriteHeader(http.StatusForbidden)
		answer(`{"allowed":true}`)
	case "hook-cut":
		w.Header().Set("Content-Length", "1000")
		answer(`{"allowed":true}`)
	case "hook-broken":
		panic(http.ErrAbortHandler)
	default:
		answer(`{"reason":"never heard of them"}`)
	}
}

// questions returns the reviews about a user.
func (h *rightsHook) questions(user string) []string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.asked[user]...)
}

func startAuthorization(t *testing.T, args ...string) *access {
	a := &access{s: harness.StartT(t, harness.Options{Args: args}), clients: map[*certificate]*http.Client{}}
	var err error
	if a.roots, err = a.s.CA(); err != nil {
		t.Fatal(err)
	}
	return a
}

// as makes a request as another user.
func (a *access) as(t testing.TB, user, method, path, body string) (int, string) {
	t.Helper()
	return a.do(t, call{method: method, path: path, body: body, token: harness.AdminToken, headers: http.Header{"Impersonate-User": {user}}})
}

const podsPath = "/api/v1/namespaces/default/pods"

// rightsConfig asks a service about users whose names begin with "hook-": first with
// a policy of denying, then, for those it is to be open about, with none. Only about
// the one for whom it does not answer at all is it given little time.
const rightsConfig = `apiVersion: apiserver.config.k8s.io/v1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: hasty.example
  webhook:
    timeout: 300ms
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %[1]s}
    matchConditions:
    - expression: request.user == 'hook-stall'
- type: Webhook
  name: closed.example
  webhook: &hook
    timeout: 15s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile, kubeConfigFile: %[1]s}
    matchConditions:
    - expression: request.user.startsWith('hook-')
    - expression: "!('open' in request.extra) || request.resourceAttributes.verb != 'list'"
%[2]s
- {type: Node, name: node}
- {type: RBAC, name: rbac}
`

// TestAuthorizationConfig has a service, and roles, decide by a file that changes.
func TestAuthorizationConfig(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook := startRightsHook(t, dir)
	file := filepath.Join(dir, "authorization.yaml")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	first := fmt.Sprintf(rightsConfig, hook.kubeconfig, "")
	write(first)
	a := startAuthorization(t, "--authorization-config", file)
	hookDecides(t, a, hook)
	hookMatches(t, a, hook)
	figures := a.admin(t, "GET", "/metrics", "")
	for _, series := range []string{
		`apiserver_authorization_decisions_total{decision="allowed",name="closed.example",type="Webhook"}`,
		`apiserver_authorization_decisions_total{decision="denied",name="closed.example",type="Webhook"}`,
		`apiserver_authorization_webhook_evaluations_total{name="hasty.example",result="timeout"}`,
		`apiserver_authorization_match_condition_exclusions_total{name="closed.example",type="Webhook"}`,
		`apiserver_authorization_match_condition_evaluation_errors_total{name="closed.example",type="Webhook"}`,
		`apiserver_authorization_config_controller_automatic_reloads_total{apiserver_id_hash="sha256:`,
	} {
		if !strings.Contains(figures, series) {
			t.Errorf("no %s", series)
		}
	}

	// A change is followed, a broken one is not.
	write(strings.Replace(first, "timeout: 15s", "timeout: 31s", 1))
	logged(t, a.s, "the last good one stays")
	logged(t, a.s, "must be > 0s and <= 30s")
	if code, answer := a.as(t, "hook-yes", "GET", podsPath, ""); code != http.StatusOK {
		t.Fatalf("with a broken file: %d %s", code, answer)
	}
	write(fmt.Sprintf(rightsConfig, hook.kubeconfig, "- {type: AlwaysDeny, name: alwaysdeny}"))
	mustCome(t, "a good file", func() bool {
		code, answer := a.as(t, "jane", "GET", podsPath, "")
		return code == http.StatusForbidden && strings.Contains(answer, "Everything is forbidden.")
	})
	configStorm(t, a, write, first)
}

// hookDecides wants answers of the service that make sense taken, and others refused.
func hookDecides(t *testing.T, a *access, hook *rightsHook) {
	t.Helper()
	const forbidden = `pods is forbidden: User \"%s\" cannot list resource \"pods\" in API group \"\" in the namespace \"default\"`
	for user, want := range map[string]struct {
		code int
		text string
	}{
		"hook-yes":     {200, `"kind":"PodList"`},
		"hook-denied":  {403, fmt.Sprintf(forbidden, "hook-denied") + ": it said no"},
		"hook-unknown": {403, fmt.Sprintf(forbidden, "hook-unknown") + ": never heard of them"},
		"jane":         {403, fmt.Sprintf(forbidden, "jane") + `"`},
		"hook-both":    {500, `Internal Server Error: "` + podsPath + `": webhook subject access review returned both allow and deny response`},
		"hook-stall":   {500, "context deadline exceeded"},
		"hook-words":   {500, "cannot unmarshal string"},
		"hook-html":    {500, "json parse error"},
		"hook-version": {500, "unknown conversion"},
		"hook-refused": {500, "Internal Server Error: "},
		"hook-cut":     {500, "unexpected EOF"},
		"hook-broken":  {500, "EOF"},
	} {
		code, answer := a.as(t, user, "GET", podsPath, "")
		if code != want.code || !strings.Contains(answer, want.text) {
			t.Errorf("%s: %d %s\nwant %d %s", user, code, answer, want.code, want.text)
		}
		review := a.admin(t, "POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews",
			fmt.Sprintf(`{"spec":{"user":%q,"groups":["system:authenticated"],"resourceAttributes":{"namespace":"default","verb":"list","resource":"pods"}}}`, user))
		var got struct {
			Status struct {
				Allowed, Denied         bool
				Reason, EvaluationError string
			}
		}
		if err := json.Unmarshal([]byte(review), &got); err != nil {
			t.Fatal(err)
		}
		if s := got.Status; s.Allowed != (code == 200) || s.Denied != (code == 500 || user == "hook-denied") || (s.EvaluationError != "") != (code == 500) {
			t.Errorf("%s: a review says %+v", user, s)
		}
	}
	if n := len(hook.questions("jane")); n > 0 {
		t.Errorf("the service was asked %d times about a user who matches no condition", n)
	}
	before := len(hook.questions("hook-yes"))
	for range 5 {
		if code, _ := a.as(t, "hook-yes", "GET", podsPath, ""); code != http.StatusOK {
			t.Fatal(code)
		}
	}
	if n := len(hook.questions("hook-yes")); n != before {
		t.Errorf("the service was asked again %d times", n-before)
	}
}

// hookMatches wants selectors in questions, and conditions that fail to deny.
func hookMatches(t *testing.T, a *access, hook *rightsHook) {
	t.Helper()
	a.as(t, "hook-selecting", "GET", podsPath+"?fieldSelector=spec.nodeName%3Dn1&labelSelector=app+in+(a,b),!c", "")
	a.as(t, "hook-selecting", "GET", podsPath+"?fieldSelector=nonsense&labelSelector=a+b+c", "")
	questions := hook.questions("hook-selecting")
	const want = `"resource":"pods","fieldSelector":{"requirements":[{"key":"spec.nodeName","operator":"In","values":["n1"]}]},` +
		`"labelSelector":{"requirements":[{"key":"app","operator":"In","values":["a","b"]},{"key":"c","operator":"DoesNotExist"}]}}`
	if len(questions) != 2 || !strings.Contains(questions[0], want) || strings.Contains(questions[1], "elector\"") {
		t.Errorf("questions with selectors: %v", questions)
	}
	code, answer := a.do(t, call{path: "/version", token: harness.AdminToken, headers: http.Header{"Impersonate-User": {"hook-yes"}, "Impersonate-Extra-Open": {"x"}}})
	if code != http.StatusInternalServerError || !strings.Contains(answer, "resulted in error: no such key: resourceAttributes") {
		t.Errorf("a condition that fails: %d %s", code, answer)
	}
}

// configStorm rewrites the file again and again, not at once but bit by bit, while requests are
// made. Two versions alternate that have the same effect; every answer is that of a whole file.
func configStorm(t *testing.T, a *access, write func(string), text string) {
	t.Helper()
	write(text)
	mustCome(t, "the first file again", func() bool {
		_, answer := a.as(t, "jane", "GET", podsPath, "")
		return !strings.Contains(answer, "Everything is forbidden.")
	})
	done := make(chan struct{})
	var writing sync.Mutex // held while the file is half written
	slow := false          // it was once half written for too long, and may have been read
	dawdled := func() bool {
		writing.Lock()
		defer writing.Unlock()
		return slow
	}
	var requests sync.WaitGroup
	for user, want := range map[string]int{"hook-yes": 200, "hook-denied": 403, "jane": 403} {
		requests.Go(func() {
			for {
				select {
				case <-done:
					return
				default:
				}
				if code, answer := a.as(t, user, "GET", podsPath, ""); code != want && !dawdled() {
					t.Errorf("%s while the file is rewritten: %d %s", user, code, answer)
					return
				}
			}
		})
	}
	for i := range 100 {
		next := strings.Replace(text, "timeout: 15s", fmt.Sprintf("timeout: %ds", 16+i%2), 1)
		writing.Lock()
		began := time.Now()
		write(next[:len(next)*i/100])
		time.Sleep(2 * time.Millisecond)
		write(next)
		slow = slow || time.Since(began) > mayStand
		writing.Unlock()
		time.Sleep(6 * time.Millisecond)
	}
	if dawdled() {
		leniency.Note(t, "the file stood half written for more than %s: refusals are not counted", mayStand)
	}
	write(fmt.Sprintf("%s- {type: AlwaysAllow, name: alwaysallow}\n", text))
	close(done)
	requests.Wait()
	mustCome(t, "the last file", func() bool {
		code, _ := a.as(t, "jane", "GET", podsPath, "")
		return code == http.StatusOK
	})
}

// mustCome waits until something holds, without which the test cannot go on.
func mustCome(t testing.TB, what string, holds func() bool) {
	t.Helper()
	for start := time.Now(); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Since(start) > patience {
			t.Fatalf("%s: not within %s", what, patience)
		}
	}
}

// logged waits until a server's log contains a text: the log arrives through a pipe, possibly after later
// answers.
func logged(t testing.TB, s *harness.Server, text string) {
	t.Helper()
	mustCome(t, "log: "+text, func() bool { return strings.Contains(s.Log(), text) })
}

// TestAuthorizationModes has policies of a file and a service decide, by flags.
func TestAuthorizationModes(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	hook := startRightsHook(t, dir)
	policies := filepath.Join(dir, "policies")
	text := `# who may do what
{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{"user":"bob","namespace":"default","resource":"pods","readonly":true}}
{"apiVersion":"abac.authorization.k8s.io/v1beta1","kind":"Policy","spec":{"group":"system:authenticated","nonResourcePath":"/version","readonly":true}}
{"user":"legacy"}
`
	if err := os.WriteFile(policies, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	a := startAuthorization(t, "--authorization-mode=ABAC,Webhook", "--authorization-policy-file", policies, "--authorization-webhook-config-file", hook.kubeconfig)
	for _, tc := range []struct {
		user, method, path, body string
		code                     int
		text                     string
	}{
		{"bob", "GET", podsPath, "", 200, ""},
		{"bob", "GET", "/version", "", 200, ""},
		{"bob", "DELETE", podsPath + "/x", "", 403, `cannot delete resource \"pods\" in API group \"\" in the namespace \"default\": No policy matched.\nnever heard of them`},
		{"bob", "GET", "/api/v1/pods", "", 403, "No policy matched."},
		{"legacy", "POST", "/api/v1/namespaces/default/configmaps", `{"metadata":{"name":"x"}}`, 201, ""},
		{"hook-yes", "GET", "/api/v1/nodes", "", 200, ""},
		{"hook-denied", "GET", "/api/v1/nodes", "", 403, "cluster scope: it said no"},
		{"legacy", "POST", "/apis/authorization.k8s.io/v1/selfsubjectrulesreviews", `{"spec":{"namespace":"x"}}`, 201,
			`"nonResourceRules":[{"verbs":["*"],"nonResourceURLs":["*"]}],"incomplete":true,"evaluationError":"webhook authorizer does not support user rule resolution"`},
	} {
		if code, answer := a.as(t, tc.user, tc.method, tc.path, tc.body); code != tc.code || !strings.Contains(answer, tc.text) {
			t.Errorf("%s %s %s: %d %s\nwant %d %s", tc.user, tc.method, tc.path, code, answer, tc.code, tc.text)
		}
	}
	if questions := hook.questions("hook-yes"); len(questions) == 0 || !strings.Contains(questions[0], `"apiVersion":"authorization.k8s.io/v1beta1"`) || !strings.Contains(questions[0], `"group":["system:authenticated"]`) {
		t.Errorf("questions of mode Webhook: %v", questions)
	}
}
