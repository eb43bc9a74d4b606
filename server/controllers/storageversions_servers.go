package controllers

import (
	"context"
	"net/http"
	"time"

	coordinationv1 "k8s.io/api/coordination/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Each server that says in which versions it stores has a Lease, as a stock server has. What
// a server said whose Lease is gone, or was not renewed for an hour, goes from the objects:
// else one that was taken down would forbid a common version for ever.
const (
	identitiesPath  = "/apis/coordination.k8s.io/v1/namespaces/" + metav1.NamespaceSystem + "/leases"
	identityLabel   = "apiserver.kubernetes.io/identity"
	identityServer  = "kube-apiserver"
	identitySeconds = 3600 // several times as long as the pause between two renewals
)

// servers renews the Lease of this server, and finds which servers have one that lasts.
func (s *StorageVersions) servers(ctx context.Context) (map[string]bool, error) {
	now := s.Clock()
	own := map[string]any{
		"apiVersion": coordinationv1.SchemeGroupVersion.String(), "kind": "Lease",
		"metadata": map[string]any{"name": s.Server, "namespace": metav1.NamespaceSystem, "labels": map[string]string{identityLabel: identityServer}},
		"spec":     map[string]any{"holderIdentity": s.Server, "leaseDurationSeconds": identitySeconds, "renewTime": metav1.NewMicroTime(now)},
	}
	path := identitiesPath + "/" + s.Server + "?force=true&fieldManager=" + s.Server
	if err := s.API.Call(ctx, s.Server, http.MethodPatch, path, "application/apply-patch+yaml", own, nil); err != nil {
		return nil, err
	}
	var all coordinationv1.LeaseList
	if err := s.API.Call(ctx, s.Server, http.MethodGet, identitiesPath+"?labelSelector="+identityLabel+"%3D"+identityServer, "", nil, &all); err != nil {
		return nil, err
	}
	there := map[string]bool{s.Server: true}
	for i := range all.Items {
		spec := &all.Items[i].Spec
		if spec.RenewTime == nil || spec.LeaseDurationSeconds == nil {
			continue
		}
		lasts := time.Duration(*spec.LeaseDurationSeconds) * time.Second
		there[all.Items[i].Name] = there[all.Items[i].Name] || spec.RenewTime.Add(lasts).After(now)
	}
	return there, nil
}
