//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
	"time"
)

// The namespace of the Pods of kubelets, which no other client writes to.
const (
	nodesNamespace = "kubelets"
	nodesPath      = "/api/v1/namespaces/" + nodesNamespace
	plainClaim     = `,"spec":{"storageClassName":"","accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}`
)

// kubelets is nodes that may read what their Pods need: a Secret, a ConfigMap and a claim, as long as there is a Pod that has them.
func (c *client) kubelets(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	made := []int{http.StatusCreated, http.StatusConflict}
	if _, _, ok := c.must(ctx, admin, http.MethodPost, "/api/v1/namespaces", `{"metadata":{"name":"`+nodesNamespace+`"}}`, made...); !ok {
		return
	}
	for turn := 0; ctx.Err() == nil; turn++ {
		name := fmt.Sprintf("%s-r%d-%d", c.name, c.round, turn)
		// Pods of a node that is not there do not stay.
		objects := [][2]string{{nodesPath + "/secrets", name}, {nodesPath + "/configmaps", name}, {nodesPath + "/secrets", name + "-other"}, {nodesPath + "/persistentvolumeclaims", name}, {"/api/v1/nodes", name}}
		for _, o := range objects {
			if _, _, ok := c.must(ctx, admin, http.MethodPost, o[0], fmt.Sprintf(`{"metadata":{"name":%q}%s}`, o[1], map[string]string{nodesPath + "/persistentvolumeclaims": plainClaim}[o[0]]), made...); !ok {
				return
			}
		}
		if !c.kubelet(ctx, admin, name, turn) {
			return
		}
		for _, o := range objects {
			if _, _, ok := c.must(ctx, admin, http.MethodDelete, o[0]+"/"+o[1], "", http.StatusOK, http.StatusNotFound); !ok {
				return
			}
		}
	}
}

// kubelet has a node get a Pod and lose it.
func (c *client) kubelet(ctx context.Context, admin *client, name string, turn int) bool {
	pod := fmt.Sprintf(`{"metadata":{"name":%q},"spec":{"nodeName":%[1]q,"automountServiceAccountToken":false,"containers":[{"name":"c","image":"i"}],
"volumes":[{"name":"s","secret":{"secretName":%[1]q}},{"name":"c","configMap":{"name":%[1]q}},{"name":"v","persistentVolumeClaim":{"claimName":%[1]q}}]}}`, name)
	node := func(method, path, body string) use {
		return use{as: "system:node:" + name, groups: []string{"system:nodes"}, method: method, path: nodesPath + path, body: body}
	}
	other := node(http.MethodGet, "/secrets/"+name, "")
	other.as += "-2"
	member := node(http.MethodGet, "/secrets/"+name, "")
	member.groups = []string{"kubelets"} // without any, constrained impersonation may add that of nodes
	uses := []use{node(http.MethodGet, "/secrets/"+name, ""), node(http.MethodGet, "/secrets?fieldSelector=metadata.name%3D"+name, ""), node(http.MethodGet, "/configmaps/"+name, ""), node(http.MethodGet, "/persistentvolumeclaims/"+name, "")}
	nevers := []use{other, member, node(http.MethodGet, "/secrets?limit=1", ""), node(http.MethodGet, "/pods?limit=1", ""), node(http.MethodDelete, "/secrets/"+name+"?dryRun=All", ""),
		node(http.MethodGet, "/secrets/"+name+"-other", ""), node(http.MethodGet, "/secrets/"+name+"-none", ""), node(http.MethodGet, "/configmaps/"+name+"-other", ""), node(http.MethodGet, "/persistentvolumeclaims/"+name+"-other", "")}
	for i := range nevers {
		nevers[i].hidden = true
	}
	w := []way{{name: name, uses: uses, nevers: nevers}}
	c.useWays(ctx, w, 300*time.Millisecond)
	if !c.change(ctx, admin, name, true, http.MethodPost, nodesPath+"/pods", pod, http.StatusCreated, http.StatusConflict) {
		return false
	}
	c.useWays(ctx, w, c.granted(turn))
	if !c.change(ctx, admin, name, false, http.MethodDelete, nodesPath+"/pods/"+name+"?gracePeriodSeconds=0", "", http.StatusOK, http.StatusNotFound) {
		return false
	}
	c.useWays(ctx, w, afterwards)
	return true
}
