package server_test

import (
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/rowlock/rowlock/server"
	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/server/tracing"
	"github.com/rowlock/rowlock/server/tracing/otlp"
	"github.com/rowlock/rowlock/server/tracing/tracingtest"
)

// tracedHook allows everything, and remembers the last trace that a request named.
type tracedHook struct {
	*httptest.Server
	traceparent atomic.Value
}

func newTracedHook(t *testing.T) *tracedHook {
	h := &tracedHook{}
	h.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.traceparent.Store(r.Header.Get("Traceparent"))
		var q struct{ Request struct{ UID string } }
		body, _ := io.ReadAll(r.Body)
		_ = json.Unmarshal(body, &q)
		fmt.Fprintf(w, `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","response":{"uid":%q,"allowed":true}}`, q.Request.UID)
	}))
	t.Cleanup(h.Close)
	return h
}

func (h *tracedHook) configuration() string {
	ca := base64.StdEncoding.EncodeToString(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: h.Certificate().Raw}))
	return fmt.Sprintf(`{"apiVersion":"admissionregistration.k8s.io/v1","kind":"ValidatingWebhookConfiguration","metadata":{"name":"looks"},"webhooks":[{
		"name":"looks.example.com","admissionReviewVersions":["v1"],"sideEffects":"None","clientConfig":{"url":%q,"caBundle":%q},
		"rules":[{"apiGroups":[""],"apiVersions":["v1"],"operations":["CREATE"],"resources":["configmaps"]}]}]}`, h.URL, ca)
}

func tracedServer(t *testing.T, endpoint string, rate int32) (*servertest.Server, *tracing.Tracer) {
	t.Helper()
	tracer, err := tracing.New(&tracing.Config{Endpoint: &endpoint, SamplingRatePerMillion: &rate}, tracing.Settings{ServerID: "x", Exporter: otlp.Through(nil), Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	return servertest.Start(t, servertest.Idle, func(c *server.Config) { c.Tracer = tracer }), tracer
}

const configMap = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"%s"},"data":{"password":"opensesame"}}`

func TestTraceOfAWrite(t *testing.T) {
	collector, hook := tracingtest.Start(t), newTracedHook(t)
	s, tracer := tracedServer(t, collector.Address, 1000000)
	s.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", hook.configuration())
	const path = "/api/v1/namespaces/default/configmaps"
	id := 0
	servertest.Eventually(t, func() bool { // until the webhook is known
		id++
		s.Must("POST", path+"?fieldManager=opensesame", fmt.Sprintf(configMap, fmt.Sprint("a", id)), "Audit-Id", fmt.Sprint("write-", id), "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		return hook.traceparent.Load() != nil
	})
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	got := map[string]string{}
	var call tracingtest.Span
	var fed []string
	for _, span := range collector.Spans("audit-id", fmt.Sprint("write-", id)) {
		got[span.Name] = span.Parent
		switch span.Name {
		case "Call validating webhook":
			call = span
		case "store commit":
			fed = span.Links
		}
		for key, value := range span.Texts {
			if strings.Contains(value, "opensesame") || strings.Contains(value, servertest.Token) {
				t.Errorf("the span %s has %s=%s", span.Name, key, value)
			}
		}
	}
	const request = "POST /api/v1/namespaces/{:namespace}/configmaps"
	for name, parent := range map[string]string{
		request: "", "authentication": request, "authorization": request, "Create": request, "mutating admission": "Create", "validating admission": "Create",
		"Call validating webhook": "validating admission", "store commit": "Create",
	} {
		if above, ok := got[name]; !ok || above != parent {
			t.Errorf("span %q below %q (%v), want %q; there are %q", name, above, ok, parent, got)
		}
	}
	if len(fed) != 1 || !collector.Has("feed", fed[0]) {
		t.Errorf("the commit is linked with %q, want a page of the feed", fed)
	}
	if want := "00-" + call.Trace + "-" + call.ID + "-01"; hook.traceparent.Load() != want {
		t.Errorf("the webhook gets %v, want %v", hook.traceparent.Load(), want)
	}
	if call.Texts["webhook"] != "looks.example.com" || call.Texts["configuration"] != "looks" || call.Texts["operation"] != "CREATE" {
		t.Errorf("the span of the call has %v", call.Texts)
	}
}

func TestNothingIsTracedThatIsNotSampled(t *testing.T) {
	collector, hook := tracingtest.Start(t), newTracedHook(t)
	s, tracer := tracedServer(t, collector.Address, 0)
	s.Must("POST", "/apis/admissionregistration.k8s.io/v1/validatingwebhookconfigurations", hook.configuration())
	id := 0
	servertest.Eventually(t, func() bool {
		id++
		s.Must("POST", "/api/v1/namespaces/default/configmaps", fmt.Sprintf(configMap, fmt.Sprint("a", id)), "Traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")
		return hook.traceparent.Load() != nil
	})
	if err := tracer.Close(); err != nil {
		t.Fatal(err)
	}
	if collector.Len() != 0 {
		t.Errorf("%d spans came", collector.Len())
	}
	if traceparent := strings.Split(hook.traceparent.Load().(string), "-"); len(traceparent) != 4 || traceparent[3] != "00" || slices.Contains(traceparent, "4bf92f3577b34da6a3ce929d0e0e4736") {
		t.Errorf("the webhook gets %q", traceparent)
	}
}
