package verbs_test

import (
	"encoding/json"
	"net/http"
	"testing"

	autoscalingv1 "k8s.io/api/autoscaling/v1"

	"github.com/rowlock/rowlock/server/servertest"
	"github.com/rowlock/rowlock/sqlstore"
	"github.com/rowlock/rowlock/sqlstore/storetest"
)

// TestSubresourcesBehind: a server that has not received the writes of another one answers gets of a scale and requests for tokens
// from them.
func TestSubresourcesBehind(t *testing.T) {
	memory := storetest.NewShared()
	first := servertest.Start(t, servertest.Complete(t), servertest.Idle, servertest.On(memory.Open(), sqlstore.Config{}))
	second := servertest.Start(t, servertest.Complete(t), servertest.Idle, servertest.On(storetest.WithoutHints{Driver: memory.Open()}, sqlstore.Config{}))
	const accounts, scale = "/api/v1/namespaces/shop/serviceaccounts", "/apis/apps/v1/namespaces/shop/deployments/d/scale"
	first.Must("POST", "/api/v1/namespaces", `{"metadata":{"name":"shop"}}`)
	first.Must("POST", accounts, `{"metadata":{"name":"a"}}`)
	first.Must("POST", "/apis/apps/v1/namespaces/shop/deployments", `{"metadata":{"name":"d"},"spec":{"replicas":1,"selector":{"matchLabels":{"a":"b"}},
		"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"c","image":"i"}]}}}}`)
	second.Must("GET", accounts+"/a", "") // it waits for all writes so far

	first.Must("PUT", scale, `{"metadata":{"name":"d","namespace":"shop"},"spec":{"replicas":5}}`)
	var got autoscalingv1.Scale
	if err := json.Unmarshal(second.Must("GET", scale, ""), &got); err != nil || got.Spec.Replicas != 5 {
		t.Errorf("the scale has %d replicas, %v", got.Spec.Replicas, err)
	}
	first.Must("DELETE", accounts+"/a", "")
	if w := second.Do("POST", accounts+"/a/token", `{}`); w.Code != http.StatusNotFound {
		t.Errorf("a token for an account that is gone: %d %s", w.Code, w.Body)
	}
}
