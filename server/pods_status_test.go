package server_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/servertest"
)

// looker is an admission plugin that looks at the whole of each object that is updated, or notes how
// often it has seen a Pod without its containers.
type looker struct{ apart *int }

func (looker) Name() string                        { return "Looker" }
func (looker) Handles(op admission.Operation) bool { return op == admission.Update }

func (p looker) Admit(_ context.Context, a *admission.Attributes) error {
	if p.apart == nil {
		return a.Whole()
	}
	if pod, ok := a.Object.(*corev1.Pod); ok && len(pod.Spec.Containers) == 0 {
		*p.apart++
	}
	return nil
}

const accounts = "/api/v1/namespaces/default/serviceaccounts"

// chance is what a server decides by itself.
var chance = regexp.MustCompile(`\\*"(uid|resourceVersion)\\*":\\*"[^"\\]*\\*"`)

// TestPodStatusAside: a status is patched to the same whether the spec is read or not.
func TestPodStatusAside(t *testing.T) {
	noon := time.Now().Truncate(time.Hour)
	start := func(p admission.Plugin) *servertest.Server {
		return servertest.Start(t, servertest.Idle, func(c *server.Config) {
			c.Plugins = []admission.Plugin{p}
			c.Clock = func() time.Time { return noon }
		})
	}
	apart := 0
	servers := []*servertest.Server{start(looker{}), start(looker{&apart})}
	both := func(method, path, body string, header ...string) string {
		t.Helper()
		var answers [2]string
		for i, s := range servers {
			w := s.Do(method, path, body, header...)
			answers[i] = fmt.Sprint(w.Code, w.Header().Values("Warning"), chance.ReplaceAllString(w.Body.String(), ""))
		}
		if answers[0] != answers[1] {
			t.Errorf("%s %s %s\nwhole %s\napart %s", method, path, body, answers[0], answers[1])
		}
		return answers[1]
	}
	const pods = "/api/v1/namespaces/default/pods"
	const spec = `"spec":{"nodeName":"n","automountServiceAccountToken":false,"containers":[{"name":"c","image":"i:1","args":["<a>"],"env":[{"name":"A","value":"b"}],"resources":{"requests":{"cpu":"0.1"}}}]}`
	both("POST", accounts, `{"metadata":{"name":"default"}}`)
	for _, name := range []string{"a", "b"} {
		both("POST", pods, `{"metadata":{"name":"`+name+`","labels":{"a":"b"},"annotations":{"note":"x"},"finalizers":["example.com/f"]},`+spec+`}`)
	}
	const running = `"containerStatuses":[{"name":"c","ready":true,"restartCount":0,"image":"i:1","imageID":"","state":{"running":{"startedAt":"2026-01-01T00:00:00Z"}}}]`
	const ended = `"containerStatuses":[{"name":"c","ready":true,"restartCount":0,"image":"i:1","imageID":"","state":{"terminated":{"exitCode":0}}}]`
	for _, c := range []struct {
		patch string
		apart bool // as a strategic merge patch, of the first Pod
	}{
		{`{"status":{"phase":"Running","hostIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"}]}}`, true},
		{`{"status":{"phase":"Running","hostIP":"10.0.0.1","conditions":[{"type":"Ready","status":"True"}]}}`, true}, // again
		{`{"status":{"conditions":[{"type":"example.com/x","status":"False","lastTransitionTime":"2026-01-01T00:00:00Z"}]}}`, true},
		{`{"status":{"$setElementOrder/conditions":[{"type":"Ready"},{"type":"example.com/x"}],"conditions":[{"type":"Ready","status":"False"}]}}`, true},
		{`{"metadata":{"labels":{"c":"d"},"annotations":{"note":"y"}},"status":{"message":"m"}}`, false},
		{`{"metadata":{"ownerReferences":[{"apiVersion":"v1","kind":"X","name":"x","uid":"x"}]},"status":{"message":"n"}}`, false},
		{`{"status":{` + running + `}}`, true},
		{`{"status":{"podIP":"10.1.0.1"}}`, true},
		{`{"status":{"podIPs":[{"ip":"none"}]}}`, true},
		{`{"status":{"qosClass":"Guaranteed"}}`, true},
		{`{"metadata":{"resourceVersion":"1"},"status":{"message":"o"}}`, true},
		{`{"metadata":{"annotations":{"controller.kubernetes.io/pod-deletion-cost":"x"}}}`, false},
		{`{"metadata":{"name":"other"},"status":{"message":"o"}}`, false},
		{`{"metadata":{"annotations":{"kubernetes.io/config.mirror":"x"}},"status":{"message":"o"}}`, false},
		{`{"metadata":{"annotations":{"container.apparmor.security.beta.kubernetes.io/d":"unconfined"}}}`, false},
		{`{"spec":{"nodeName":"m"},"status":{"message":"o"}}`, false},
		{`{"spec":{"containers":1},"status":{"message":"o"}}`, false},
		{`{"sp\u0065c":{"nodeName":"m"},"status":{"message":"o"}}`, false},
		{`{"status":{"unknown":1}}`, true},
		{`{"status":{"phase":1}}`, false},
		{`{"status":`, false},
		{`{"status":{"resourceClaimStatuses":[{"name":"r"}]}}`, false},
		{`{"status":{"message":null,` + running + `}}`, true},
		{`{"status":{` + ended + `}}`, true},
		{`{"status":{"message":"p"}}`, true}, // of a Pod whose container has ended
		{`{"status":{` + running + `}}`, true},
		{`{"status":{"init` + strings.ToUpper(ended[1:2]) + ended[2:] + `}}`, false},
		{`{"status":{"message":"q"}}`, false}, // of a Pod whose init container has ended
	} {
		both("PATCH", pods+"/a/status?dryRun=All", c.patch, "Content-Type", "application/strategic-merge-patch+json")
		before := apart
		both("PATCH", pods+"/a/status?fieldManager=m", c.patch, "Content-Type", "application/strategic-merge-patch+json")
		if got := apart != before; got != c.apart {
			// What is refused behind admission was seen by it, and what before was not.
			if w := servers[1].Do("PATCH", pods+"/a/status?dryRun=All", c.patch, "Content-Type", "application/strategic-merge-patch+json"); w.Code < 300 || got {
				t.Errorf("%s: without the spec: %v", c.patch, got)
			}
		}
		both("PATCH", pods+"/b/status", c.patch, "Content-Type", "application/merge-patch+json")
		both("PATCH", pods+"/b/status?dryRun=All", c.patch, "Content-Type", "application/merge-patch+json")
	}
	for _, kind := range []string{"application/strategic-merge-patch+json", "application/merge-patch+json"} {
		both("PATCH", pods+"/a/status?fieldValidation=Strict", `{"status":{"unknown":1}}`, "Content-Type", kind)
	}
	// Which containers start again is asked of Pods that say it, and of those that do not.
	for name, policy := range map[string]string{"always": `"Always"`, "never": `"Never"`, "failed": `"OnFailure"`, "unsaid": `null`} {
		both("POST", pods, `{"metadata":{"name":"`+name+`"},`+strings.Replace(spec, `{`, `{"restartPolicy":`+policy+`,"initContainers":[{"name":"i","image":"i:1"},{"name":"s","image":"i:1","restartPolicy":"Always"}],`, 1)+`}`)
		for _, exit := range []string{"0", "1"} {
			over := strings.Replace(ended, `"exitCode":0`, `"exitCode":`+exit, 1)
			for _, list := range []string{"containerStatuses", "initContainerStatuses", "ephemeralContainerStatuses"} {
				for _, container := range []string{"c", "i", "s"} {
					for _, state := range []string{running, over, over, running} {
						state = strings.Replace(strings.Replace(state, "containerStatuses", list, 1), `"name":"c"`, `"name":"`+container+`"`, 1)
						both("PATCH", pods+"/"+name+"/status", `{"status":{`+state+`}}`, "Content-Type", "application/merge-patch+json")
					}
				}
				both("PATCH", pods+"/"+name+"/status", `{"status":{"`+list+`":null}}`, "Content-Type", "application/merge-patch+json")
			}
		}
	}
	if got := both("GET", pods+"/a", ""); !strings.Contains(got, `"args":["\u003ca\u003e"]`) {
		t.Errorf("the spec is gone: %s", got)
	}
	both("DELETE", pods+"/b", "")
	both("PATCH", pods+"/b/status", `{"status":{"message":"q"}}`, "Content-Type", "application/merge-patch+json")
	both("PATCH", pods+"/b/status", `{"metadata":{"finalizers":null},"status":{"message":"q"}}`, "Content-Type", "application/merge-patch+json")
	both("GET", pods, "")
}
