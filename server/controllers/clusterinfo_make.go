package controllers

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
)

const (
	clusterInfoAgent = "cluster-info"
	// clusterInfoRole lets anybody read the ConfigMap.
	clusterInfoRole = "rowlock:cluster-info"
	// managedBy, with rowlock as its value, marks the ConfigMap as kept by the server.
	managedBy   = "app.kubernetes.io/managed-by"
	managedHere = "rowlock"
)

// ClusterInfo keeps the ConfigMap cluster-info of kube-public, from which machines that
// join by a bootstrap token learn the address and the authority of the API, and lets
// anybody read that one object. It corrects the kubeconfig in it where the address or the
// authority changes, for as long as no field manager but its own owns that. A ConfigMap of that name
// that others made, or changed, is left alone, and so are a role and a binding that are there.
type ClusterInfo struct {
	API    API
	Cache  *cache.Cache
	Log    *slog.Logger
	Server string                 // URL at which machines reach the API
	PEM    func() ([]byte, error) // its authority; asked again every Every
	Every  time.Duration          // 0: a minute
	Retry  time.Duration          // how soon a failure is tried again; 0: 1 second
	Queue  *Queue                 // nil: the work is not measured

	left string // the other managers that the log has told of
}

// Run works until ctx ends.
func (c *ClusterInfo) Run(ctx context.Context) error {
	if c.Every == 0 {
		c.Every = time.Minute
	}
	return again(ctx, c.Retry, c.follow)
}

// follow sees to the ConfigMap whenever it changes, until it is time to read the
// authority again (true) or something failed (false).
func (c *ClusterInfo) follow(ctx context.Context) bool {
	pem, err := c.PEM()
	if err != nil {
		c.Log.Warn("cannot read the authority that joining machines are told of", "error", err)
		return false
	}
	info, _ := c.Cache.WatchNow("configmaps", cache.Scope{Namespace: metav1.NamespacePublic, Name: clusterInfo})
	defer info.Stop()
	timer := time.NewTimer(c.Every)
	defer timer.Stop()
	var batch []cache.Delivery
	for {
		c.Queue.Add(1)
		if !c.Queue.Work(func() bool { return c.settle(ctx, pem) }) {
			return false
		}
		select {
		case <-ctx.Done():
			return true
		case <-timer.C:
			return true
		case <-info.Ready():
			if batch, _, err = info.Take(ctx, batch); err != nil {
				return true
			}
		}
	}
}

func (c *ClusterInfo) settle(ctx context.Context, pem []byte) bool {
	if c.Cache.Get("namespaces", "", metav1.NamespacePublic) == nil {
		return true
	}
	for _, step := range []func(context.Context, []byte) error{c.settleMap, c.settleRole, c.settleBinding} {
		err := step(ctx, pem)
		if err == nil || apierrors.IsAlreadyExists(err) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || ctx.Err() != nil {
			continue // what others did comes as a change
		}
		c.Log.Warn("cannot publish the address and the authority of the API", "error", err)
		return false
	}
	return true
}

// kubeconfig is the text that joining machines read: a cluster, and nobody who uses it.
func (c *ClusterInfo) kubeconfig(pem []byte) string {
	return fmt.Sprintf(`apiVersion: v1
clusters:
- cluster:
    certificate-authority-data: %s
    server: %s
  name: ""
contexts: null
current-context: ""
kind: Config
preferences: {}
users: null
`, base64.StdEncoding.EncodeToString(pem), c.Server)
}

func (c *ClusterInfo) settleMap(ctx context.Context, pem []byte) error {
	const path = "/api/v1/namespaces/" + metav1.NamespacePublic + "/configmaps"
	text := c.kubeconfig(pem)
	item := c.Cache.Get("configmaps", metav1.NamespacePublic, clusterInfo)
	if item == nil {
		return c.API.Call(ctx, clusterInfoAgent, http.MethodPost, path, "application/json", &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: clusterInfo, Labels: map[string]string{managedBy: managedHere}},
			Data:       map[string]string{infoKey: text},
		}, nil)
	}
	info := &corev1.ConfigMap{}
	if item.Corrupt != nil || json.Unmarshal(item.JSON(), info) != nil || info.Labels[managedBy] != managedHere || info.Data[infoKey] == text {
		c.left = ""
		return nil
	}
	if managers := managersOf(info.ManagedFields, "f:data", "f:"+infoKey); !slices.Equal(managers, []string{clusterInfoAgent}) {
		if others := strings.Join(managers, ", "); others != c.left {
			c.left = others
			c.Log.Info("the kubeconfig in kube-public/cluster-info is not the one of this server, and is left as others wrote it; delete the ConfigMap to have it made anew", "managers", others)
		}
		return nil
	}
	if info.Data == nil {
		info.Data = map[string]string{}
	}
	// Signatures were of the old text.
	maps.DeleteFunc(info.Data, func(key, _ string) bool { return strings.HasPrefix(key, signaturePrefix) })
	info.Data[infoKey] = text
	err := c.API.Call(ctx, clusterInfoAgent, http.MethodPut, path+"/"+clusterInfo, "application/json", info, nil)
	if err == nil {
		c.Log.Info("kube-public/cluster-info has the address and the authority of this server now", "server", c.Server)
	}
	return err
}

func (c *ClusterInfo) settleRole(ctx context.Context, _ []byte) error {
	if c.Cache.Get("roles.rbac.authorization.k8s.io", metav1.NamespacePublic, clusterInfoRole) != nil {
		return nil
	}
	return c.API.Call(ctx, clusterInfoAgent, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+metav1.NamespacePublic+"/roles", "application/json", &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: clusterInfoRole},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{clusterInfo}}},
	}, nil)
}

func (c *ClusterInfo) settleBinding(ctx context.Context, _ []byte) error {
	if c.Cache.Get("rolebindings.rbac.authorization.k8s.io", metav1.NamespacePublic, clusterInfoRole) != nil {
		return nil
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	return c.API.Call(ctx, clusterInfoAgent, http.MethodPost, "/apis/rbac.authorization.k8s.io/v1/namespaces/"+metav1.NamespacePublic+"/rolebindings", "application/json", &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: clusterInfoRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: clusterInfoRole},
		Subjects:   []rbacv1.Subject{group("system:unauthenticated"), group("system:authenticated")},
	}, nil)
}
