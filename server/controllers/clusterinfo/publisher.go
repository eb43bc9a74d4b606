// Package clusterinfo publishes information that machines and extension servers need before they trust the
// cluster: cluster-info for machines that join with a bootstrap token, signed with the tokens, and how
// requests are authenticated, for extension servers.
package clusterinfo

import (
	"context"
	"encoding/base64"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/rowlock/rowlock/server/cache"
	"github.com/rowlock/rowlock/server/controllers/reconcile"
)

const (
	publisherAgent = "cluster-info" // field manager of Publisher's writes
	// readerRole lets all clients read the ConfigMap, authenticated or not.
	readerRole = "rowlock:cluster-info"
	// managedBy, with rowlock as its value, marks the ConfigMap as managed by the server.
	managedBy   = "app.kubernetes.io/managed-by"
	managedHere = "rowlock"

	rbacPath = "/apis/rbac.authorization.k8s.io/v1/namespaces/" + metav1.NamespacePublic
)

// Publisher maintains the ConfigMap cluster-info of kube-public, from which machines that join by a bootstrap token read the
// address and the authority of the API, and allows all users to read that object. It updates the kubeconfig in it when the
// address or the authority changes, as long as no other field manager owns it. It does not change a ConfigMap of that name
// that others created or changed, nor an existing role or binding.
type Publisher struct {
	reconcile.Base
	Server    string // URL at which machines reach the API
	Authority reconcile.Authority

	left string // the other managers that the log has named
}

// Run works until ctx ends.
func (c *Publisher) Run(ctx context.Context) error {
	var all reconcile.Key
	l := &reconcile.Loop{
		Base: c.Base, Begin: c.Authority.Begin, Resync: c.Authority.Resync(), Keys: []reconcile.Key{all},
		Failure: "cannot publish the address and the authority of the API",
	}
	l.Sources = []reconcile.Source{{
		Storage: "configmaps", Scope: cache.Scope{Namespace: metav1.NamespacePublic, Name: clusterInfo},
		Changed: func(cache.Delivery) { l.Queue.Add(all, 0) },
	}}
	l.Reconcile = func(ctx context.Context, _ reconcile.Key) (r reconcile.Result, err error) {
		if c.Cache.Get("namespaces", "", metav1.NamespacePublic) == nil {
			return r, nil
		}
		for _, step := range []func(context.Context) error{c.reconcileMap, c.createRole, c.createBinding} {
			if err := step(ctx); err != nil && !reconcile.Superseded(err) {
				return r, err
			}
		}
		return r, nil
	}
	return l.Run(ctx)
}

// kubeconfig returns the text that joining machines read: a cluster, without users or contexts.
func (c *Publisher) kubeconfig() string {
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
`, base64.StdEncoding.EncodeToString(c.Authority.PEM), c.Server)
}

func (c *Publisher) reconcileMap(ctx context.Context) error {
	text := c.kubeconfig()
	item := c.Cache.Get("configmaps", metav1.NamespacePublic, clusterInfo)
	if item == nil {
		return c.API.Call(ctx, publisherAgent, http.MethodPost, mapsPath, reconcile.JSON, &corev1.ConfigMap{
			ObjectMeta: metav1.ObjectMeta{Name: clusterInfo, Labels: map[string]string{managedBy: managedHere}},
			Data:       map[string]string{infoKey: text},
		}, nil)
	}
	info := &corev1.ConfigMap{}
	if !reconcile.Decode(item, info) || info.Labels[managedBy] != managedHere || info.Data[infoKey] == text {
		c.left = ""
		return nil
	}
	if managers := managersOf(info.ManagedFields, "f:data", "f:"+infoKey); !slices.Equal(managers, []string{publisherAgent}) {
		if others := strings.Join(managers, ", "); others != c.left {
			c.left = others
			c.Log.Info("the kubeconfig in kube-public/cluster-info is not that of this server and is left unchanged; delete the ConfigMap to have it recreated", "managers", others)
		}
		return nil
	}
	if info.Data == nil {
		info.Data = map[string]string{}
	}
	// Signatures were of the old text.
	maps.DeleteFunc(info.Data, func(key, _ string) bool { return strings.HasPrefix(key, signaturePrefix) })
	info.Data[infoKey] = text
	err := c.API.Call(ctx, publisherAgent, http.MethodPut, mapsPath+"/"+clusterInfo, reconcile.JSON, info, nil)
	if err == nil {
		c.Log.Info("kube-public/cluster-info has the address and the authority of this server now", "server", c.Server)
	}
	return err
}

func (c *Publisher) createRole(ctx context.Context) error {
	if c.Cache.Get("roles.rbac.authorization.k8s.io", metav1.NamespacePublic, readerRole) != nil {
		return nil
	}
	return c.API.Call(ctx, publisherAgent, http.MethodPost, rbacPath+"/roles", reconcile.JSON, &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Name: readerRole},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get"}, APIGroups: []string{""}, Resources: []string{"configmaps"}, ResourceNames: []string{clusterInfo}}},
	}, nil)
}

func (c *Publisher) createBinding(ctx context.Context) error {
	if c.Cache.Get("rolebindings.rbac.authorization.k8s.io", metav1.NamespacePublic, readerRole) != nil {
		return nil
	}
	group := func(name string) rbacv1.Subject {
		return rbacv1.Subject{Kind: rbacv1.GroupKind, APIGroup: rbacv1.GroupName, Name: name}
	}
	return c.API.Call(ctx, publisherAgent, http.MethodPost, rbacPath+"/rolebindings", reconcile.JSON, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: readerRole},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: readerRole},
		Subjects:   []rbacv1.Subject{group("system:unauthenticated"), group("system:authenticated")},
	}, nil)
}
