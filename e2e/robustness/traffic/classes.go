//go:build unix

package traffic

import (
	"context"
	"fmt"
	"net/http"
)

const (
	classedNamespace = "classed"
	classed          = "/api/v1/namespaces/" + classedNamespace
	securedNamespace = "secured" // whose label says which Pods it allows
	secured          = "/api/v1/namespaces/" + securedNamespace
	priorityClasses  = "/apis/scheduling.k8s.io/v1/priorityclasses"
	runtimeClasses   = "/apis/node.k8s.io/v1/runtimeclasses"
	storageClasses   = "/apis/storage.k8s.io/v1/storageclasses"
	securityLevel    = `[{"op":"add","path":"/metadata/labels/pod-security.kubernetes.io~1enforce","value":%q}]`
)

// classes makes and deletes classes that Pods and claims name, or get by default, and changes which Pods a namespace allows.
func (c *client) classes(ctx context.Context) {
	admin := c.Traffic.client(c.name+"-admin", c.proto, false)
	defer admin.http.CloseIdleConnections()
	dry := func(what, path, body string) trial {
		return trial{what: what, method: http.MethodPost, path: path + "?dryRun=All", contentType: plainJSON, body: body}
	}
	plain := dry("a Pod without classes", classed+"/pods", plainPod(""))
	anywhere := dry("", secured+"/pods", plainPod(""))
	// The account of Pods comes some time after the namespace, which may be one of an earlier round that allows few.
	if !c.made(ctx, admin, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + classedNamespace + `"}}`}, [2]string{"/api/v1/namespaces", `{"metadata":{"name":"` + securedNamespace + `"}}`}) ||
		!c.patched(ctx, admin, secured, fmt.Sprintf(securityLevel, "privileged")) ||
		!c.made(ctx, admin, [2]string{plain.path, plain.body}, [2]string{anywhere.path, anywhere.body}) {
		return
	}
	// named is the right to use a class by its name, as long as that is there.
	named := func(what, classes, body string, use trial) lever {
		return lever{what, func() bool { return c.made(ctx, admin, [2]string{classes, body}) }, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodDelete, classes+"/judged", "", http.StatusOK, http.StatusNotFound)
		}, []trial{use}}
	}
	claim := dry("", classed+"/persistentvolumeclaims", `{"metadata":{"name":"claim"},"spec":{"accessModes":["ReadWriteOnce"],"resources":{"requests":{"storage":"1Gi"}}}}`)
	claim.without = `"storageClassName":"judged"`
	levers := []lever{
		named("of a priority class that is gone", priorityClasses, `{"metadata":{"name":"judged"},"value":1000}`, dry("", classed+"/pods", plainPod(`"priorityClassName":"judged",`))),
		named("of a runtime class that is gone", runtimeClasses, `{"metadata":{"name":"judged"},"handler":"judged"}`, dry("", classed+"/pods", plainPod(`"runtimeClassName":"judged",`))),
		{"without a default storage class", func() bool { return c.unmade(ctx, admin, storageClasses+"/judged") }, func(subject string) bool {
			return c.change(ctx, admin, subject, false, http.MethodPost, storageClasses, `{"metadata":{"name":"judged","annotations":{"storageclass.kubernetes.io/is-default-class":"true"}},"provisioner":"judged"}`, http.StatusCreated, http.StatusConflict)
		}, []trial{claim}},
		{"in a namespace for all Pods", func() bool { return c.patched(ctx, admin, secured, fmt.Sprintf(securityLevel, "privileged")) }, func(subject string) bool {
			return c.changePatch(ctx, admin, secured, subject, false, fmt.Sprintf(securityLevel, "restricted"))
		}, []trial{anywhere}},
	}
	c.pulls(ctx, levers, []trial{plain})
}
