package server_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/servertest"
)

// TestHeadersOfAggregatedServer: an aggregated server learns the user, and the host of the request,
// from this server alone, whatever headers the cluster's servers trust.
func TestHeadersOfAggregatedServer(t *testing.T) {
	b := startBehind(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Hint", "early")
		w.WriteHeader(http.StatusEarlyHints)
		w.Header().Del("X-Hint")
		w.WriteHeader(http.StatusOK)
	})
	s := servertest.Start(t, withPeople)
	b.register(t, s)
	ask := func() (forwarded, answered http.Header) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), "GET", s.URL+"/apis/g.example/v1/things/x", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "other.example"
		for name, value := range map[string]string{
			"Authorization": "Bearer ann", "X-Site-User": "admin", "X_Site_User": "admin", "X-Site-Uid": "0", "X-Site-Group": "system:masters", "X-Site-Extra-A": "b", "X-Site-Color": "red",
		} {
			r.Header[name] = []string{value}
		}
		resp, err := s.Client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if host := b.seen.Load().Host; host == "other.example" {
			t.Errorf("asked as %s", host)
		}
		return b.seen.Load().Header, resp.Header
	}
	forwarded, answered := ask()
	if forwarded.Get("X-Site-User") != "admin" {
		t.Errorf("a header that nobody believes was not passed on: %v", forwarded)
	}
	for _, name := range []string{"Audit-Id", "Cache-Control"} {
		if len(answered[name]) != 1 {
			t.Errorf("after an early word %s is %q", name, answered[name])
		}
	}
	if answered.Get("X-Hint") != "" {
		t.Error("a header of the early word is in the answer")
	}

	// Another server of the cluster publishes its settings.
	s.Do("POST", "/api/v1/namespaces", `{"metadata":{"name":"kube-system"}}`)
	s.Do("DELETE", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", "")
	s.Must("POST", "/api/v1/namespaces/kube-system/configmaps", `{"metadata":{"name":"extension-apiserver-authentication"},"data":{"requestheader-username-headers":"[\"X-Site-User\",\"\"]",
		"requestheader-uid-headers":"[\"x-site-uid\"]","requestheader-group-headers":"[\"X-Site-Group\"]","requestheader-extra-headers-prefix":"[\"X-Site-Extra-\",\"\"]"}}`)
	forwarded, _ = ask()
	for _, name := range []string{"X-Site-User", "X_Site_User", "X-Site-Uid", "X-Site-Group", "X-Site-Extra-A"} {
		if value, ok := forwarded[name]; ok {
			t.Errorf("%s: %q was passed on", name, value)
		}
	}
	if forwarded.Get("X-Site-Color") != "red" || forwarded.Get("X-Remote-User") != "ann" {
		t.Errorf("forwarded %v", forwarded)
	}
	s.Must("PATCH", "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication", `{"data":{"requestheader-username-headers":"{"}}`, "Content-Type", "application/merge-patch+json")
	if forwarded, _ = ask(); forwarded.Get("X-Site-User") != "admin" || forwarded.Get("X-Site-Group") != "" {
		t.Errorf("with an invalid list, forwarded %v", forwarded)
	}
}

