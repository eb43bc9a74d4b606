package components

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/answers"
	"github.com/rowlock/rowlock/server/kinds"
	"github.com/rowlock/rowlock/server/request"
	"github.com/rowlock/rowlock/server/verbs"
)

func fixed(name, message string, err error) Component {
	return Component{Name: name, Probe: func(context.Context) (string, error) { return message, err }}
}

func TestAskAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		slow := Component{Name: "slow", Probe: func(ctx context.Context) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}}
		start := time.Now()
		list := probeAll(t.Context(), []Component{slow, fixed("good", "ok", nil), slow, fixed("bad", "", errors.New("no"))})
		if took := time.Since(start); took != timeout {
			t.Errorf("components were not asked together: %v", took)
		}
		for i, want := range []struct {
			status  corev1.ConditionStatus
			message string
		}{
			{corev1.ConditionFalse, "context deadline exceeded"}, {corev1.ConditionTrue, "ok"},
			{corev1.ConditionFalse, "context deadline exceeded"}, {corev1.ConditionFalse, "no"},
		} {
			if c := list[i].Conditions[0]; c.Type != corev1.ComponentHealthy || c.Status != want.status || c.Message != want.message {
				t.Errorf("%s: %+v", list[i].Name, c)
			}
		}
	})
}

// TestRedirects: whatever listens at the port of a component does not have this server send requests elsewhere.
func TestRedirects(t *testing.T) {
	var reached atomic.Bool
	inside := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		reached.Store(true)
		fmt.Fprint(w, "secret")
	}))
	defer inside.Close()
	local := httptest.NewTLSServer(http.RedirectHandler(inside.URL, http.StatusFound))
	defer local.Close()
	message, err := Local("scheduler", local.Listener.Addr().(*net.TCPAddr).Port).Probe(t.Context())
	if reached.Load() || err == nil || !strings.Contains(err.Error(), "unhealthy http status code: 302") {
		t.Errorf("%q %v", message, err)
	}
}

// A list of components is asked as other lists are.
func TestNegotiate(t *testing.T) {
	for _, tt := range []struct{ name, query, accept, want string }{
		{"", "", "", ""},
		{"", "limit=x", "", `strconv.ParseInt: parsing "x": invalid syntax`},
		{"", "sendInitialEvents=true", "", `ListOptions.meta.k8s.io "" is invalid: sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list`},
		{"etcd-0", "limit=x", "application/yaml", ""},
		{"etcd-0", "", "text/html", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
		{"", "limit=x", "text/html", "406: Not Acceptable\n\nAvailable representations: application/json, application/yaml, application/vnd.kubernetes.protobuf, " +
			"application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"},
		{"", "", "application/json;as=Nothing;v=v1;g=x", "only the following media types are accepted: application/json, application/yaml, application/vnd.kubernetes.protobuf"},
	} {
		r := httptest.NewRequest("GET", "/api/v1/componentstatuses?"+tt.query, nil)
		r.Header.Set("Accept", tt.accept)
		_, err := negotiate(&verbs.Handler{}, &verbs.Call{Request: answers.Request{R: r, Scope: &request.Scope{}, Resource: &kinds.Resource{}}, Info: &request.Info{Name: tt.name, Query: r.URL.Query()}})
		if got := fmt.Sprint(err); got != tt.want && (err != nil || tt.want != "") {
			t.Errorf("%s?%s (%s): %s", tt.name, tt.query, tt.accept, got)
		}
	}
}

func TestSelected(t *testing.T) {
	all := []Component{fixed("a", "", nil), fixed("b", "", nil)}
	for query, want := range map[string]int{
		"": 2, "fieldSelector=metadata.name%3Db": 1, "labelSelector=x": 0, "labelSelector=!x": 2,
		"fieldSelector=spec.x%3D1": -1, "labelSelector=%3D%3D": -1,
	} {
		list, err := request.Parse("GET", httptest.NewRequest("GET", "/api/v1/componentstatuses?"+query, nil).URL)
		if err != nil {
			t.Fatal(err)
		}
		got, err := selected(list, all)
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%s: %d, %v", query, len(got), err)
		}
	}
}
