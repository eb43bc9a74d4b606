package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net/http"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/rowlock/rowlock/server/controllers/aggregation"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

// racing makes a concurrent write before each write of a controller.
type racing struct {
	reconcile.API
	before  func()
	results chan error
}

func (r racing) Call(ctx context.Context, agent, method, path, contentType string, body, into any) error {
	if method != http.MethodPatch {
		return r.API.Call(ctx, agent, method, path, contentType, body, into)
	}
	r.before()
	err := r.API.Call(ctx, agent, method, path, contentType, body, into)
	r.results <- err
	return err
}

// TestNoRoleComesBack: a role that is deleted while its rules are aggregated is not created again, nor is a
// new one of that name filled with the rules of the old one.
func TestNoRoleComesBack(t *testing.T) {
	const roles = "/apis/rbac.authorization.k8s.io/v1/clusterroles"
	for name, before := range map[string]func(c *cluster){
		"gone": func(c *cluster) { c.must("DELETE", roles+"/all", "") },
		"anew": func(c *cluster) {
			c.must("DELETE", roles+"/all", "")
			c.must("POST", roles, `{"metadata":{"name":"all"}}`)
		},
		"there": func(*cluster) {},
	} {
		c := newCluster(t)
		c.must("POST", roles, `{"metadata":{"name":"one","labels":{"all":"yes"}},"rules":[{"verbs":["get"],"apiGroups":[""],"resources":["secrets"]}]}`)
		c.must("POST", roles, `{"metadata":{"name":"all"},"aggregationRule":{"clusterRoleSelectors":[{"matchLabels":{"all":"yes"}}]}}`)
		ctx, cancel := context.WithCancel(t.Context())
		results := make(chan error, 16)
		done := make(chan error, 1)
		a := &aggregation.Controller{Base: reconcile.Base{
			API: racing{API: c.s, results: results, before: func() { before(c) }}, Cache: c.s.Cache, Log: slog.New(slog.DiscardHandler),
		}}
		go func() { done <- a.Run(ctx) }()
		err := <-results
		cancel()
		if err := <-done; err != nil && !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
		if (name == "there") != (err == nil) || err != nil && !apierrors.IsConflict(err) && !apierrors.IsInvalid(err) {
			t.Errorf("%s: the controller gets %v", name, err)
		}
		w := c.do(context.Background(), "GET", roles+"/all", "", "", "Master", "yes")
		if has := rulesIn(t, w.Body.Bytes()); name == "gone" && w.Code != 404 || (name == "there") != (has > 0) {
			t.Errorf("%s: %d rules afterwards, %d %s", name, has, w.Code, w.Body)
		}
	}
}

func rulesIn(t *testing.T, data []byte) int {
	t.Helper()
	var role struct{ Rules []any }
	if err := json.Unmarshal(data, &role); err != nil {
		t.Fatal(err)
	}
	return len(role.Rules)
}