// TestAPIServicesStay: a user who delegates the group of APIServices to another server can still
// revert that.
func TestAPIServicesStay(t *testing.T) {
	b := startBehind(t, func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	s := servertest.Start(t, withPeople)
	b.register(t, s)
	const all = "/apis/apiregistration.k8s.io/v1/apiservices"
	s.Must("POST", all, `{"metadata":{"name":"v1.apiregistration.k8s.io"},"spec":{"group":"apiregistration.k8s.io","version":"v1","groupPriorityMinimum":1000,"versionPriority":10,
		"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"behind","port":`+b.port()+`}}}`)
	ask := func(method, path string) int {
		r := httptest.NewRequestWithContext(t.Context(), method, path, nil)
		r.Header.Set("Authorization", "Bearer ann")
		w := httptest.NewRecorder()
		s.Handler().ServeHTTP(w, r)
		return w.Code
	}
	servertest.Eventually(t, func() bool { return conditionOf(s, "v1.apiregistration.k8s.io") == "True Passed: all checks passed" })
	for _, method := range []string{"GET", "DELETE"} {
		if code := ask(method, all+"/v1.apiregistration.k8s.io"); code != http.StatusOK {
			t.Errorf("%s: %d", method, code)
		}
	}
	if n := b.asked.Load(); n > 0 {
		t.Errorf("%d requests went elsewhere", n)
	}
}

// TestLocalAPIServiceStaysAvailable: the condition of a version that this server serves comes
// back whenever a client removes it.
func TestLocalAPIServiceStaysAvailable(t *testing.T) {
	s := servertest.Start(t)
	const at = "/apis/apiregistration.k8s.io/v1/apiservices"
	s.Must("POST", at, `{"metadata":{"name":"v1.local.example"},"spec":{"group":"local.example","version":"v1","groupPriorityMinimum":1000,"versionPriority":10}}`)
	ctx, cancel := context.WithCancel(t.Context())
	var others sync.WaitGroup
	for n := range 4 { // otherwise watchers see the write some time before readers do
		others.Go(func() {
			for ctx.Err() == nil {
				r := httptest.NewRequestWithContext(ctx, "POST", "/api/v1/namespaces/default/configmaps", strings.NewReader(`{"metadata":{"generateName":"c-`+strconv.Itoa(n)+`-"}}`))
				r.Header.Set("Authorization", "Bearer "+servertest.Token)
				r.Header.Set("Content-Type", "application/json")
				s.Handler().ServeHTTP(httptest.NewRecorder(), r)
			}
		})
	}
	defer others.Wait()
	defer cancel()
	for range 60 {
		servertest.Eventually(t, func() bool {
			return conditionOf(s, "v1.local.example") == "True Local: Local APIServices are always available"
		})
		s.Must("PATCH", at+"/v1.local.example/status", `{"status":{"conditions":null}}`, "Content-Type", "application/merge-patch+json")
	}
}

// TestLocalConditionComesBack: a client that removes the condition of an APIService which the server
// serves itself finds it again with the next request, also after a change from another
// server to none.
func TestLocalConditionComesBack(t *testing.T) {
	s := servertest.Start(t)
	s.Must("POST", "/apis/apiregistration.k8s.io/v1/apiservices", `{"metadata":{"name":"v1.here.example"},"spec":{"group":"here.example","version":"v1","groupPriorityMinimum":1000,"versionPriority":10}}`)
	const path, fancy, merge = "/apis/apiregistration.k8s.io/v1/apiservices/v1.here.example", `{"status":{"conditions":[{"type":"Fancy","status":"False"}]}}`, "application/merge-patch+json"
	for range 20 {
		if got := string(s.Must("PATCH", path+"/status", fancy, "Content-Type", merge)); strings.Contains(got, "Available") {
			t.Fatalf("the answer has what the client did not write: %s", got)
		}
		if got := string(s.Must("GET", path, "")); !strings.Contains(got, `"reason":"Local"`) {
			t.Fatalf("the condition is not back: %s", got)
		}
	}
	if got := string(s.Must("PATCH", path+"/status?dryRun=All", fancy, "Content-Type", merge)); strings.Contains(got, "Available") {
		t.Errorf("a dry run: %s", got)
	}
	s.Must("PATCH", path, `{"spec":{"insecureSkipTLSVerify":true,"service":{"namespace":"default","name":"none"}}}`, "Content-Type", merge)
	servertest.Eventually(t, func() bool { return strings.Contains(s.Do("GET", path, "").Body.String(), "ServiceNotFound") })
	s.Must("PATCH", path, `{"spec":{"insecureSkipTLSVerify":false,"service":null}}`, "Content-Type", merge)
	if got := string(s.Must("GET", path, "")); !strings.Contains(got, `"reason":"Local"`) {
		t.Errorf("local again: %s", got)
	}
}

// stripping removes conditions from all written APIServices.
type stripping struct{ asked atomic.Int32 }

func (*stripping) Name() string                        { return "Stripping" }
func (*stripping) Handles(op admission.Operation) bool { return op == admission.Update }

func (s *stripping) Admit(_ context.Context, a *admission.Attributes) error {
	service, ok := a.Object.(*apiregistrationv1.APIService)
	switch {
	case !ok || service.Name != "v1.here.example":
	case s.asked.Add(1) > 100:
		return errors.New("enough of that")
	default:
		service.Status.Conditions = nil
	}
	return nil
}

// TestConditionThatNeverStays: where admission takes the condition of a local APIService away
// from what the server itself writes, the server does not write it again and again.
func TestConditionThatNeverStays(t *testing.T) {
	strips := &stripping{}
	s := servertest.Start(t, func(c *server.Config) { c.Plugins = []admission.Plugin{strips} })
	const path = "/apis/apiregistration.k8s.io/v1/apiservices/v1.here.example"
	s.Must("POST", strings.TrimSuffix(path, "/v1.here.example"), `{"metadata":{"name":"v1.here.example"},"spec":{"group":"here.example","version":"v1","groupPriorityMinimum":1000,"versionPriority":10}}`)
	for range 3 {
		s.Must("PATCH", path+"/status", `{"status":{"conditions":[{"type":"Fancy","status":"False"}]}}`, "Content-Type", "application/merge-patch+json")
	}
	if got := string(s.Must("GET", path, "")); !strings.Contains(got, `"status":{}}`) || strips.asked.Load() < 6 || strips.asked.Load() > 100 {
		t.Errorf("after %d questions: %s", strips.asked.Load(), got)
	}
}
