package plugins

import (
	"context"
	"net/http"

	corev1 "k8s.io/api/core/v1"

	"github.com/rowlock/rowlock/server/admission/quota"
)

// quotas implements quota.Store: on the cache, and by the server's own API, as a
// client would whose agent is kube-apiserver.
type quotas struct {
	Reader
	api API
}

var _ quota.Store = quotas{}

func (q quotas) CatchUp(ctx context.Context) error { return q.Objects.CatchUp(ctx) }

func (q quotas) SetStatus(ctx context.Context, obj *corev1.ResourceQuota) error {
	path := "/api/v1/namespaces/" + obj.Namespace + "/resourcequotas/" + obj.Name + "/status"
	return q.api.Call(ctx, "kube-apiserver", http.MethodPut, path, "application/json", obj, nil)
}
