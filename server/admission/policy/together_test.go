package policy_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/rowlock/rowlock/server/admission"
	"github.com/rowlock/rowlock/server/admission/criteria"
	"github.com/rowlock/rowlock/server/admission/policy"
	"github.com/rowlock/rowlock/server/admission/webhook"
	"github.com/rowlock/rowlock/server/schema"
	client "github.com/rowlock/rowlock/server/webhook"
)

// hooks is a server of webhooks that count themselves in the data of a ConfigMap, as the
// policies here do.
type hooks struct {
	mu   sync.Mutex
	seen []string // which webhook saw which data, in order
}

func (h *hooks) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	var review admissionv1.AdmissionReview
	var obj corev1.ConfigMap
	if err != nil || json.Unmarshal(body, &review) != nil || json.Unmarshal(review.Request.Object.Raw, &obj) != nil {
		http.Error(w, "what is that?", http.StatusBadRequest)
		return
	}
	name, _, once := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "-")
	h.mu.Lock()
	h.seen = append(h.seen, name)
	h.mu.Unlock()
	patch := fmt.Appendf(nil, `[{"op":"add","path":"/data/%s","value":"%sx"}]`, name, obj.Data[name])
	if once && obj.Data[name] != "" {
		patch = []byte(`[]`)
	}
	kind := admissionv1.PatchTypeJSONPatch
	answer := admissionv1.AdmissionReview{TypeMeta: review.TypeMeta, Response: &admissionv1.AdmissionResponse{UID: review.Request.UID, Allowed: true, Patch: patch, PatchType: &kind}}
	w.Header().Set("Content-Type", "application/json")
	data, _ := json.Marshal(answer)
	_, _ = w.Write(data)
}

// counts returns a policy that adds an x to a field, with once at most one.
func counts(name string, once bool) string {
	text := fmt.Sprintf(`[JSONPatch{op: "add", path: "/data/%s", value: string(object.data[?"%s"].orValue("")) + "x"}]`, name, name)
	if once {
		text = fmt.Sprintf(`"%s" in object.data ? [] : [JSONPatch{op: "add", path: "/data/%s", value: "x"}]`, name, name)
	}
	return mutations(patch(text))
}

// TestPoliciesAndWebhooks: each of them sees an object again that the other has changed
// behind it, once, if it wants to. Policies run before webhooks, and all of them at most
// twice.
func TestPoliciesAndWebhooks(t *testing.T) {
	type who struct {
		again bool
		once  bool // changes the object only where that was not done before
	}
	for name, c := range map[string]struct {
		policies, hooks []who
		want            string // data: how often each of them changed it
		asked           string // webhooks, in order
	}{
		"both want to, both count": {[]who{{again: true}}, []who{{again: true}}, "h0=2 p0=2", "h0 h0"},
		// The policy's second change is one that the webhook has not seen.
		"the webhook wants to":             {[]who{{}}, []who{{again: true}}, "h0=1 p0=1", "h0"},
		"the policy wants to":              {[]who{{again: true}}, []who{{}}, "h0=1 p0=2", "h0"},
		"nobody wants to":                  {[]who{{}}, []who{{}}, "h0=1 p0=1", "h0"},
		"the policy has nothing to add":    {[]who{{again: true, once: true}}, []who{{again: true}}, "h0=1 p0=1", "h0"},
		"the webhook has nothing to add":   {[]who{{again: true}}, []who{{again: true, once: true}}, "h0=1 p0=2", "h0 h0"},
		"a second webhook":                 {[]who{{again: true, once: true}}, []who{{again: true}, {again: true}}, "h0=2 h1=2 p0=1", "h0 h1 h0 h1"},
		"a second webhook that comes once": {[]who{{again: true, once: true}}, []who{{again: true}, {}}, "h0=2 h1=1 p0=1", "h0 h1 h0"},
		"a second policy":                  {[]who{{again: true}, {}}, []who{{again: true}}, "h0=2 p0=2 p1=1", "h0 h0"},
		"policies alone":                   {[]who{{again: true}, {again: true}}, nil, "p0=2 p1=2", ""},
	} {
		t.Run(name, func(t *testing.T) {
			served := &hooks{}
			at := httptest.NewTLSServer(served)
			defer at.Close()
			m := newMutators(t, true)
			cluster := criteria.Cluster{Namespaces: m.cluster, Equivalents: criteria.NewEquivalents(m.catalogue)}
			outgoing := &client.Client{}
			defer outgoing.Close()
			m.chain = admission.NewChain(
				policy.NewMutating(policy.Config{Cluster: cluster, Catalogue: m.catalogue, Schemas: schema.New(m.catalogue), Cache: m.cache, Authorizer: m.cluster}),
				webhook.NewMutating(webhook.Config{Client: outgoing, Cluster: cluster, Cache: m.cache, Authorizer: m.cluster, Log: slog.New(slog.DiscardHandler)}),
			)
			wants := map[bool]string{true: "IfNeeded", false: "Never"}
			for i, p := range c.policies {
				name := fmt.Sprint("p", i)
				m.policy(name, configMaps+fmt.Sprintf(`"reinvocationPolicy":%q,`, wants[p.again])+counts(name, p.once), "")
			}
			authority := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: at.Certificate().Raw}))
			var list []string
			for i, h := range c.hooks {
				path := fmt.Sprint("h", i)
				if h.once {
					path += "-once"
				}
				list = append(list, fmt.Sprintf(`{"name":"h%d.example.org","clientConfig":{"url":"%s/%s","caBundle":%q},"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"],"scope":"*"}],
"sideEffects":"None","admissionReviewVersions":["v1"],"failurePolicy":"Fail","matchPolicy":"Equivalent","timeoutSeconds":30,"reinvocationPolicy":%q,"namespaceSelector":{},"objectSelector":{}}`, i, at.URL, path, authority, wants[h.again]))
			}
			if len(list) > 0 {
				m.set("mutatingwebhookconfigurations.admissionregistration.k8s.io", "", "hooks", fmt.Sprintf(
					`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"MutatingWebhookConfiguration","metadata":{"name":"hooks"},"webhooks":[%s]}`, strings.Join(list, ",")))
			}
			obj := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Name: "a", Namespace: "ns"}, Data: map[string]string{"k": "v"}}
			if err := m.admit(t.Context(), admission.Create, m.catalogue.Lookup("", "v1", "configmaps"), obj, runtime.Object(nil)); err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, name := range []string{"h0", "h1", "p0", "p1"} {
				if text, ok := obj.Data[name]; ok {
					got = append(got, fmt.Sprintf("%s=%d", name, len(text)))
				}
			}
			if did := strings.Join(got, " "); did != c.want {
				t.Errorf("changes: %s, want %s", did, c.want)
			}
			if asked := strings.Join(served.seen, " "); asked != c.asked {
				t.Errorf("webhooks: %s, want %s", asked, c.asked)
			}
		})
	}
}
